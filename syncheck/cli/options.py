"""Options of the commands that answer, score and serve, and those that others share; loads no model library."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import cleandoc
from typing import Any, TypeVar, get_args

from syncheck.text.sentences.config import LineBreaks

DECODERS = ("greedy", "sample", "fod", "fod-backtrack", "abstain", "rerank", "best-of-n", "cad", "flare")

_OF_A_WRITER = "'generation' for the bundled model, 'generic' for another"
"""The monitor of a command whose model writes, without ``--monitor``."""

_Number = TypeVar("_Number", int, float)


def number(
    kind: Callable[[str], _Number], accepts: Callable[[_Number], bool], expected: str
) -> Callable[[str], _Number]:
    """Return a parser of numbers that refuses others with a message of what was expected."""

    def read(text: str) -> _Number:
        with suppress(ValueError):
            if accepts(value := kind(text)):  # no comparison accepts NaN
                return value
        raise argparse.ArgumentTypeError(f"must be {expected}; found {text}")

    return read


count = number(int, lambda value: value >= 1, "a whole number of at least 1")
share = number(float, lambda value: 0 <= value <= 1, "a number from 0 to 1")
index = number(int, lambda value: value >= 0, "a whole number of at least 0")
positive = number(float, lambda value: 0 < value < math.inf, "a finite number above 0")
positive_share = number(float, lambda value: 0 < value <= 1, "a number above 0 and at most 1")
open_share = number(float, lambda value: 0 < value < 1, "a number above 0 and below 1")

_KINDS: Mapping[str, Callable[[str], object]] = {
    "N": count,
    "SEED": number(int, lambda value: -(2**63) <= value < 2**64, "a whole number of at most 64 bits"),
    "SCORE": share,
    "SECONDS": positive,
    "BYTES": count,
    "CHARACTERS": count,
    "THRESHOLD": lambda text: text if text == "calibrated" else share(text),
}
"""Parsers of values, by what a table of options calls them; other values are strings."""


def add_options(parser: argparse._ActionsContainer, table: str, **more: Mapping[str, Any]) -> None:
    """Add the options of a table, whose rows read ``--option VALUE = default  help``; indented lines continue a row.

    Choices are written ``a|b``, a value that may repeat is ``VALUE...``, and an option alone is a switch. ``more`` has
    further arguments of ``add_argument``, by the name of the option.
    """
    for row in re.split(r"\n(?=\S)", cleandoc(table)):
        head, *text = re.split(r"\s{2,}", row)
        names, _, default = head.partition(" = ")
        option, _, value = names.partition(" ")
        name = option.partition("/")[0].lstrip("-").replace("-", "_")
        given: dict[str, Any] = {"help": " ".join(text) or None}
        if default:
            given["default"] = default
        if "|" in value:
            given["choices"] = value.split("|")
        elif value:
            metavar = value.removesuffix("...")
            given |= {"metavar": metavar, "type": _KINDS.get(metavar), "nargs": "+" if value != metavar else None}
        elif name not in more:
            given["action"] = "store_true"
        parser.add_argument(*option.split("/"), **given | dict(more.get(name, {})))


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``demo``."""
    add_options(
        parser,
        """
        --question TEXT  your own question; needs --context (six bundled questions)
        --context FILE  text file with the passages for --question, one per paragraph
        --report FILE = report.html  file for the HTML page (%(default)s)
        """,
    )
    add_length(parser, default=160)
    add_options(parser, "--seed SEED = 0  seed for the sampling of FOD's search (%(default)s)")


