"""Reports: responses with their scores, and the search that found them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal

from syncheck.base.checks import check_share
from syncheck.base.errors import InputError, MissingExtraError
from syncheck.base.printable import counted, quoted, summary
from syncheck.base.records import JsonDict
from syncheck.results.spans import SpanDetector, SpanItem, SpanLabels, label_dict
from syncheck.results.types import WITHOUT_CLAIM, Query, SentenceScore, TokenSignals

if TYPE_CHECKING:
    import pandas as pd

Fate = Literal["answer", "repaired", "marked", "kept", "outranked", "pruned", "skipped", "taken_back"]
"""Outcome of a continuation. ``answer``: part of the answer. ``repaired``: part of the answer, in place of a greedy
sentence that did not pass. ``marked``: part of the answer although it did not pass. ``kept``: on a beam that was
abandoned later. ``outranked``: passed, but others were better. ``pruned``: did not pass. ``skipped``: is hidden, since
it did not pass, or since what it announces did not follow; the model continues after it. ``taken_back``: was written
and did not pass."""


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A continuation that a decoder tried, normally one sentence."""

    text: str
    """Empty if the text ended at once."""
    score: float | None
    """P(faithful) in [0, 1], the lowest of its sentences; None if none has a score."""
    fate: Fate
    """One of :data:`Fate`."""
    reason: str
    """Reason for its fate, in words."""
    children: tuple[TraceNode, ...] = ()
    """The continuations that were tried after it."""

    def __repr__(self) -> str:
        return summary(self, self.score, self.fate, quoted(self.text), counted(len(self.children), "continuation"))

    @property
    def size(self) -> int:
        """Number of continuations in this tree."""
        return 1 + sum(child.size for child in self.children)

    def count(self, fate: Fate) -> int:
        """Count the continuations in this tree with a fate."""
        return (self.fate == fate) + sum(child.count(fate) for child in self.children)

    def to_dict(self) -> dict[str, Any]:
        """Convert the tree to values that JSON can represent."""
        children = [child.to_dict() for child in self.children]
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"children": children}


@dataclass(frozen=True, slots=True)
class HiddenSpan:
    """Text that the model wrote and continued from, but that is not part of the response."""

    start: int
    """Its position: the character of the response before which it was written."""
    token_start: int
    """Its position in tokens of the response."""
    text: str
    """The text with the white space around it."""
    token_ids: tuple[int, ...]

    def __repr__(self) -> str:
        return summary(self, f"before character {self.start},", quoted(self.text))


ANSWER_PRIOR = 0.8
"""Share of faithful answers that an answer's score assumes unless another one is given; in RAGTruth's answers to
questions it is 0.825."""
_NEAREST = 1e-6  # least distance from 0 and 1 of a sentence's score when its odds are taken


