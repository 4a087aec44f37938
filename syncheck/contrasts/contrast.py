"""Contrasts of a sentence: the chunk that agrees best with it, what differs, and what counts by the ledger.

The ledger says where each rule was right, and so beside which verdicts of an aligner that reads it may speak;
``benchmarks/contrast_ledger.py --write`` counts its lines on one half of the labelled claims.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from syncheck.base.checks import Passage, cited_names, names_of
from syncheck.base.files import asset_lines
from syncheck.contrasts.parsing import ParsedText, parse
from syncheck.contrasts.rules import ANSWERED, RULES, Difference, in_order
from syncheck.reading.tags import quotation
from syncheck.results import Report
from syncheck.results.types import Contrast, Evidence, SentenceScore, Support
from syncheck.text.markup import marks_in, without_marks

BANDS = (-1.0, 1.0)  # log-odds of support at which one band of the reader's verdicts ends and the next begins
SURE = 0.9  # share of true hits over the ledger and in the highest band from which a rule speaks, whatever others think
RIGHT = 0.8  # share of true hits in a band from which a rule speaks there
LIKELY = 0.6  # the same over all bands, where no aligner reads
AS_CLOSE = 0.7  # share of the greatest closeness from which chunks are compared
PENALTY = 0.4  # reduction of a chunk's closeness by a difference, when the chunk to compare with is chosen


@dataclass(frozen=True, slots=True)
class Contrasted:
    """A sentence compared with the chunk that agrees best with it."""

    chunk: int  # index of the chunk; -1 if there is none
    closeness: float
    """Share of the sentence's content stems that the chunk has, plus half the share of its words that the chunk has in
    the same order; higher is better."""
    differences: tuple[Difference, ...]

    def that_speak(self, log_odds: float | None) -> tuple[Difference, ...]:
        """Choose the differences that count beside log-odds of support by an aligner that reads, None without one."""
        band = None if log_odds is None else band_of(log_odds)
        return tuple(one for one in self.differences if speaks(one.rule, band))


def with_answers(chunks: Sequence[str], best: Sequence[int]) -> tuple[str, ...]:
    """Collect the best chunks of a context, each question with the chunk after it where that answers "Yes" or "No"."""
    pairs = ((chunks[number], " ".join(chunks[number : number + 2])) for number in best)
    return tuple(joined if ANSWERED.match(joined, len(chunk) - 1) else chunk for chunk, joined in pairs)


def contrast_with(sentence: str, chunks: Sequence[str], *, read: Callable[[str], ParsedText] = parse) -> Contrasted:
    """Compare a sentence with the few chunks that share most with it, best first; ``read`` may be cached."""
    claim, sides = read(sentence), [read(chunk) for chunk in chunks]
    if not sides:
        return Contrasted(-1, 0.0, ())
    plain = claim.plain_words.union(*(side.plain_words for side in sides))
    capital = claim.names.union(*(side.names for side in sides))
    claim, *sides = (side.with_names(capital, plain) for side in (claim, *sides))
    near = [_closeness(claim, side) for side in sides]
    beside = []
    for place, (side, closeness) in enumerate(zip(sides, near, strict=True)):
        if closeness >= AS_CLOSE * max(near):
            differences = (replace(d, rule=n) for n in _rules_for(claim, side) for d in RULES[n](claim, side, sides))
            beside.append(Contrasted(place, closeness, tuple(dict.fromkeys(differences))))
    return max(beside, key=lambda one: (one.closeness - PENALTY * len(one.differences), -one.chunk))


def _rules_for(claim: ParsedText, chunk: ParsedText) -> Collection[str]:
    """Name the rules that apply: none to questions, and its own to a question with its answer."""
    if any(side.text.rstrip().endswith("?") for side in (claim, chunk)):
        return ()
    return ("answers", "numbers") if ANSWERED.search(chunk.text) else RULES


def _closeness(claim: ParsedText, chunk: ParsedText) -> float:
    ours, theirs = ([token.stem for token in side.tokens] for side in (claim, chunk))
    return claim.held_by(chunk) + in_order(ours, theirs) / max(1, len(ours)) / 2


class Hits(NamedTuple):
    """True and false hits of a rule."""

    true: int
    false: int

    @property
    def share(self) -> float:
        """Share of true hits, after adding one true and one false hit."""
        return (self.true + 1) / (self.true + self.false + 2)


@lru_cache(maxsize=1)
def packaged_ledger() -> Mapping[str, tuple[Hits, ...]]:
    """Read the hits of each rule by band, from the lowest."""
    return {
        rule: tuple(Hits(*map(int, band.split("/"))) for band in line.split())
        for rule, line in asset_lines("contrasts/ledger.txt")
    }


def band_of(log_odds: float) -> int:
    """Find the number of the band of a reader's log-odds, from the lowest."""
    return sum(log_odds > edge for edge in BANDS)