def add_score(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``score``."""
    add_model(parser)
    _add_files(parser)
    _add_prior(parser)
    add_options(
        parser,
        """
        --tokens  also write the signals of every token (off)
        --batch-tokens N  if --output is a store: largest number of tokens scored at once (cpu: one response, cuda:
            16384)
        --sentences found|given = found  find the sentences in the response, or use those given in the record
            (%(default)s)
        --lid-reference FILE  reference activations for a --model without --monitor: arrays layer_<k> of shape (T, H)
            (none: LID is null)
        --spans DIR  also mark the wrong characters, with 'bundled' (if no name is given), 'bundled-rarity' or a span
            model's folder
        --html FILE  also write the report as an HTML page; with --spans, it shows the wrong characters
        --fail-under SCORE  exit with 1 if a sentence scores below SCORE (0 to 1) or if something could not be checked:
            a sentence that claims something but has no score, an empty response or context, an empty input (never)
        --allow-unscored  with --fail-under: do not fail on what could not be checked (it fails)
        """,
        spans={"nargs": "?", "const": "bundled"},
    )


def add_generate(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``generate``; those of a decoder are None unless given: the defaults are the decoder's own."""
    add_model(parser, default=_OF_A_WRITER)
    _add_files(parser)
    _add_prior(parser)
    group = parser.add_argument_group("answers")
    add_options(group, "--decoder = greedy  decoding method (%(default)s)", decoder={"choices": DECODERS})
    add_length(group, default=256)
    add_options(
        group,
        """
        --seed SEED = 0  seed for sampling, the same for each record (%(default)s)
        --temperature T  for sample (1), fod, rerank and best-of-n (0.9)
        --top-p P  for sample (1), fod, rerank and best-of-n (0.95)
        """,
        temperature={"type": positive},
        top_p={"type": positive_share},
    )
    _add_search(parser)
    add_options(
        parser.add_argument_group("reranking and best of N", "for --decoder rerank and best-of-n"),
        """
        --samples N  number of answers to choose from (6)
        --rerank-by syncheck|likelihood|aligner  for rerank: choose by the mean score, log-probability or support
            (syncheck)
        --reward mean|lowest  for best-of-n: choose by an answer's mean or lowest score (mean)
        """,
    )
    add_options(
        parser.add_argument_group("contrast", "for --decoder cad, and for fod with --propose branch"),
        """
        --alpha ALPHA  strength of the contrast with the distribution without the passages (cad: 0.5; fod: 0.25)
        --plausibility SHARE  drop tokens with less than this share of the highest probability (cad: 0, none; fod: 0.02)
        """,
        alpha={"type": float},
        plausibility={"type": float},
    )
    add_options(
        parser.add_argument_group("FLARE", "for --decoder flare, which needs the first two options"),
        """
        --flare-threshold P  retrieve if a token's probability is below this
        --passages FILE  text file with the texts to retrieve from, one per paragraph
        --max-retrievals N  largest number of retrievals per answer (8)
        """,
        flare_threshold={"type": share},
    )


def add_gateway(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gateway``."""
    url = "URL of an OpenAI-compatible server, with the API version, such as http://localhost:8000/v1"
    add_options(parser, f"--upstream URL  {url}", upstream={"required": True})
    _add_server(parser)
    add_options(
        parser.add_argument_group("upstream"),
        """
        --upstream-key-file FILE  API key for the upstream ($SYNCHECK_UPSTREAM_KEY, or else the client's own)
        --upstream-timeout SECONDS = 60  longest wait for the upstream to send something (%(default)s)
        """,
    )
    add_model(parser)


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``serve``."""
    add_options(
        parser,
        "--decoder = greedy  decoding method, unless a request chooses another (%(default)s)",
        decoder={"choices": [name for name in DECODERS if name != "flare"]},
    )
    add_length(parser, default=256)
    _add_server(parser)
    add_model(parser, default=_OF_A_WRITER)


def _add_server(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        """
        --failing closed|open = closed  if text cannot be checked: return an error (closed), or pass it on and mark it
            (open) (%(default)s)
        --host HOST = 127.0.0.1  address to listen on (%(default)s: only this machine)
        --port PORT = 8100  port to listen on (%(default)s)
        --reveal verified|immediate = verified  send text with its score (verified) or as it arrives (immediate), unless
            a request chooses (%(default)s)
        --stop-below SCORE  end an answer before the first sentence that scores below SCORE, unless a request chooses
            (never)
        --stop-after  end it after that sentence, which is then sent, unless a request chooses
        """,
        port={"type": count},
    )
    add_options(
        parser.add_argument_group("limits"),
        f"""
        --api-key-file FILE  key that clients must send ($SYNCHECK_API_KEY, or none)
        --max-running N = 4  largest number of answers at one time (%(default)s)
        --max-waiting N = 32  largest number of waiting requests; further ones get status 429 (%(default)s)
        --max-body BYTES = {2 * 2**20}  largest size of a request (%(default)s)
        --max-context CHARACTERS = 400000  largest size of a request's question and passages (%(default)s)
        --timeout SECONDS = 300  longest time for an answer, including waiting (%(default)s)
        --resume-seconds SECONDS = 60  how long an answer is kept for a client that may reconnect (%(default)s)
        """,
        max_waiting={"type": index},
    )


def _add_search(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser.add_argument_group(
            "FOD",
            "for --decoder fod, fod-backtrack and abstain. 'calibrated' is the threshold of `syncheck calibrate "
            "--risk`; no sentence below it is released. Its guarantee does not cover the search of fod",
        ),
        """
        --backtrack-threshold THRESHOLD  tau 1, for all three: 0 to 1, or 'calibrated' (the monitor's own)
        --prune-threshold THRESHOLD  tau 2, for fod: 0 to 1, or 'calibrated' (the monitor's own)
        --propose sample|branch  what fod does with a sentence below tau 1: search over sampled sentences (sample), or
            rewrite it from its least certain tokens and hide it if that fails (branch) (sample)
        --branches M  with --propose branch: number of tokens at which another choice is tried (4)
        --max-skips N  with --propose branch: largest number of hidden sentences per answer (2)
        --beam-size K  number of answers that fod keeps after each round (2)
        --samples-per-step S  number of sentences that fod samples per round (6)
        --share-samples  for fod: sample S sentences per round even if there are fewer than K beams (ceil(S / K) for
            each beam)
        --until any|all  for fod: stop when any kept beam has ended, or when all have (any)
        --max-sentences N  for fod and fod-backtrack: largest number of sentences (32)
        --on-exhausted stop|abstain|annotate  for fod: what to do when no candidate sentence passes (stop)
        --message TEXT  for fod, fod-backtrack and abstain: text of an answer of which no sentence passes, and end of
            one with --on-exhausted abstain (The passages do not let me say more.)
        """,
        **dict.fromkeys(("backtrack_threshold", "prune_threshold"), {"metavar": "SCORE"}),
        **dict.fromkeys(("branches", "beam_size", "samples_per_step"), {"type": count}),
        max_skips={"type": int},
        share_samples={"action": "store_true", "default": None},
    )


DOCTOR = """
    --model DIR_OR_ID  also load this model and check that it can be monitored
    --device cpu|cuda = cpu  required device (%(default)s)
    """
COMPLETION = 'shell bash|zsh|tcsh  the shell; for bash, put eval "$(syncheck completion bash)" in .bashrc'
EXPORT_GENERATE = """
    directory DIR  folder to write; pass it as custom_generate=DIR
    --monitor DIR = generic  folder of a trained monitor, which must not be moved later, or its repository on the Hub
        (%(default)s)
    --revision REVISION  branch, tag or commit of the repository (its main branch)
    """


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``plan``."""
    add_options(
        parser,
        """
        --answers N  number of answers, such as 1e6
        --context-tokens N  mean number of tokens in a prompt
        --answer-tokens N = 150  mean number of tokens in an answer (%(default)s)
        --workers N...  numbers of scoring processes to compare (1 8 64)
        --batch-tokens N  as for score (one response at a time)
        --price-per-hour P  price of one worker per hour, to estimate the cost
        --rates FILE  rates measured on your machine with benchmarks/scale.py (bundled rates; the output names their
            machine)
        --output FILE  the estimates as JSON
        """,
        **dict.fromkeys(("answers", "context_tokens"), {"type": positive, "required": True}),
        **dict.fromkeys(("answer_tokens", "price_per_hour"), {"type": positive}),
        workers={"default": [1, 8, 64]},
    )


REPORT = """
    input SCORES  output of score or generate: a JSON Lines file, a store, or - for standard input
    --html FILE = report.html  file for the page (%(default)s)
    --records FILE  the scored records, to show their questions and, if they have labels, ROC, reliability and
        risk-coverage curves
    --title TITLE = Scored answers  heading of the page (%(default)s)
    """


def add_conversion(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``convert-aligner``."""
    add_options(parser, "--aligner FILE  an AlignScore .ckpt", aligner={"required": True})
    _add_backbone(parser)
    add_options(parser, "--output DIR  folder to pass to --aligner afterwards", output={"required": True})


def _add_prior(parser: argparse.ArgumentParser) -> None:
    about = "expected share of faithful sentences, which shifts every score (the share in the monitor's training)"
    add_options(parser, f"--prior SHARE  {about}", prior={"type": open_share})


def add_model(parser: argparse.ArgumentParser, *, monitor: bool = True, default: str = "'generic'") -> None:
    """Add options for model, aligner and segmentation; ``monitor`` is False for a command that trains one.

    ``default`` says for the help which monitor the command takes without ``--monitor``.
    """
    group = parser.add_argument_group("model")
    add_options(group, "--model DIR_OR_ID  causal language model (the bundled one)")
    if monitor:
        add_options(
            group,
            f"""
            --monitor DIR  monitor trained for --model, or a bundled one that reads text alone: 'generic-reader',
                'generic-bundled', or 'generic', the first if the reader's encoder is installed ({default})
            --trust TYPE...  full names of the types that a scikit-learn classifier in --monitor may contain; the error
                for a missing one lists them (none)
            """,
        )
    add_options(group, "--device cpu|cuda = cpu  where the model runs (%(default)s)")
    alone = (
        "; not with --monitor. The score is that of the bundled monitor trained with it ('bundled', 'reader'), else "
        "its support (the monitor's)"
    )
    add_aligner(parser, alone if monitor else " (bundled)")
    own = "the monitor's" if monitor else "none"
    add_options(
        parser.add_argument_group("sentences", f"in place of {'the monitor' if monitor else 'Punkt'}'s own"),
        f"""
        --abbreviations  list of abbreviations whose full stop does not end a sentence ({own})
        --line-breaks  which line breaks end a sentence ({own})
        --cjk-stops  end sentences at Chinese and Japanese full stops (off)
        --clauses  also end sentences at commas, semicolons and colons (off)
        --sentences-together N  treat N sentences as one (1)
        """,
        abbreviations={"choices": ("english", "none")},
        line_breaks={"choices": get_args(LineBreaks)},
    )


def add_aligner(parser: argparse.ArgumentParser, default: str) -> None:
    """Add ``--aligner`` and the options of its kinds; ``default`` ends its help."""
    add_options(
        parser,
        f"""
        --aligner ALIGNER  model that says how well passages support a sentence: 'bundled', 'reader' (scoring takes
            about 1.5 times as long, and it understands far more), 'none', 'minicheck', 'alignscore', 'hhem' or 'nli'
            (the best such checkpoint in the cache), 'auto' (the best of all these that is there), an AlignScore .ckpt
            or converted folder, the folder or name of a classifier, minicheck:PATH, critic:PATH (Self-RAG), or
            spans:PATH (a language model that lists unsupported spans){default}
        """,
    )
    group = parser.add_argument_group("aligner", "for some kinds of --aligner")
    _add_backbone(group)
    add_options(
        group,
        """
        --aligner-mode nli_sp|nli|bin_sp|bin  for AlignScore: evaluation mode (nli_sp)
        --aligner-overflow split|cut  for AlignScore, if a context exceeds its window: score all parts, or cut the end
            as its own code does (split)
        --aligner-entailment N  for a classifier: index of the class that means supported
        """,
        aligner_entailment={"type": index},
    )


def aligner_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the ``--aligner-*`` options as keywords of ``load_aligner``; None for those not given."""
    return {name: getattr(args, f"aligner_{name}") for name in ("backbone", "mode", "overflow", "entailment")}


def _add_backbone(parser: argparse._ActionsContainer) -> None:
    add_options(
        parser,
        """
        --aligner-backbone DIR_OR_ID  for an AlignScore .ckpt: RoBERTa model with its config and tokenizer (the folder
            beside the checkpoint, or the model that the checkpoint names)
        """,
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        """
        --input PATH = -  JSON Lines or Parquet file, a folder of them, or - for JSON Lines on standard input
            (%(default)s)
        --output PATH = -  JSON Lines file, - for standard output (%(default)s), or a store: a folder, given with a
            slash at the end, that keeps rows as Parquet and continues after a kill
        --format jsonl|human|compact = jsonl  jsonl: for programs; human: one line per sentence; compact: one line per
            answer with id, lowest score, number of sentences and the lowest-scoring sentence, separated by tabs
            (%(default)s)
        --resume  keep the answers in --output and continue; refused if records, models or options changed (off)
        """,
    )
    add_engine(parser.add_argument_group("corpus", "if --output is a store"))


def add_engine(parser: argparse._ActionsContainer) -> None:
    """Add the options for answering a corpus."""
    add_options(
        parser,
        """
        --engine local|ray  where records are processed: in this process, or on a Ray cluster (local)
        --workers N  with --engine ray: number of worker processes (1)
        --part-size N  number of records per part; a kill loses at most one part (64)
        """,
    )


def add_length(parser: argparse._ActionsContainer, *, default: int) -> None:
    """Add the option for the limit on an answer's tokens."""
    add_options(parser, f"--max-new-tokens N = {default}  largest number of tokens in an answer (%(default)s)")