@dataclass(frozen=True, slots=True)
class AnswerScale:
    """Turns the scores of an answer's sentences into the probability that the whole answer is faithful.

    At even odds, the odds against an answer are ``exp(-offset) * sum((1 - p) / p) ** slope`` over the scores p of its
    sentences, also at even odds. They fall with each score and rise with each further sentence. A value that is not
    finite or outside its range raises InputError.
    """

    offset: float
    """In nats of log-odds."""
    slope: float
    """Above 0; below 1 where a low score tells less of an answer than of a sentence, or errors come together."""
    prior: float = 0.5
    """Share of faithful sentences that the scores assume, in (0, 1)."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.offset) and 0 < self.slope < math.inf and 0 < self.prior < 1):
            raise InputError(
                "the scale of answers needs a finite offset, a finite slope above 0 and a prior between 0 and 1; "
                f"found {self.offset}, {self.slope} and {self.prior}"
            )

    def probability(self, scores: Iterable[float], *, prior: float = ANSWER_PRIOR) -> float:
        """Compute P(the whole answer is faithful), in (0, 1), from one score in [0, 1] or more.

        ``prior`` is the share of faithful answers that is expected, in (0, 1). No score, and a score or a prior outside
        its range, raise InputError.
        """
        given = list(scores)
        for value in given:
            check_share(value, "a score")
        check_share(prior, "prior")
        if not given or prior in (0, 1):
            found = f"{len(given)} scores and {prior}"
            raise InputError(f"expected at least one score, and a prior between 0 and 1; found {found}")
        clipped = (min(max(p, _NEAREST), 1 - _NEAREST) for p in given)
        against = math.fsum((1 - p) / p for p in clipped) * self.prior / (1 - self.prior)
        return 1 / (1 + math.exp(self.slope * math.log(against) - self.offset) * (1 - prior) / prior)


@dataclass(frozen=True, slots=True)
class CitationCounts:
    """Numbers of citations, and of sentences that should have one; those of several answers can be added."""

    statuses: Counter[str] = field(default_factory=Counter)
    """Citations by status."""
    claims: int = 0
    """Sentences with a score."""
    supported: int = 0
    """Those with a supported citation."""

    @classmethod
    def of(cls, sentences: Iterable[SentenceScore]) -> CitationCounts:
        """Count the citations of sentences."""
        given = list(sentences)
        claims = [any(c.status == "supported" for c in s.citations) for s in given if s.score is not None]
        return cls(Counter(cited.status for s in given for cited in s.citations), len(claims), sum(claims))

    def __add__(self, other: CitationCounts) -> CitationCounts:
        claims, supported = self.claims + other.claims, self.supported + other.supported
        return CitationCounts(self.statuses + other.statuses, claims, supported)

    @property
    def precision(self) -> float | None:
        """Share of the checked citations that are supported; None without one."""
        checked = self.statuses.total() - self.statuses["unresolved"]
        return self.statuses["supported"] / checked if checked else None

    @property
    def recall(self) -> float | None:
        """Share of the scored sentences with a supported citation; None without citations or such sentences."""
        return self.supported / self.claims if self.statuses and self.claims else None


_COLUMNS = tuple("text start end token_start token_end status verdict reason truncated latency_ms".split())


@dataclass(frozen=True, slots=True)
class Report:
    """One response with its measurements."""

    prompt: Query
    """The question and the passages; a :class:`~syncheck.RagPrompt` if a language model read them."""
    response: str
    sentences: tuple[SentenceScore, ...]
    """In the order of the response; empty for an empty response."""
    tokens: TokenSignals
    """Signals of all T tokens of the response; none if text alone was read."""
    stop: str | None = None
    """Why generation ended; None for a given response."""
    seconds: float | None = None
    """Wall time from the prompt to the last score; None if it was not measured."""
    spans: SpanLabels | None = None
    """Which characters of the response are wrong, see :meth:`with_spans`; None if no detector has run."""
    monitor: str | None = None
    """Name of the bundled monitor that scored it; None for a monitor of your own."""
    hidden: tuple[HiddenSpan, ...] = ()
    """Text that the model wrote in between, in order, and the response leaves out; see :attr:`written_token_ids`."""
    after_end: str = ""
    """What a given response had after an end-of-text token, without the white space around it: not part of
    ``response``, and not checked."""
    answer_scale: AnswerScale | None = None
    """Scale of :meth:`answer_score`; None for a monitor of your own, for which it was not measured."""

    def __repr__(self) -> str:
        lowest = None if self.lowest is None else f"lowest {self.lowest.score:.2f},"
        return summary(self, f"{counted(len(self.sentences), 'sentence')},", lowest, quoted(self.response))

    @property
    def unscored(self) -> int:
        """Number of sentences without a score, which no threshold has checked."""
        return sum(sentence.score is None for sentence in self.sentences)

    @property
    def faithfulness(self) -> float | None:
        """Mean score of the scored sentences, in [0, 1]; None if no sentence has a score."""
        scores = [s.score for s in self.sentences if s.score is not None]
        return math.fsum(scores) / len(scores) if scores else None

    def answer_score(self, *, prior: float = ANSWER_PRIOR, allow_unscored: bool = False) -> float | None:
        """Compute P(the whole answer is faithful), in (0, 1), from the scores and the number of its sentences.

        The result is None without a scale (see :class:`AnswerScale`), without a scored sentence, and if a sentence that
        claims something has no score, unless ``allow_unscored`` leaves such sentences out; those that claim nothing
        never count. ``prior`` is the share of faithful answers that is expected; outside (0, 1) it raises InputError.
        """
        unchecked = any(s.score is None and s.status not in WITHOUT_CLAIM for s in self.sentences)
        scores = [s.score for s in self.sentences if s.score is not None]
        if self.answer_scale is None or not scores or (unchecked and not allow_unscored):
            return None
        return self.answer_scale.probability(scores, prior=prior)

    @property
    def citation_precision(self) -> float | None:
        """Share of its citations that are supported, of those that could be checked; None if none could."""
        return CitationCounts.of(self.sentences).precision

    @property
    def citation_recall(self) -> float | None:
        """Share of its scored sentences with a supported citation; None if it has no citations or no such sentence."""
        return CitationCounts.of(self.sentences).recall

    @property
    def written_token_ids(self) -> tuple[int, ...]:
        """Token ids of response and hidden text, as the model read them; a replay of them gives these signals."""
        ids, before = self.tokens.token_ids.tolist(), 0
        written: list[int] = []
        for span in self.hidden:
            written += [*ids[before : span.token_start], *span.token_ids]
            before = span.token_start
        return (*written, *ids[before:])

    @property
    def lowest(self) -> SentenceScore | None:
        """The sentence with the lowest score, of equals the first; None if no sentence has a score."""
        return lowest_of(self.sentences)

    def with_spans(self, detector: SpanDetector, *, lang: str = "") -> Report:
        """Copy this report with the labels of a span detector, which :meth:`to_html` and :meth:`to_dict` then show.

        ``detector``, for example from :func:`syncheck.spans.load_span_regressor`, labels the characters of the whole
        response; ``lang`` is the code of its language, for those that use it.
        """
        return replace(self, spans=detector.detect(self.span_item(lang=lang)))

    def span_item(self, *, lang: str = "") -> SpanItem:
        """Convert the response with its question and passages to the form that a span detector takes."""
        question, passages = self.prompt.question, self.prompt.passages
        return SpanItem(id="", lang=lang, question=question, response=self.response, passages=passages)

    def to_dict(self) -> JsonDict:
        """Convert the report to values that JSON can represent; None for values that were not measured."""
        return {
            "question": self.prompt.question,
            "passages": list(self.prompt.passages),
            "response": self.response,
            "faithfulness": self.faithfulness,
            "answer_score": self.answer_score(),
            "citation_precision": self.citation_precision,
            "citation_recall": self.citation_recall,
            "stop": self.stop,
            "seconds": self.seconds,
            "monitor": self.monitor,
            "sentences": [sentence_dict(s) for s in self.sentences],
            "tokens": _token_dicts(self.tokens),
            "spans": None if self.spans is None else label_dict(self.spans),
            "hidden": [asdict(span) for span in self.hidden],
            "after_end": self.after_end,
        }

    def to_json(self) -> str:
        """Write :meth:`to_dict` as one line of JSON, in the response's own letters."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    def to_df(self) -> pd.DataFrame:
        """Build a data frame with a row per sentence and a column per feature; MissingExtraError without pandas."""
        with MissingExtraError.unless("pandas", "data"):
            import pandas as pd
        rows = [{c: getattr(s, c) for c in _COLUMNS} | {"score": s.score} | dict(s.features) for s in self.sentences]
        names = dict.fromkeys(name for s in self.sentences for name in s.features)
        frame = pd.DataFrame(rows, columns=[*_COLUMNS, "score", *names])
        return frame.astype({name: "float64" for name in ("score", *names)})

    def to_html(self, *, title: str = "Faithfulness report") -> str:
        """Build a complete HTML page that needs no other file; see :func:`syncheck.report.render_html`."""
        return self._drawn("html:render_html", title=title)

    def _repr_html_(self) -> str:
        return self._drawn("html:render_fragment")

    def __str__(self) -> str:
        return self._drawn("terminal:render_text")

    def _drawn(self, function: str, **options: Any) -> str:
        """Draw this report alone; what draws it is above this room, and imported when it is first needed."""
        return str(resolve_name(f"syncheck.report.{function}")([Case.of(self)], **options))