@lru_cache(maxsize=256)
def speaks(rule: str, band: int | None) -> bool:
    """Tell whether a rule was right beside the verdicts of a band; None is for aligners that do not read."""
    hits = packaged_ledger()[rule]
    everywhere = Hits(sum(one.true for one in hits), sum(one.false for one in hits))
    if min(everywhere.share, hits[-1].share) >= SURE:
        return True
    return everywhere.share >= LIKELY if band is None else hits[band].share >= RIGHT


LEAST_DROP, LEAST_DROP_BESIDE = 0.7, 0.1
"""Smallest falls of P(contradicted), when a word is left out, that make it a deciding word of the sentence, and of the
evidence beside it. From 0.7 on, three of four words of a sentence are indeed wrong; from 0.1 on, half of them."""
CONTRADICTS = 0.5  # P(contradicted) from which the evidence alone contradicts a sentence

Ask = Callable[[Sequence[str], Sequence[str]], Sequence[Support]]  # of passages and claims


def explained(report: Report, ask: Ask) -> Report:
    """Add the words that decide to those sentences of a report that an aligner alone calls contradicted."""
    passages = report.prompt.passages
    names = cited_names(passages)

    def one(sentence: SentenceScore) -> SentenceScore:
        if sentence.verdict != "contradicted" or sentence.contrasts or sentence.evidence is None:
            return sentence
        prose = without_marks(sentence.text, marks_in(sentence.text, names=names))
        words = deciding_words(prose, sentence.evidence, passages, ask)
        return sentence if words is None else replace(sentence, contrasts=(words,))

    return replace(report, sentences=tuple(map(one, report.sentences)))


def deciding_words(sentence: str, evidence: Evidence, passages: Sequence[str], ask: Ask) -> Contrast | None:
    """Find the word of a sentence that decides, beside that of its evidence; None if no single one does.

    Each word that may decide is left out in turn, and P(contradicted) asked again.
    """
    claim, chunk = parse(sentence), parse(quotation(evidence.text))
    spans = list(_spans(claim))
    whole, *without = ask(passages, [sentence, *(_left_out(claim, span) for span in spans)])
    ours = _largest_drop(whole, spans, without, LEAST_DROP)
    if ours is None:
        return None
    spans = list(_spans(chunk, known=claim.stems))
    title = names_of(passages[evidence.passage]).title
    texts = (evidence.text, *(_left_out(chunk, span) for span in spans))
    alone, *without = (ask([Passage(text, title=title)], [sentence])[0] for text in texts)
    contradicts = (alone.contradicted or 0.0) >= CONTRADICTS
    theirs = _largest_drop(alone, spans, without, LEAST_DROP_BESIDE) if contradicts else None
    said = "" if theirs is None else chunk.written(theirs[0], theirs[-1])
    return Contrast("reading", claim.written(ours[0], ours[-1]), said, evidence.passage)


def _spans(side: ParsedText, known: AbstractSet[str] = frozenset()) -> Iterator[range]:
    """Yield the places of each word that may decide, and whole names and quantities, except those that are known."""
    longer = [*side.name_spans, *(range(one.first, one.last + 1) for one in side.quantities)]
    inside = {place for span in longer for place in span}
    single = [
        range(n, n + 1) for n, t in enumerate(side.tokens) if n not in inside and (t.content or n in side.negators)
    ]
    for span in sorted((*longer, *single), key=lambda span: span[0]):
        if not {side.tokens[place].stem for place in span} <= known:
            yield span


def _left_out(side: ParsedText, span: range) -> str:
    first, last = side.tokens[span[0]], side.tokens[span[-1]]
    return " ".join((side.text[: first.start] + side.text[last.end :]).split())


def _largest_drop(whole: Support, spans: Sequence[range], without: Sequence[Support], least: float) -> range | None:
    drops = [(whole.contradicted or 0.0) - (support.contradicted or 0.0) for support in without]
    largest = max(drops, default=-1.0)
    return spans[drops.index(largest)] if largest >= least else None
