"""Options of the commands that answer, score and serve, and those that others share; loads no model library."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, get_args

from syncheck.config import LineBreaks

DECODERS = ("greedy", "sample", "fod", "fod-backtrack", "abstain", "rerank", "best-of-n", "cad", "flare")

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
_index = number(int, lambda value: value >= 0, "a whole number of at least 0")
_positive = number(float, lambda value: 0 < value < math.inf, "a finite number above 0")
positive_share = number(float, lambda value: 0 < value <= 1, "a number above 0 and at most 1")
open_share = number(float, lambda value: 0 < value < 1, "a number above 0 and below 1")


def _threshold(text: str) -> float | str:
    return text if text == "calibrated" else share(text)


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``demo``."""
    add = parser.add_argument
    add("--question", metavar="TEXT", help="your own question; needs --context (six bundled questions)")
    add("--context", metavar="FILE", help="text file with the passages for --question, one per paragraph")
    add("--report", default="report.html", metavar="FILE", help="file for the HTML page (%(default)s)")
    add_length(parser, default=160)
    add("--seed", type=int, default=0, help="seed for the sampling of FOD's search (%(default)s)")


def add_score(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``score``."""
    add = parser.add_argument
    add_model(parser)
    _add_files(parser)
    _add_prior(parser)
    add("--tokens", action="store_true", help="also write the signals of every token (off)")
    add(
        "--batch-tokens",
        type=count,
        metavar="N",
        help="if --output is a store: largest number of tokens scored at once (cpu: one response, cuda: 16384)",
    )
    add(
        "--sentences",
        choices=("found", "given"),
        default="found",
        help="find the sentences in the response, or use those given in the record (%(default)s)",
    )
    add(
        "--lid-reference",
        metavar="FILE",
        help="reference activations for a --model without --monitor: arrays layer_<k> of shape (T, H) (none: LID is "
        "null)",
    )
    add(
        "--spans",
        nargs="?",
        const="bundled",
        metavar="DIR",
        help="also mark the wrong characters, with 'bundled' (if no name is given), 'bundled-rarity' or a span "
        "model's folder",
    )
    add(
        "--html",
        metavar="FILE",
        help="also write the report as an HTML page; with --spans, it shows the wrong characters",
    )
    add(
        "--fail-under",
        type=share,
        metavar="SCORE",
        help="exit with 1 if a sentence scores below SCORE (0 to 1) or if something could not be checked: a sentence "
        "with a letter or digit but no score, an empty response or context, an empty input (never)",
    )
    add(
        "--allow-unscored",
        action="store_true",
        help="with --fail-under: do not fail on what could not be checked (it fails)",
    )


def add_generate(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``generate``; those of a decoder are None unless given: the defaults are the decoder's own."""
    add_model(parser)
    _add_files(parser)
    _add_prior(parser)
    group = parser.add_argument_group("answers")
    add = group.add_argument
    add("--decoder", choices=DECODERS, default="greedy", help="decoding method (%(default)s)")
    add_length(group, default=256)
    add("--seed", type=int, default=0, help="seed for sampling, the same for each record (%(default)s)")
    add("--temperature", type=_positive, metavar="T", help="for sample (1), fod, rerank and best-of-n (0.9)")
    add("--top-p", type=positive_share, metavar="P", help="for sample (1), fod, rerank and best-of-n (0.95)")
    _add_search(parser)
    add = parser.add_argument_group("reranking and best of N", "for --decoder rerank and best-of-n").add_argument
    add("--samples", type=count, metavar="N", help="number of answers to choose from (6)")
    add(
        "--rerank-by",
        choices=("syncheck", "likelihood", "aligner"),
        help="for rerank: choose by the mean score, log-probability or support (syncheck)",
    )
    add("--reward", choices=("mean", "lowest"), help="for best-of-n: choose by an answer's mean or lowest score (mean)")
    add = parser.add_argument_group("contrast", "for --decoder cad, and for fod with --propose branch").add_argument
    add(
        "--alpha",
        type=float,
        help="strength of the contrast with the distribution without the passages (cad: 0.5; fod: 0.25)",
    )
    add(
        "--plausibility",
        type=float,
        metavar="SHARE",
        help="drop tokens with less than this share of the highest probability (cad: 0, none; fod: 0.02)",
    )
    add = parser.add_argument_group("FLARE", "for --decoder flare, which needs the first two options").add_argument
    add("--flare-threshold", type=float, metavar="P", help="retrieve if a token's probability is below this")
    add("--passages", metavar="FILE", help="text file with the texts to retrieve from, one per paragraph")
    add("--max-retrievals", type=count, metavar="N", help="largest number of retrievals per answer (8)")


def add_gateway(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gateway``."""
    parser.add_argument(
        "--upstream",
        required=True,
        metavar="URL",
        help="URL of an OpenAI-compatible server, with the API version, such as http://localhost:8000/v1",
    )
    _add_server(parser)
    group = parser.add_argument_group("upstream")
    group.add_argument(
        "--upstream-key-file",
        metavar="FILE",
        help="API key for the upstream ($SYNCHECK_UPSTREAM_KEY, or else the client's own)",
    )
    group.add_argument(
        "--upstream-timeout",
        type=_positive,
        default=60.0,
        metavar="SECONDS",
        help="longest wait for the upstream to send something (%(default)g)",
    )
    add_model(parser)


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``serve``."""
    parser.add_argument(
        "--decoder",
        choices=[name for name in DECODERS if name != "flare"],
        default="greedy",
        help="decoding method, unless a request chooses another (%(default)s)",
    )
    add_length(parser, default=256)
    _add_server(parser)
    add_model(parser)


def _add_server(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--failing",
        choices=("closed", "open"),
        default="closed",
        help="if text cannot be checked: return an error (closed), or pass it on and mark it (open) (%(default)s)",
    )
    add("--host", default="127.0.0.1", help="address to listen on (%(default)s: only this machine)")
    add("--port", type=count, default=8100, help="port to listen on (%(default)s)")
    add(
        "--reveal",
        choices=("verified", "immediate"),
        default="verified",
        help="send text with its score (verified) or as it arrives (immediate), unless a request chooses (%(default)s)",
    )
    add(
        "--stop-below",
        type=share,
        metavar="SCORE",
        help="end an answer at the first sentence that scores below SCORE, unless a request chooses (never)",
    )
    add = parser.add_argument_group("limits").add_argument
    add("--api-key-file", metavar="FILE", help="key that clients must send ($SYNCHECK_API_KEY, or none)")
    add("--max-running", type=count, default=4, metavar="N", help="largest number of answers at one time (%(default)s)")
    add(
        "--max-waiting",
        type=_index,
        default=32,
        metavar="N",
        help="largest number of waiting requests; further ones get status 429 (%(default)s)",
    )
    add("--max-body", type=count, default=2 * 2**20, metavar="BYTES", help="largest size of a request (%(default)s)")
    add(
        "--timeout",
        type=_positive,
        default=300.0,
        metavar="SECONDS",
        help="longest time for an answer, including waiting (%(default)g)",
    )
    add(
        "--resume-seconds",
        type=_positive,
        default=60.0,
        metavar="SECONDS",
        help="how long an answer is kept for a client that may reconnect (%(default)g)",
    )


def _add_search(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group(
        "FOD",
        "for --decoder fod, fod-backtrack and abstain. 'calibrated' is the threshold of `syncheck calibrate --risk`; "
        "no sentence below it is released. Its guarantee does not cover the search of fod",
    ).add_argument
    for name, of in (("--backtrack-threshold", "tau 1, for all three"), ("--prune-threshold", "tau 2, for fod")):
        add(name, type=_threshold, metavar="SCORE", help=f"{of}: 0 to 1, or 'calibrated' (the monitor's own)")
    add(
        "--propose",
        choices=("sample", "branch"),
        help="what fod does with a sentence below tau 1: search over sampled sentences (sample), or rewrite it from "
        "its least certain tokens and hide it if that fails (branch) (sample)",
    )
    add(
        "--branches",
        type=count,
        metavar="M",
        help="with --propose branch: number of tokens at which another choice is tried (4)",
    )
    add(
        "--max-skips",
        type=int,
        metavar="N",
        help="with --propose branch: largest number of hidden sentences per answer (2)",
    )
    add("--beam-size", type=count, metavar="K", help="number of answers that fod keeps after each round (2)")
    add("--samples-per-step", type=count, metavar="S", help="number of sentences that fod samples per round (6)")
    add(
        "--share-samples",
        action="store_true",
        default=None,
        help="for fod: sample S sentences per round even if there are fewer than K beams (ceil(S / K) for each beam)",
    )
    add("--until", choices=("any", "all"), help="for fod: stop when any kept beam has ended, or when all have (any)")
    add("--max-sentences", type=count, metavar="N", help="for fod and fod-backtrack: largest number of sentences (32)")
    add(
        "--on-exhausted",
        choices=("stop", "abstain", "annotate"),
        help="for fod: what to do when no candidate sentence passes (stop)",
    )
    add(
        "--message",
        metavar="TEXT",
        help="text to give instead: for abstain (nothing), for fod with --on-exhausted abstain (The passages do not "
        "let me say more.)",
    )


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``doctor``."""
    parser.add_argument("--model", metavar="DIR_OR_ID", help="also load this model and check that it can be monitored")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="required device (%(default)s)")


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``completion``."""
    parser.add_argument(
        "shell",
        choices=("bash", "zsh", "tcsh"),
        help='the shell; for bash, put eval "$(syncheck completion bash)" in .bashrc',
    )


def add_export_generate(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``export-generate``."""
    add = parser.add_argument
    add("directory", metavar="DIR", help="folder to write; pass it as custom_generate=DIR")
    add(
        "--monitor",
        default="generic",
        metavar="DIR",
        help="folder of a trained monitor, which must not be moved later, or its repository on the Hub (%(default)s)",
    )
    add("--revision", help="branch, tag or commit of the repository (its main branch)")


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``plan``."""
    add = parser.add_argument
    add("--answers", required=True, type=_positive, metavar="N", help="number of answers, such as 1e6")
    add("--context-tokens", required=True, type=_positive, metavar="N", help="mean number of tokens in a prompt")
    add(
        "--answer-tokens",
        type=_positive,
        default=150,
        metavar="N",
        help="mean number of tokens in an answer (%(default)s)",
    )
    add(
        "--workers",
        type=count,
        nargs="+",
        default=[1, 8, 64],
        metavar="N",
        help="numbers of scoring processes to compare (1 8 64)",
    )
    add("--batch-tokens", type=count, metavar="N", help="as for score (one response at a time)")
    add("--price-per-hour", type=_positive, metavar="P", help="price of one worker per hour, to estimate the cost")
    add(
        "--rates",
        metavar="FILE",
        help="rates measured on your machine with benchmarks/scale.py (bundled rates; the output names their machine)",
    )
    add("--output", metavar="FILE", help="the estimates as JSON")


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``report``."""
    add = parser.add_argument
    add(
        "input",
        metavar="SCORES",
        help="output of score or generate: a JSON Lines file, a store, or - for standard input",
    )
    add("--html", default="report.html", metavar="FILE", help="file for the page (%(default)s)")
    add(
        "--records",
        metavar="FILE",
        help="the scored records, to show their questions and, if they have labels, ROC, reliability and "
        "risk-coverage curves",
    )
    add("--title", default="Scored answers", help="heading of the page (%(default)s)")


def add_conversion(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``convert-aligner``."""
    parser.add_argument("--aligner", required=True, metavar="FILE", help="an AlignScore .ckpt")
    _add_backbone(parser)
    parser.add_argument("--output", required=True, metavar="DIR", help="folder to pass to --aligner afterwards")


def _add_prior(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prior",
        type=float,
        metavar="SHARE",
        help="expected share of faithful sentences, which shifts every score (the share in the monitor's training)",
    )


def add_model(parser: argparse.ArgumentParser, *, monitor: bool = True) -> None:
    """Add options for model, aligner and segmentation; ``monitor`` is False for a command that trains one."""
    add = parser.add_argument_group("model").add_argument
    add("--model", metavar="DIR_OR_ID", help="causal language model (the bundled one)")
    if monitor:
        add(
            "--monitor",
            metavar="DIR",
            help="monitor trained for --model, or 'generic', the bundled one that reads text alone (the kit's own)",
        )
        add(
            "--trust",
            nargs="+",
            metavar="TYPE",
            help="full names of the types that a scikit-learn classifier in --monitor may contain; the error for a "
            "missing one lists them (none)",
        )
    add("--device", default="cpu", choices=("cpu", "cuda"), help="where the model runs (%(default)s)")
    untrained = "for a --model without --monitor" if monitor else ""
    alone = "not with --monitor; without --schema and --lid-reference, its support is the score (bundled)"
    add_aligner(parser, f"; {alone}" if monitor else " (bundled)")
    add = parser.add_argument_group(
        "sentences", f"by default from NLTK's untrained Punkt{untrained and '; only '}{untrained}"
    ).add_argument
    add(
        "--abbreviations",
        choices=("english",),
        help="list of abbreviations whose full stop does not end a sentence (none)",
    )
    add("--line-breaks", choices=get_args(LineBreaks), help="which line breaks end a sentence (none)")
    add("--cjk-stops", action="store_true", help="end sentences at Chinese and Japanese full stops (off)")
    add("--clauses", action="store_true", help="also end sentences at commas, semicolons and colons (off)")
    add("--sentences-together", type=count, metavar="N", help="treat N sentences as one (1)")


def add_aligner(parser: argparse.ArgumentParser, default: str) -> None:
    """Add ``--aligner`` and the options of its kinds; ``default`` ends its help."""
    parser.add_argument(
        "--aligner",
        help="model that says how well passages support a sentence: 'bundled', 'reader', 'none', 'minicheck', "
        "'alignscore', 'hhem' or 'nli' (the best such checkpoint in the cache), 'auto' (the best of these), an "
        "AlignScore .ckpt or converted folder, the folder or name of a classifier, minicheck:PATH, critic:PATH "
        f"(Self-RAG), or spans:PATH (a language model that lists unsupported spans){default}",
    )
    group = parser.add_argument_group("aligner", "for some kinds of --aligner")
    add = group.add_argument
    _add_backbone(group)
    add("--aligner-mode", choices=("nli_sp", "nli", "bin_sp", "bin"), help="for AlignScore: evaluation mode (nli_sp)")
    add(
        "--aligner-overflow",
        choices=("split", "cut"),
        help="for AlignScore, if a context exceeds its window: score all parts, or cut the end as its own code does "
        "(split)",
    )
    add(
        "--aligner-entailment",
        type=_index,
        metavar="N",
        help="for a classifier: index of the class that means supported",
    )


def aligner_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the ``--aligner-*`` options as keywords of ``load_aligner``; None for those not given."""
    return {name: getattr(args, f"aligner_{name}") for name in ("backbone", "mode", "overflow", "entailment")}


def _add_backbone(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--aligner-backbone",
        metavar="DIR_OR_ID",
        help="for an AlignScore .ckpt: RoBERTa model with its config and tokenizer (the folder beside the checkpoint, "
        "or the model that the checkpoint names)",
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--input",
        default="-",
        metavar="PATH",
        help="JSON Lines or Parquet file, a folder of them, or - for JSON Lines on standard input (%(default)s)",
    )
    add(
        "--output",
        default="-",
        metavar="PATH",
        help="JSON Lines file, - for standard output (%(default)s), or a store: a folder, given with a slash at the "
        "end, that keeps rows as Parquet and continues after a kill",
    )
    add(
        "--format",
        choices=("jsonl", "human", "compact"),
        default="jsonl",
        help="jsonl: for programs; human: one line per sentence; compact: one line per answer with id, lowest score, "
        "number of sentences and the lowest-scoring sentence, separated by tabs (%(default)s)",
    )
    add(
        "--resume",
        action="store_true",
        help="keep the answers in --output and continue; refused if records, models or options changed (off)",
    )
    add_engine(parser.add_argument_group("corpus", "if --output is a store"))


def add_engine(parser: argparse._ActionsContainer) -> None:
    """Add the options for answering a corpus."""
    add = parser.add_argument
    add(
        "--engine",
        choices=("local", "ray"),
        help="where records are processed: in this process, or on a Ray cluster (local)",
    )
    add("--workers", type=count, metavar="N", help="with --engine ray: number of worker processes (1)")
    add("--part-size", type=count, metavar="N", help="number of records per part; a kill loses at most one part (64)")


def add_length(parser: argparse._ActionsContainer, *, default: int) -> None:
    """Add the option for the limit on an answer's tokens."""
    parser.add_argument(
        "--max-new-tokens",
        type=count,
        default=default,
        metavar="N",
        help="largest number of tokens in an answer (%(default)s)",
    )
