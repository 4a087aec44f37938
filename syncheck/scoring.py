"""Scoring of claims: support, features, aggregator, status and verdict."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache, partial

import numpy as np

from syncheck.aggregators import Aggregator
from syncheck.aggregators.aggregator import answer_scale_of
from syncheck.aligners import Aligner, AskedAligner, Unaligned, languages_of, reads_answers
from syncheck.aligners.absence import Absence, Presence, absence_in, against, logit, look_for
from syncheck.base.checks import check_share, cited_names
from syncheck.base.errors import NotReadyError
from syncheck.config import MonitorConfig
from syncheck.contrasts.contrast import contrast_with, with_answers
from syncheck.contrasts.parsing import in_notation_of, parse
from syncheck.contrasts.rules import Difference
from syncheck.features.relevance import Asked
from syncheck.features.schemas import TEXT_FEATURES, SentenceText, feature_schema, is_of_paper, needs_signals
from syncheck.features.sentence import read_log_odds, sentence_features, text_features
from syncheck.reading import Claim, Context, EarlierSentences
from syncheck.reading.claim import says_not_stated, statement
from syncheck.reading.evidence import BEST_CHUNKS
from syncheck.results import Report
from syncheck.results.types import (
    WITHOUT_CLAIM,
    Contrast,
    Evidence,
    Query,
    RagPrompt,
    Remark,
    SentenceFeatures,
    SentenceScore,
    SentenceSignals,
    SentenceSpan,
    Status,
    Support,
    TokenSignals,
    Verdict,
)
from syncheck.text.markup import marks_in
from syncheck.text.words import LexicalShares, foreign_language, packaged_rarity

CONTRADICTED_ABOVE = 0.8
"""P(contradicted) above which a sentence below both thresholds gets the verdict ``contradicted``; the reader is then
right about 85 % of held-out claims, and above 0.5 about 78 %."""
TEXTS_KEPT = 256
"""Number of sentences and chunks of a context that are cached in the form that the rules read, and compared."""
_TEXT_ONLY = frozenset(TEXT_FEATURES) - {shares.name for shares in fields(LexicalShares)}


@dataclass(slots=True)
class _Judgement:
    claim: Claim
    read: str
    """The claim with its quantities written as in the passages that have the same ones."""
    foreign: str | None = None
    """Why the aligner does not read it: its language, or that of the passages."""
    support: Support | None = None
    unaligned: str | None = None
    """Why the aligner found no support."""
    absence: Absence | None = None
    """What it says that the passages do not tell, if it says so."""
    presence: Presence | None = None
    """Whether the passages tell it, if an aligner that reads has looked for it."""
    features: SentenceFeatures = field(init=False)
    status: Status = "no_aggregator"
    reason: str | None = None
    score: float | None = None
    attribution: dict[str, float] = field(default_factory=dict)
    contrasts: tuple[Contrast, ...] = ()
    remarks: tuple[Remark, ...] = ()
    verdict: Verdict | None = None

    def result(self, latency_ms: float | None) -> SentenceScore:
        """Build the scored sentence from all that became known."""
        span, has_tokens = self.claim.span, self.claim.signals is not None
        return SentenceScore(
            text=self.claim.text,
            start=span.start,
            end=span.end,
            token_start=span.token_start if has_tokens else None,
            token_end=span.token_end if has_tokens else None,
            score=self.score,
            status=self.status,
            features=self.features.to_dict(),
            reason=self.reason,
            attribution=self.attribution,
            evidence=None if self.status in ("not_a_claim", "degenerate") else self._evidence(),
            latency_ms=latency_ms,
            truncated=span.truncated,
            verdict=self.verdict,
            remarks=self.remarks,
            contrasts=self.contrasts,
        )

    def _evidence(self) -> Evidence | None:
        told = None if self.presence is None else self.presence.evidence
        return told or (None if self.support is None else self.support.evidence)


class SentenceScorer:
    """Scores the sentences of answers to one query.

    Without an aggregator, sentences get the status ``no_aggregator``; without an aligner, ``align_score`` is not
    measured. The abbreviations of ``config`` end no sentence of the passages either. ``monitor`` is the name of a
    bundled monitor, for the report, and ``citation`` the pattern of citation marks, if it is not one of the known ones.
    """

    def __init__(
        self,
        query: Query,
        *,
        config: MonitorConfig,
        aggregator: Aggregator | None,
        aligner: Aligner | None,
        monitor: str | None = None,
        citation: re.Pattern[str] | None = None,
    ) -> None:
        self.query = query
        self.citation, self._names = citation, cited_names(query.passages)
        self.monitor = monitor
        self.answer_scale = answer_scale_of(monitor, aggregator)
        self._unsupported_below, self._supported_from = config.verdict_thresholds
        self._schema = feature_schema(config.schema, config.layers or ())
        self._needs_signals = needs_signals(config.schema)
        self._scores_every_sentence = is_of_paper(config.schema)
        self._aggregator = aggregator
        self._languages = None if aligner is None else languages_of(aligner)
        reads_both = reads_answers(aligner) and not self._scores_every_sentence
        self._question = query.question if reads_both else None
        self._context = Context(query, languages=self._languages, abbreviations=config.segmenter.abbreviations)
        self._aligner = None if aligner is None else AskedAligner(aligner, query.question, self._context.index)
        self._reads_text = query.has_context and not _TEXT_ONLY.isdisjoint(self._schema.names)
        self._parse = lru_cache(TEXTS_KEPT)(parse)
        self._compare = lru_cache(TEXTS_KEPT)(partial(contrast_with, read=self._parse))

    @property
    def prompt(self) -> RagPrompt:
        """The query as the prompt of the monitored model; NotReadyError if text alone is read."""
        if not isinstance(self.query, RagPrompt):
            raise NotReadyError("text alone is scored here, without a language model, so there is no prompt")
        return self.query

    @property
    def has_scores(self) -> bool:
        """True if there is an aggregator, without which no sentence has a score."""
        return self._aggregator is not None

    def answers(
        self,
        answers: Sequence[Sequence[SentenceSignals]],
        *,
        earlier: Sequence[Sequence[SentenceScore]],
        since: float | None = None,
    ) -> list[list[SentenceScore]]:
        """Score the next sentences of several answers together, as measured; see :meth:`claims`."""
        return self.claims([[Claim.measured(s) for s in answer] for answer in answers], earlier=earlier, since=since)

    def claims(
        self,
        answers: Sequence[Sequence[Claim]],
        *,
        earlier: Sequence[Sequence[SentenceScore]],
        since: float | None = None,
    ) -> list[list[SentenceScore]]:
        """Score the next claims of several answers together, in one batch of the aligner.

        ``earlier`` has the scores of all earlier sentences of each answer, and ``since`` is the value of
        ``time.perf_counter()`` when the claims were known to be complete; None for given responses.
        """
        judged = [
            [self._begun(claim) for claim in self._in_order(answer, scored)]
            for answer, scored in zip(answers, earlier, strict=True)
        ]
        every = [one for answer in judged for one in answer]
        if not every:
            return [[] for _ in answers]
        self._align(every)
        self._look_for_absent([one for one in every if one.absence is not None and one.support is not None])
        for answer, scored in zip(judged, earlier, strict=True):
            self._measure(answer, scored)
        for one in every:
            one.status, one.reason = self._status(one)
        self._aggregate([one for one in every if one.status == "scored"])
        for one in every:
            self._describe(one)
        latency_ms = None if since is None else (time.perf_counter() - since) * 1e3
        return [[one.result(latency_ms) for one in answer] for answer in judged]

    def _in_order(self, claims: Sequence[Claim], scored: Sequence[SentenceScore]) -> Iterator[Claim]:
        """Read each claim after what it stands under, and after the question that it answers in short."""
        texts = [*(sentence.text for sentence in scored), *(claim.text for claim in claims)]
        for number, claim in enumerate(claims, len(scored)):
            yield self._marked(claim).after(texts[:number], question=self._question)

    def _marked(self, claim: Claim) -> Claim:
        marks = marks_in(claim.text, names=self._names, pattern=self.citation)
        return replace(claim, marks=marks) if marks else claim

    def _read(self, claim: Claim) -> str:
        """Write a claim's quantities as the closest passages do, in English."""
        if not claim.is_checkable or not self.query.has_context or foreign_language(claim.text, {"en"}):
            return claim.read
        chunks = [self._context.chunks[n].read for n in self._context.index.best(statement(claim.read), BEST_CHUNKS)]
        return in_notation_of(self._parse(claim.read), [self._parse(chunk) for chunk in chunks])

    def features(self, claim: Claim, support: Support | None, earlier: EarlierSentences) -> SentenceFeatures:
        """Compute the features of one claim."""
        text = SentenceText(
            claim.read,
            None if claim.signals is None else len(claim.signals.token_ids),
            self._context.question_words,
            self._context.lexicon,
            support,
            earlier,
        )
        return sentence_features(self._schema, claim.signals, text, text_values=self._text_values(claim, support))

    def _text_values(self, claim: Claim, support: Support | None) -> dict[str, float] | None:
        context = self._context
        if not self._reads_text or context.wordings is None or context.lexicon is None:
            return None
        return text_features(
            claim.read,
            logit=None if support is None else _log_odds(support),
            read=read_log_odds(support),
            chunks=context.wordings,
            best=context.index.best(statement(claim.read), BEST_CHUNKS),
            lexicon=context.lexicon,
            rarity=packaged_rarity(),
            compared=claim.statement,
            compare=self._compare,
        )

    def _foreign(self, claim: Claim) -> str | None:
        """Explain why the aligner does not read the language of the claim or the context; None if it does."""
        if self._languages is None or not claim.is_checkable:
            return None
        name, language = "context", self._context.language
        if language is None:
            name, language = "sentence", foreign_language(claim.read, self._languages)
        read = ", ".join(sorted(self._languages))
        return None if language is None else f"the {name} is in {language!r}; the aligner reads {read}"

    def _begun(self, claim: Claim, *, in_any_schema: bool = False) -> _Judgement:
        """Begin to judge a claim; what it states beside an absence is read alone."""
        absence = None
        is_read = in_any_schema or not self._needs_signals
        if is_read and self.query.has_context and says_not_stated(claim.prose):
            absence = absence_in(claim.prose, self.query.question)
        if absence and absence.rest:
            claim = replace(claim, reading=absence.rest, answering=None)
        return _Judgement(claim, self._read(claim), self._foreign(claim), absence=absence)

    def _look_for_absent(self, judged: Sequence[_Judgement]) -> None:
        """Find whether the passages tell what claims call absent."""
        said = [(one.absence, one.support) for one in judged if one.absence is not None and one.support is not None]
        if self._aligner is not None and said:
            presences = look_for(said, self._context.index, self.query.question, self._aligner)
            for one, presence in zip(judged, presences, strict=True):
                one.presence = presence

    def absent(self, sentence: str) -> float | None:
        """Judge P(faithful) of what a sentence calls absent; None if it calls nothing so, or nothing can judge it."""
        one = self._begun(Claim(sentence, SentenceSpan(0, 0, len(sentence), 0, 0)), in_any_schema=True)
        if one.absence is not None:
            self._align([one])
            self._look_for_absent([one] if one.support is not None else [])
        return None if one.presence is None else one.presence.absent

    def relevance(self, sentence: str) -> float | None:
        """Rate how likely a sentence answers what was asked, in [0, 1]; None without a question."""
        return self._asked.relevance(sentence) if self.query.question.strip() else None

    @cached_property
    def _asked(self) -> Asked:
        return Asked(self._context)

    def _align(self, judged: Sequence[_Judgement]) -> None:
        wanted = [one for one in judged if one.claim.is_checkable and one.foreign is None]
        if self._aligner is None or not self.query.has_context or not wanted:
            return
        opposites = [one.claim.opposite for one in wanted if one.claim.opposite is not None]
        supports = self._aligner(self._context.passages, [*(one.read for one in wanted), *opposites])
        others = iter(supports[len(wanted) :])
        for one, support in zip(wanted, supports, strict=False):
            other = None if one.claim.opposite is None else next(others)
            if isinstance(support, Unaligned):
                one.unaligned = support.reason
            else:
                one.support = against(support, other) if isinstance(other, Support) else support

    def _measure(self, answer: Sequence[_Judgement], scored: Sequence[SentenceScore]) -> None:
        before = EarlierSentences.of((score.text, score.features.get("align_score")) for score in scored)
        for one in answer:
            one.features = self.features(one.claim, one.support, before)
            before = before.followed_by(one.claim.text, None if one.support is None else one.support.score)

    def _status(self, one: _Judgement) -> tuple[Status, str | None]:
        """Choose the status of a claim, and the reason why there is no score."""
        claim = one.claim
        broken = None if claim.signals is None else not_finite(claim.signals, has_context=self.query.has_context)
        nothing = None if self._scores_every_sentence else claim.without_claim
        reasons: list[tuple[Status, str | None]] = [
            ("failed", broken),
            ("no_context", None if self.query.has_context else "the context is empty"),
            ("not_checkable", None if claim.is_checkable else "no letter or digit"),
            ("not_checkable", "no token of its own" if claim.is_tokenless else None),
            nothing or ("not_a_claim", None),
            ("unsupported_language", one.foreign),
            ("failed", one.unaligned),
        ]
        known: Status = "no_aggregator" if self._aggregator is None else "scored"
        return next(((status, reason) for status, reason in reasons if reason is not None), (known, None))

    def _aggregate(self, scored: Sequence[_Judgement]) -> None:
        if self._aggregator is None or not scored:
            return
        rows = np.stack([one.features.values for one in scored])
        for one, score in zip(scored, self._aggregator.score(rows), strict=True):
            one.score, one.attribution = float(score), self._aggregator.attribution(one.features.values)
            if one.claim.opposite is not None and one.support is not None and not self._needs_signals:
                one.score, one.attribution = float(self._aggregator.at_prior(one.support.score)), {}
            if one.absence is not None and one.presence is not None:
                absent = one.presence.absent
                one.score, one.attribution = (min(one.score, absent) if one.absence.rest else absent), {}

    def _describe(self, one: _Judgement) -> None:
        one.contrasts = self._contrasts_with(one)
        one.remarks = one.claim.remarks(self._context)
        one.verdict = self._verdict_on(one)
        is_open = one.verdict not in (None, "supported")
        if is_open and self._context.passages != self.query.passages:
            one.remarks = (*one.remarks, "passages_not_read")

    def _verdict_on(self, one: _Judgement) -> Verdict | None:
        if one.score is None:
            return None
        if one.score >= self._unsupported_below:
            return "supported" if one.score >= self._supported_from else "doubtful"
        against = None if one.support is None else one.support.contradicted
        against = against if one.presence is None else one.presence.told
        told = against is not None and against > CONTRADICTED_ABOVE and "no_passage_touches" not in one.remarks
        return "contradicted" if one.contrasts or told else "unsupported"

    def _contrasts_with(self, one: _Judgement) -> tuple[Contrast, ...]:
        """Find the contrasts with the context, if the score depends on them or is below ``supported``."""
        sentence, score = one.claim.read, one.score
        if score is None or says_not_stated(sentence):
            return ()
        unneeded = score >= self._supported_from and "contrasts" not in self._schema.names
        if unneeded or foreign_language(sentence, {"en"}):
            return ()
        stated, index = one.claim.statement, self._context.index
        best = index.best(statement(sentence), BEST_CHUNKS)
        compared = self._compare(stated, with_answers([chunk.read for chunk in index.chunks], best))
        nearest = index.chunks[best[compared.chunk]].passage if best else 0
        spoken = compared.that_speak(read_log_odds(one.support))
        return tuple(
            Contrast(words.kind, words.sentence, words.evidence, nearest)
            for words in spoken
            if not any(_is_within(words, other) for other in spoken)
        )


