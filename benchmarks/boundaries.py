"""Sentence boundaries of growing responses against NLTK's Punkt on the whole text, and the time it takes to find them.

    python benchmarks/boundaries.py --data ragtruth-qa
    python benchmarks/boundaries.py --long

Each response comes one character at a time, and in tokens of the kit's model. Without a limit the sentences must be
those of Punkt; sentences longer than the limit are counted apart. The exit code is 1 when a response differs.
``--long`` times texts of up to 100,000 characters in which sentences do not end, or seem to end everywhere.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

from nltk.tokenize.punkt import PunktSentenceTokenizer

from syncheck import SegmenterConfig
from syncheck.kit import kit_language_model
from syncheck.labelling import load_records
from syncheck.results.types import SentenceSpan
from syncheck.text.sentences import ENGLISH_ABBREVIATIONS, Detokenizer, IncrementalSegmenter

NO_LIMIT = 10**9
LONG = {
    "abbreviations in a row": "Dr. ",
    "initials in a row": "A. ",
    "list of authors": "Smith J. A., Miller B. C. and Jones D. E., ",
    "no sentence ends": "and so on ",
    "digits and full stops": "1.25, 3. ",
    "digits and full stops, no space": "1.25,3.",
    "Chinese": "他是球员。他在农场长大，很好。",
    "Chinese, no full stop": "他在农场长大",
    "marks of items": "- ",
    "no-break spaces": "a.\u00a0b",
    "sentences of one word": "No! ",
}
OPTIONS = {
    "default": SegmenterConfig(),
    "abbreviations, lists and CJK": SegmenterConfig(
        abbreviations=ENGLISH_ABBREVIATIONS, line_breaks="lists", cjk_stops=True
    ),
    "these and clauses": SegmenterConfig(
        abbreviations=ENGLISH_ABBREVIATIONS, line_breaks="lists", cjk_stops=True, clauses=True
    ),
}


def segmented(pieces: Sequence[str], config: SegmenterConfig) -> list[SentenceSpan]:
    """Find the sentences of a response that comes in these pieces."""
    segmenter = IncrementalSegmenter(config)
    return [span for piece in pieces for span in segmenter.push(piece)] + segmenter.finish()


def punkt_bounds(text: str) -> list[tuple[int, int]]:
    """Find the sentences of the whole text, without the white space that Punkt leaves before the first."""
    spans = PunktSentenceTokenizer().span_tokenize(text)
    return [(stop - len(text[start:stop].lstrip()), stop) for start, stop in spans]


def compare(responses: dict[str, str], pieces: dict[str, list[str]]) -> bool:
    """Print how many responses and sentences agree with Punkt; return whether all do."""
    wrong: dict[str, list[str]] = {"characters": [], "tokens": []}
    sentences = cut_sentences = 0
    for name, text in responses.items():
        expected = punkt_bounds(text)
        sentences += len(expected)
        cut_sentences += sum(span.truncated for span in segmented(pieces[name], SegmenterConfig()))
        for kind, parts in (("characters", list(text)), ("tokens", pieces[name])):
            spans = segmented(parts, SegmenterConfig(max_tokens=NO_LIMIT))
            if [(span.start, span.end) for span in spans] != expected:
                wrong[kind].append(name)
    print(f"{len(responses)} responses, {sentences} sentences by Punkt on the whole text (nltk {version('nltk')})")
    for kind, names in wrong.items():
        print(f"responses with other boundaries, in {kind}: {len(names)} {names[:5] or ''}")
    print(f"cut at the default limit of {SegmenterConfig().max_tokens} tokens: {cut_sentences}")
    return not any(wrong.values())


def microseconds(pieces: Sequence[str], config: SegmenterConfig) -> float:
    """Time the segmenter, per token, in processor time (the machine may have other work)."""
    started = time.process_time()
    segmented(pieces, config)
    return (time.process_time() - started) / len(pieces) * 1e6


def cost(pieces: list[list[str]], repeats: int) -> None:
    """Print microseconds a token for responses of two lengths, with and without options."""
    everything = [piece for parts in pieces for piece in parts]
    for length in (250, 2000):
        samples = [everything[at : at + length] for at in range(0, len(everything) - length, 2000)]
        for name, config in OPTIONS.items():
            times = [microseconds(sample, config) for _ in range(repeats) for sample in samples]
            low, middle, high = statistics.quantiles(times, n=4)
            print(
                f"{length} tokens, {name}: {middle:.1f} us of CPU a token (quartiles {low:.1f} to {high:.1f}, "
                f"{len(samples)} texts x {repeats})"
            )


def long_texts(lengths: Sequence[int]) -> None:
    """Print the seconds that long texts take in pieces of four characters, without a limit of tokens."""
    for title, unit in LONG.items():
        for name, config in OPTIONS.items():
            seconds = []
            for length in lengths:
                text = (unit * (length // len(unit) + 1))[:length]
                pieces = [text[at : at + 4] for at in range(0, length, 4)]
                seconds.append(microseconds(pieces, replace(config, max_tokens=NO_LIMIT)) * len(pieces) / 1e6)
            told = ", ".join(f"{length}: {found:.2f} s" for length, found in zip(lengths, seconds, strict=True))
            print(f"{title}, {name}: {told}")


def main() -> None:
    """Compare all responses of a data set, then time; or time long texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", help="RAGTruth folder or JSON Lines of labelled responses")
    source.add_argument(
        "--long", type=int, nargs="*", metavar="CHARACTERS", help="time long texts (default: 10000 and 100000)"
    )
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    if args.long is not None:
        long_texts(args.long or [10_000, 100_000])
        return
    responses = {record.id: record.response for record in load_records(args.data)}
    _, tokenizer = kit_language_model()
    pieces = {}
    for name, text in responses.items():
        detokenizer = Detokenizer(tokenizer, [])
        pieces[name] = [detokenizer.push(i) for i in tokenizer(text, add_special_tokens=False)["input_ids"]]
        if "".join(pieces[name]) != text:
            raise SystemExit(f"the tokens of response {name} do not give its text back")
    same = compare(responses, pieces)
    cost(list(pieces.values()), args.repeats)
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
