"""Answers watched in random pieces, compared with the same answers scored as a whole.

    python benchmarks/reliability/cuts.py --count 20000 --seed 0

Each answer is made of words, full stops of several scripts, line breaks, marks of lists, characters of several tokens,
and the texts of special tokens of every kind: those that begin, end, pad or mask a text, that swallow the white space
on a side, and added ones that are not special. It is cut at random places, within tokens and special tokens too, and
read with the tokenizer, the segmenter's options and the limit of tokens of a random monitor. In one of ten runs the
monitored model reads it. After each run:

* the sentences, their tokens, features and scores are those of ``Monitor.score``, and so is the text up to an end;
* every character that is not white space is in a sentence;
* with ``reveal="verified"``, no character was shown before the sentence that holds it was scored.

Exits with 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import copy
import math
import platform
import random
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import tokenizers
import transformers
from transformers import AddedToken, PreTrainedTokenizerBase

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "text")]

from doubles import FormulaAggregator  # noqa: E402
from small_tokenizers import TOKENIZERS  # noqa: E402
from whole_texts import OPTIONS  # noqa: E402

from syncheck import Monitor, MonitorConfig, Report, SegmenterConfig, SentenceScore, feature_schema  # noqa: E402
from syncheck.base.pretrained import load_tokenizer  # noqa: E402
from syncheck.results import Append, ProtocolEvent, Verified  # noqa: E402
from syncheck.testing import ScriptedModel, WordAligner  # noqa: E402

MOST_ATOMS = 40
LIMITS = (256, 5)
"""Limits of tokens of a sentence: the default, and one at which most sentences are cut."""
MODEL_READS = 0.1
TOLERANCE = 1e-3
"""Signals of a model that reads a text in pieces are rounded otherwise."""
PLACES = ("text", "start", "end", "token_start", "token_end", "truncated", "status")
TEXT_ONLY, OF_THE_MODEL = "syncheck.v5", "paper-no-lid.v1"
SPECIAL = ("<s>", "</s>", "<pad>", "<mask>", "<|im_end|>", "<|left|>", "<|right|>", "<|both|>", "<tool>")
ATOMS = (
    *SPECIAL,
    *SPECIAL,
    *("It is big.", "The moon is cheese.", "Yes", "no", "a", "3.5", "1982.", "Dr. ", "e.g. x", "U.S.", "x" * 40),
    *(" ", " ", "  ", "\n", "\n\n", "\t", "\u3000", ". ", "? ", "! ", "...", ", ", "; ", '" ', "\u201d", ")"),
    *("1. ", "- ", "## ", "\u3002", "\uff01", "\uff0e", "\u4ed6\u662f", "\u00e9", "e\u0301", "\U0001f600", "\ufffd"),
)


def with_special_tokens(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Return a copy of a tokenizer that knows special tokens of every kind."""
    tokenizer = copy.deepcopy(tokenizer)
    named = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>"}
    tokenizer.add_special_tokens({role: text for role, text in named.items() if getattr(tokenizer, role) is None})
    sides: dict[str, dict[str, bool]] = {
        "<|im_end|>": {},
        "<|left|>": {"lstrip": True},
        "<|right|>": {"rstrip": True},
        "<|both|>": {"lstrip": True, "rstrip": True},
    }
    kept = [AddedToken(text, special=True, normalized=False, **side) for text, side in sides.items()]
    tokenizer.add_special_tokens({"additional_special_tokens": kept})
    tokenizer.add_tokens([AddedToken("<tool>", special=False)])
    return tokenizer


@cache
def known_tokenizers() -> dict[str, PreTrainedTokenizerBase]:
    """Return a tokenizer of each kind in use by name: merged bytes, bytes, byte fallback, a slow one."""
    merged = load_tokenizer(ROOT / "tests" / "golden" / "signals" / "llama")
    return {name: with_special_tokens(known) for name, known in {"merged bytes": merged, **TOKENIZERS}.items()}


@cache
def monitor_of(tokenizer: str, options: str, limit: int, *, model_reads: bool) -> Monitor:
    """Return a monitor whose scores differ from sentence to sentence."""
    known, schema = known_tokenizers()[tokenizer], OF_THE_MODEL if model_reads else TEXT_ONLY
    return Monitor(
        _model(tokenizer),
        known,
        config=MonitorConfig(schema=schema, segmenter=SegmenterConfig(max_tokens=limit, **OPTIONS[options])),
        aggregator=FormulaAggregator(feature_schema(schema, ()), _wavy),
        aligner=WordAligner(),
    )


def _wavy(values: dict[str, float]) -> float:
    return 0.5 + 0.4 * math.sin(sum(value for value in values.values() if not math.isnan(value)))


