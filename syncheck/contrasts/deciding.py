"""Words that decide: those of a sentence and its evidence without which an aligner finds no contradiction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from syncheck.contrasts.parsing import ParsedText, parse
from syncheck.results import Report
from syncheck.results.types import Contrast, Evidence, SentenceScore, Support

LEAST_DROP = 0.1
"""Smallest fall of P(contradicted), when a word is left out, that makes it a deciding word."""
CONTRADICTS = 0.5
"""P(contradicted) from which the evidence alone contradicts a sentence."""

Ask = Callable[[Sequence[str], Sequence[str]], Sequence[Support]]
"""Function that asks an aligner which claims some passages support."""


def explained(report: Report, ask: Ask) -> Report:
    """Add the words that decide to those sentences of a report that an aligner alone calls contradicted."""

    def one(sentence: SentenceScore) -> SentenceScore:
        if sentence.verdict != "contradicted" or sentence.contrasts or sentence.evidence is None:
            return sentence
        words = deciding_words(sentence.text, sentence.evidence, report.prompt.passages, ask)
        return sentence if words is None else replace(sentence, contrasts=(words,))

    return replace(report, sentences=tuple(map(one, report.sentences)))


def deciding_words(sentence: str, evidence: Evidence, passages: Sequence[str], ask: Ask) -> Contrast | None:
    """Find the word of a sentence that decides, beside that of its evidence; None if no single one does.

    Each name, number, negator and other content word is left out in turn, and P(contradicted) asked again: of the
    sentence's in one batch, and of those words of the evidence that the sentence lacks one by one.
    """
    claim, chunk = parse(sentence), parse(evidence.text)
    spans = list(_spans(claim))
    whole, *without = ask(passages, [sentence, *(_left_out(claim, span) for span in spans)])
    ours = _largest_drop(whole, spans, without)
    if ours is None:
        return None
    spans = list(_spans(chunk, known=claim.stems - {claim.tokens[place].stem for place in ours}))
    alone, *without = (ask([text], [sentence])[0] for text in (evidence.text, *(_left_out(chunk, s) for s in spans)))
    theirs = _largest_drop(alone, spans, without) if _against(alone) >= CONTRADICTS else None
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


def _against(found: Support) -> float:
    return found.contradicted or 0.0


def _largest_drop(whole: Support, spans: Sequence[range], without: Sequence[Support]) -> range | None:
    drops = [_against(whole) - _against(found) for found in without]
    best = max(range(len(drops)), key=drops.__getitem__, default=None)
    return None if best is None or drops[best] < LEAST_DROP else spans[best]