def report_of(
    scorer: SentenceScorer,
    response: str,
    sentences: Sequence[SentenceScore],
    *,
    stop: str | None,
    seconds: float | None,
) -> Report:
    """Build the report of an answer whose text alone was read; arguments as in :class:`syncheck.Report`."""
    tokens = TokenSignals.concatenate([], text=response, char_spans=np.empty((0, 2)))
    return Report(
        scorer.query,
        response,
        tuple(sentences),
        tokens,
        stop,
        seconds,
        monitor=scorer.monitor,
        answer_scale=scorer.answer_scale,
    )


def check_stop_below(stop_below: float | None, *, has_scores: bool) -> None:
    """Refuse a threshold outside [0, 1] (InputError), or any threshold without scores (NotReadyError)."""
    if stop_below is None:
        return
    check_share(stop_below, "stop_below")
    if not has_scores:
        raise NotReadyError("the monitor has no aggregator, so no sentence has a score; train one with Monitor.fit")


def falls_below(sentence: SentenceScore, threshold: float) -> bool:
    """Tell whether a sentence that makes a claim has a score below the threshold, or no score."""
    if sentence.status in WITHOUT_CLAIM:
        return False
    return sentence.score is None or sentence.score < threshold


def first_below(sentences: Sequence[SentenceScore], threshold: float | None) -> int | None:
    """Find the index of the first sentence that falls below a threshold; None if none does."""
    if threshold is None:
        return None
    return next((index for index, sentence in enumerate(sentences) if falls_below(sentence, threshold)), None)