@dataclass(frozen=True, slots=True)
class Answer:
    """One decoder's answer to a question."""

    label: str
    """Name of the decoder."""
    report: Report
    dropped: tuple[SentenceScore, ...] = ()
    """Sentences that the decoder tried and took back, with the positions where they would have begun."""
    seconds: float | None = None
    """Wall time of the decoder; None takes that of the report."""
    trace: tuple[TraceNode, ...] = ()
    """The continuations that the decoder tried, as trees; empty for a decoder without a search."""

    def __repr__(self) -> str:
        sentences = counted(len(self.report.sentences), "sentence")
        return summary(self, quoted(self.label), sentences, quoted(self.report.response))

    @property
    def wall_seconds(self) -> float | None:
        """Wall time of the answer in seconds; None if neither it nor its report has one."""
        return self.report.seconds if self.seconds is None else self.seconds

    @property
    def timeline(self) -> tuple[tuple[SentenceScore | None, tuple[SentenceScore, ...]], ...]:
        """Each sentence with those dropped before it; last, under None, those dropped after all sentences."""
        waiting = sorted(self.dropped, key=lambda s: s.start)
        steps: list[tuple[SentenceScore | None, tuple[SentenceScore, ...]]] = []
        for sentence in self.report.sentences:
            tried = tuple(d for d in waiting if d.start <= sentence.start)
            waiting = waiting[len(tried) :]
            steps.append((sentence, tried))
        return (*steps, (None, tuple(waiting))) if waiting else tuple(steps)