@cache
def _model(tokenizer: str) -> ScriptedModel:
    return ScriptedModel(known_tokenizers()[tokenizer], "It is big. The moon is cheese.")


def cut(text: str, places: Sequence[int]) -> list[str]:
    """Cut a text at these characters."""
    return [text[a:b] for a, b in pairwise([0, *sorted(places), len(text)])]


def differences(monitor: Monitor, text: str, pieces: Sequence[str], *, model_reads: bool) -> list[str]:
    """Return what is wrong with an answer that is watched in pieces."""
    prompt = monitor.prompt(question="How big is the moon?", context="It is big. The moon is not cheese.")
    whole = monitor.score(prompt, text)
    with monitor.watch_text(prompt) as watch:
        for piece in pieces:
            if not watch.is_over:
                watch.feed(piece)
        watch.close()
    report, wrong = watch.report, []
    if report.response != whole.response:
        wrong.append(f"the text is {report.response!r}, {whole.response!r} as a whole")
    if not model_reads and whole.response != text:
        wrong.append(f"the text became {whole.response!r}")
    if not _same(report, whole, tolerance=TOLERANCE if model_reads else 0.0):
        wrong.append(f"sentences {report.sentences}, {whole.sentences} as a whole")
    tokens = [[known.tokens.token_ids.tolist(), known.tokens.char_spans.tolist()] for known in (report, whole)]
    if tokens[0] != tokens[1]:
        wrong.append(f"tokens {tokens[0]}, {tokens[1]} as a whole")
    inside = {i for sentence in whole.sentences for i in range(sentence.start, sentence.end)}
    if left := [char for i, char in enumerate(whole.response) if i not in inside and not char.isspace()]:
        wrong.append(f"in no sentence: {''.join(left)!r}")
    return [*wrong, *_shown_early(watch.events, report.response)]


def _same(report: Report, whole: Report, *, tolerance: float) -> bool:
    """Return True if two reports have the same sentences, with features and scores that differ by rounding at most."""
    if len(report.sentences) != len(whole.sentences):
        return False
    return all(
        [getattr(one, name) for name in PLACES] == [getattr(other, name) for name in PLACES]
        and all(map(partial(_close, tolerance=tolerance), _values(one), _values(other)))
        for one, other in zip(report.sentences, whole.sentences, strict=True)
    )


def _values(sentence: SentenceScore) -> list[float | None]:
    return [sentence.score, *sentence.features.values()]


def _close(one: float | None, other: float | None, *, tolerance: float) -> bool:
    return one == other or (None not in (one, other) and math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance))


def _shown_early(events: Sequence[ProtocolEvent], text: str) -> list[str]:
    shown, checked = 0, set()
    for event in events:
        if isinstance(event, Verified):
            checked.update(range(event.start, event.end))
        elif isinstance(event, Append):
            places = range(shown, shown + len(event.text))
            if early := [text[i : i + 1] for i in places if i not in checked and not text[i : i + 1].isspace()]:
                return [f"shown before it was checked: {''.join(early)!r}"]
            shown += len(event.text)
    return []


def run(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Watch answers in random pieces; return how many there were by outcome, and what was wrong."""
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    for _ in range(count):
        model_reads = chance.random() < MODEL_READS
        tokenizer, options = chance.choice(sorted(known_tokenizers())), chance.choice(sorted(OPTIONS))
        monitor = monitor_of(tokenizer, options, chance.choice(LIMITS), model_reads=model_reads)
        text = "".join(chance.choices(ATOMS, k=chance.randint(1, MOST_ATOMS)))
        pieces = cut(text, [chance.randint(0, len(text)) for _ in range(chance.choice([1, 4, 16, len(text)]))])
        found = differences(monitor, text, pieces, model_reads=model_reads)
        reader = "read by the model" if model_reads else "read as text"
        outcomes[f"{reader}, {'differs' if found else 'as a whole'}"] += 1
        outcomes["pieces"] += len(pieces)
        outcomes["special tokens"] += sum(text.count(special) for special in SPECIAL)
        wrong += [f"{tokenizer}, {options}, {pieces!r}: {each}" for each in found]
    return outcomes, wrong


def main() -> int:
    """Run as many answers as asked for and print the outcomes; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    outcomes, wrong = run(args.count, args.seed)
    print(
        f"Python {platform.python_version()}, transformers {transformers.__version__}, "
        f"tokenizers {tokenizers.__version__}, seed {args.seed}"
    )
    for outcome, number in sorted(outcomes.items()):
        print(f"{number:>9,}  {outcome}")
    print(*wrong[:20], sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