def _is_within(difference: Difference, other: Difference) -> bool:
    """Tell whether another difference, such as exchanged names, has the words of this one and more on both sides."""
    words, others = (set(f" {side.sentence} {side.evidence} ".split()) for side in (difference, other))
    return words < others and difference.sentence in other.sentence and difference.evidence in other.evidence


def _log_odds(support: Support) -> float:
    return logit(support.score) if support.log_odds is None else support.log_odds


def not_finite(sentence: SentenceSignals, *, has_context: bool) -> str | None:
    """Name which of the model's outputs for a sentence are not finite, so that it gets no score; None if all are.

    A row of logits must be a distribution, in both branches if there is a context: it may have -inf, for padding of the
    vocabulary, but not for the token itself, and no NaN or +inf. Nor may the tapped hidden states.
    """
    branches = {"": sentence.log_prob}
    if has_context:
        branches[" without the context"] = sentence.log_prob_without_context
    for branch, log_prob in branches.items():
        if not np.isfinite(log_prob).all():
            token = sentence.span.token_start + int(np.argmin(np.isfinite(log_prob)))
            return f"the model's logits{branch} of token {token} are not finite"
    for layer, states in sentence.activations.items():
        if not np.isfinite(states).all():
            return f"the model's hidden states after block {layer} are not finite"
    return None
