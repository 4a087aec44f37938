"""Growing answers: what a watch reads and scores piece by piece, and candidates for the next piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from syncheck.base.checks import check_text
from syncheck.reading import Claim
from syncheck.results import Report
from syncheck.results.types import SentenceScore, SentenceSpan
from syncheck.scoring import SentenceScorer, report_of
from syncheck.text.sentences import AnswerSegmenter, SegmenterConfig, TextSegmenter


class SentenceReader:
    """Reads candidates for an answer, as guards of decoders need it; ``scorer`` is that of the answer's query."""

    scorer: SentenceScorer

    def claim(self, text: str, earlier: Sequence[str] = ()) -> Claim:
        """Read a sentence of an answer after those before it, as far as its text alone tells."""
        return Claim(text, SentenceSpan(len(earlier), 0, len(text), 0, 0)).after(earlier)

    def absent(self, text: str) -> float | None:
        """Judge P(faithful) of what a sentence says that the passages lack; None if nothing judges it."""
        return self.scorer.absent(text)

    def relevance(self, text: str) -> float | None:
        """Rate how likely a sentence answers what was asked, in [0, 1]; None without a question."""
        return self.scorer.relevance(text)


class Continuations(SentenceReader):
    """Continuations of beginnings of one answer, read as text alone, and scored several in one batch.

    Made by :meth:`syncheck.Verifier.continuations`.
    """

    def __init__(self, scorer: SentenceScorer, config: SegmenterConfig) -> None:
        self.query = scorer.query
        self.scorer = scorer
        self._config = config

    def segmenter(self, beginning: str) -> TextSegmenter:
        """Make a segmenter of what follows a beginning, which ends with a whole sentence or is empty."""
        return TextSegmenter(self._config, after=beginning)

    def scores(
        self,
        texts: Sequence[str],
        spans: Sequence[Sequence[SentenceSpan]],
        *,
        earlier: Sequence[Sequence[SentenceScore]],
        since: float | None = None,
    ) -> list[list[SentenceScore]]:
        """Score sentences of each text, each in the light of the ``earlier`` ones of its answer and those before it.

        ``since`` is the value of ``time.perf_counter()`` when the sentences were complete.
        """
        claims = [
            [Claim(text[span.start : span.end], span) for span in own] for text, own in zip(texts, spans, strict=True)
        ]
        return self.scorer.claims(claims, earlier=earlier, since=since)

    def report(self, text: str, sentences: Sequence[SentenceScore], *, stop: str | None) -> Report:
        """Build the report of an answer, without its time; ``stop`` is as in :class:`syncheck.Report`."""
        return report_of(self.scorer, text, sentences, stop=stop, seconds=None)


class WholeCharacters:
    """Joins pieces of text that may be divided within a character, which UTF-16 writes in two halves."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """Join a piece to the half of a character that was held back before it; return the whole characters."""
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        if piece.isascii():
            return piece
        joined = piece.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        check_text(joined, "a piece")
        return joined

    def finish(self) -> None:
        """Refuse, with an InputError, half a character that was never completed."""
        check_text(self._half, "the last piece")


class GrowingText:
    """An answer that is scored while its text arrives, read as text alone; a context manager.

    ``sentences`` are those that are scored.
    """

    _stop: int | None = None  # of the text that the report has

    def __init__(self, scorer: SentenceScorer, segmenter: AnswerSegmenter) -> None:
        self._scorer = scorer
        self._segmenter = segmenter
        self._pieces = WholeCharacters()
        self.sentences: list[SentenceScore] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    @property
    def text(self) -> str:
        """The answer so far, without half a character at its end."""
        return self._segmenter.text

    @property
    def is_over(self) -> bool:
        """True if the answer has ended, although more text may come: its end was marked in the text."""
        return False

    def feed(self, piece: str) -> int:
        """Add text and return the number of complete sentences without a score.

        Text that turns out to be reasoning takes back all sentences.
        """
        self._segmenter.push(self._pieces.add(piece))
        if self.sentences and self.sentences[0].start not in (span.start for span in self._segmenter.spans[:1]):
            self.sentences.clear()
        return len(self._segmenter.spans) - len(self.sentences)

    def finish(self) -> int:
        """End the text and return the number of complete sentences without a score."""
        self._pieces.finish()
        self._segmenter.finish()
        return len(self._segmenter.spans) - len(self.sentences)

    def score(self, *, since: float) -> None:
        """Score the complete sentences; ``since`` is the value of ``time.perf_counter()`` when they were complete."""
        spans = self._segmenter.spans[len(self.sentences) :]
        claims = [Claim(self.text[span.start : span.end], span) for span in spans]
        self.sentences += self._scorer.claims([claims], earlier=[self.sentences], since=since)[0]

    def cut(self, sentences: int) -> None:
        """End the answer after this many of its sentences."""
        del self.sentences[sentences:]
        self._stop = self.sentences[-1].end if self.sentences else 0

    def report(self, *, stop: str | None, seconds: float) -> Report:
        """Build the report of the answer as scored so far."""
        return report_of(self._scorer, self.text[: self._stop], self.sentences, stop=stop, seconds=seconds)