@dataclass(frozen=True, slots=True)
class Case:
    """A question, its passages, and the answers to compare."""

    question: str
    passages: tuple[str, ...]
    answers: tuple[Answer, ...]

    def __repr__(self) -> str:
        return summary(self, quoted(self.question), counted(len(self.answers), "answer"))

    @classmethod
    def of(cls, report: Report, *, label: str = "answer") -> Case:
        """Make the case of one report alone."""
        return cls(report.prompt.question, report.prompt.passages, (Answer(label, report),))


def lowest_of(sentences: Iterable[SentenceScore]) -> SentenceScore | None:
    """Find the sentence with the lowest score, of equals the first; None if no sentence has a score."""
    scored = [(s.score, s) for s in sentences if s.score is not None]
    return min(scored, key=lambda pair: pair[0])[1] if scored else None


def sentence_dict(sentence: SentenceScore) -> JsonDict:
    """Convert a sentence to its form in :meth:`Report.to_dict`."""
    return {f.name: getattr(sentence, f.name) for f in fields(sentence)} | {
        "features": _plain(sentence.features),
        "attribution": _plain(sentence.attribution),
        "evidence": None if sentence.evidence is None else asdict(sentence.evidence),
        "remarks": list(sentence.remarks),
        "contrasts": [asdict(contrast) for contrast in sentence.contrasts],
        "citations": [asdict(cited) for cited in sentence.citations],
    }


def _token_dicts(tokens: TokenSignals) -> list[JsonDict]:
    signals = ("log_prob", "log_prob_without_context", "entropy", "kl")
    columns = (tokens.token_ids, tokens.char_spans, *(getattr(tokens, name) for name in signals))
    return [
        {"id": token_id, "text": tokens.text[start:end], "start": start, "end": end}
        | {name: None if math.isnan(value) else value for name, value in zip(signals, values, strict=True)}
        for token_id, (start, end), *values in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _plain(values: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else float(value) for name, value in values.items()}
