"""The verifier: scores the sentences of an answer against the passages, by their text alone."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from syncheck import checkpoint
from syncheck.aggregators import Aggregator
from syncheck.aggregators.aggregator import check_schema
from syncheck.aligners.protocol import at_effort, require_aligner
from syncheck.base.checks import GivenPassages, check_sequence, check_text, check_texts, given_passages, names_of
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.base.printable import summary
from syncheck.checkpoint import fetched
from syncheck.citations import check_citations, citation_pattern
from syncheck.config import MonitorConfig
from syncheck.contrasts.contrast import explained
from syncheck.features.relevance import rated
from syncheck.features.schemas import ALIGNER_ALONE, feature_schema, require_text_schema
from syncheck.reading import Claim
from syncheck.results import Report
from syncheck.results.protocol import ProtocolEvent, Reveal
from syncheck.results.types import Effort, Query, SentenceSpan
from syncheck.scoring import SentenceScorer, report_of
from syncheck.text.sentences import AnswerSegmenter, spans_of
from syncheck.watching.growing import Continuations, GrowingText
from syncheck.watching.text_watch import TextWatch, watch, watch_async

if TYPE_CHECKING:
    import torch

    from syncheck.aligners import Aligner


class Verifier:
    """Scores the sentences of any model's answers for faithfulness to passages, without a language model.

    Parameters
    ----------
    aligner
        Scores sentences against the passages; None takes the best one on this machine: the reader, if its encoder is
        installed or in the cache of Hugging Face, otherwise the bundled one, with a warning.
    config
        Sentences, features and thresholds. If config and aggregator are None, the verifier is the bundled one,
        ``generic``, which assumes that half of the sentences are faithful: with the packaged reader or the bundled
        aligner in the form that was trained with it, with another aligner by its support alone.
    aggregator
        Turns the features of the config's schema into P(faithful); None leaves sentences without a score (status
        ``no_aggregator``), unless the verifier is ``generic``.
    trained_on
        Digests of the questions that the aggregator was trained on; see :func:`syncheck.training.question_digests`.
    name
        Name of a bundled verifier, shown in reports.
    effort
        How much the reader reads; None leaves it at its own, ``balanced``. See :meth:`with_effort`.
    device
        Where an aligner that is loaded here runs.

    Raises
    ------
    InputError
        If the config's schema has features that only a language model's signals give, or the effort is unknown.
    MismatchError
        If the aggregator expects features other than those of the config's schema, or another order.
    WrongTypeError
        If ``aligner`` is not an aligner.

    Notes
    -----
    Threads may share a verifier; results are the same, to the last bit, as in a single thread.

    Examples
    --------
    >>> from syncheck import Verifier
    >>> verifier = Verifier()
    >>> report = verifier.check(
    ...     question="When did it open?", passages=["The mill opened in 1803."], answer="It opened in 1903."
    ... )
    >>> [sentence.verdict for sentence in report.sentences]
    ['contradicted']
    """

    def __init__(
        self,
        aligner: Aligner | None = None,
        *,
        config: MonitorConfig | None = None,
        aggregator: Aggregator | None = None,
        trained_on: Iterable[str] = (),
        name: str | None = None,
        effort: Effort | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        require_aligner(aligner)
        if config is None and aggregator is None:
            name, config, aggregator, aligner = checkpoint.generic_parts(aligner, device)
        self.config = config or MonitorConfig(schema=ALIGNER_ALONE)
        require_text_schema(self.config.schema)
        self.schema = feature_schema(self.config.schema, ())
        if aggregator is not None:
            check_schema(aggregator.schema, self.schema)
        self.aligner = at_effort(aligner, effort)
        self.aggregator = aggregator
        self.trained_on = frozenset(trained_on)
        self.name = name

    def __repr__(self) -> str:
        aggregator = "no" if self.aggregator is None else self.aggregator.kind
        aligner = "no aligner" if self.aligner is None else type(self.aligner).__name__
        return summary(self, f"{self.schema.version}, {aggregator} aggregator, {aligner}")

    def check(
        self,
        answer: str | None = None,
        *,
        passages: GivenPassages,
        question: str = "",
        sentences: Sequence[str] | None = None,
        citation: str | None = None,
    ) -> Report:
        """Score the sentences of an answer, and check its citations.

        Parameters
        ----------
        answer
            The answer, by whichever model. Reasoning before it, between tags such as ``<think>`` and ``</think>`` or
            before a closing one, has no sentences; give it as ``sentences`` to have it scored.
        passages
            What it is checked against: one or several strings, :class:`~syncheck.Passage` or mappings with ``text`` and
            perhaps ``id``, ``title`` and ``url``; empty if it is known that there are none.
        question
            The question that it answers; some aligners read it.
        sentences
            The sentences of the answer, in place of ``answer``; joined as they are, they are the answer.
        citation
            Regular expression of the answer's citation marks, whose first group, if any, holds numbers or names of
            passages. None finds the usual forms; see :doc:`citations`.

        Returns
        -------
        Report
            Sentences with score, verdict, evidence and contrasts; they have no tokens.

        Raises
        ------
        InputError
            If neither or both of ``answer`` and ``sentences`` are given, or a text has a lone surrogate.
        WrongTypeError
            If an argument is not a text.
        """
        query = self.query(question=question, passages=passages)
        return self.answer(query, answer, sentences=sentences, citation=citation)

    def check_many(self, records: Iterable[Mapping[str, Any]]) -> Iterator[Report]:
        """Score many answers; yield their reports in order.

        Parameters
        ----------
        records
            The arguments of :meth:`check` for each answer. Passages that follow each other unchanged are read once.

        Yields
        ------
        Report

        Raises
        ------
        InputError, WrongTypeError
            As in :meth:`check`, and if a record is no mapping, lacks passages, or has other fields, such as ``id``,
            when the answer's turn comes.
        """
        last: object = None
        for number, record in enumerate(records):
            given = _arguments(record, f"records[{number}]")
            answer, sentences, citation = (given.pop(name, None) for name in ("answer", "sentences", "citation"))
            query = self.query(**given)
            known = (query, [*map(names_of, query.passages)], citation)
            if known != last:
                last, scorer = known, self.scorer(query, citation=citation)
            yield self._checked(scorer, answer, sentences)

    def answer(
        self,
        query: Query,
        response: str | None = None,
        *,
        sentences: Sequence[str] | None = None,
        citation: str | None = None,
    ) -> Report:
        """Score the sentences of an answer to a query; otherwise as :meth:`check`."""
        return self._checked(self.scorer(query, citation=citation), response, sentences)

    def watch_text(
        self,
        *,
        passages: GivenPassages,
        question: str = "",
        reveal: Reveal = "verified",
        stop_below: float | None = None,
        stop_after: bool = True,
        at_once: int = 1,
        passage_ids: Sequence[str] | None = None,
        citations: bool = False,
    ) -> TextWatch:
        """Score an answer while its text arrives, whichever model writes it.

        Parameters
        ----------
        passages, question
            As in :meth:`check`.
        reveal, stop_below, stop_after, at_once, passage_ids
            As in :class:`syncheck.watching.TextWatch`.
        citations
            True checks the answer's citations at its end, for its report.

        Returns
        -------
        TextWatch
            A context manager that takes the text and returns events.
        """
        query = self.query(question=question, passages=passages)
        return self.watched(
            query,
            reveal=reveal,
            stop_below=stop_below,
            stop_after=stop_after,
            at_once=at_once,
            passage_ids=passage_ids,
            finish=self.cited if citations else None,
        )

    def watched(self, query: Query, *, reasoning: bool = True, **options: Any) -> TextWatch:  # noqa: ANN401
        """Make the :class:`syncheck.watching.TextWatch` of an answer; without ``reasoning``, all text is the answer."""
        segmenter = AnswerSegmenter(self.config.segmenter, reasoning=reasoning)
        answer = GrowingText(self.scorer(query), segmenter)
        return TextWatch(answer, query, has_scores=self.aggregator is not None, **options)

    def watch(
        self,
        pieces: Iterable[str],
        *,
        passages: GivenPassages,
        question: str = "",
        **options: Any,
    ) -> Iterator[ProtocolEvent]:
        """Score the answer in a stream of text, to its end or until ``stop_below`` ends it; then close the stream.

        Parameters
        ----------
        pieces
            The pieces of an answer. Of a list or another sequence, eight sentences are scored together, unless
            ``at_once`` is given.
        passages, question
            As in :meth:`check`.
        **options
            As in :meth:`watch_text`.

        Yields
        ------
        ProtocolEvent
            See :mod:`syncheck.results.protocol`; errors are those of :class:`syncheck.watching.TextWatch`.
        """
        return watch(pieces, partial(self.watch_text, passages=passages, question=question), **options)

    def watch_async(
        self,
        pieces: AsyncIterable[str],
        *,
        passages: GivenPassages,
        question: str = "",
        **options: Any,
    ) -> AsyncIterator[ProtocolEvent]:
        """Score the answer in an asynchronous stream of text; otherwise as :meth:`watch`."""
        return watch_async(pieces, lambda: self.watch_text(passages=passages, question=question, **options))

    def explain(self, report: Report) -> Report:
        """Add words side by side to sentences of a report that the aligner alone calls contradicted.

        The contrast of such a sentence, of the kind ``reading``, has the words of it and of its evidence without which
        the aligner finds no contradiction. To find them, the aligner reads each of these sentences some 20 to 40 times,
        with one word left out; :meth:`check` does not do so. Other sentences stay as they are.
        """
        return report if self.aligner is None else explained(report, self.aligner.align)

    def rated(self, report: Report) -> Report:
        """Add the ``relevance`` of its sentences to a report; without a question, InputError."""
        return rated(report)

    def cited(self, report: Report, *, citation: str | re.Pattern[str] | None = None) -> Report:
        """Check the citations of a report, by whichever monitor; :meth:`check` does so by itself.

        Each sentence with citations is scored once more against each passage that it cites, alone.
        """
        pattern, threshold = citation_pattern(citation), self.config.backtrack_threshold
        return check_citations(report, partial(self.scorer, citation=pattern), threshold=threshold, pattern=pattern)

    def with_prior(self, prior: float) -> Self:
        """Copy this verifier for text with another share of faithful sentences.

        Parameters
        ----------
        prior
            Expected share of faithful sentences, in (0, 1). It shifts the log-odds of every score by the same amount;
            the order of scores, the thresholds of ``config`` and the guarantee of a calibrated threshold stay.

        Raises
        ------
        InputError
            If there is no aggregator, or the share of faithful sentences for which its probabilities hold is not known.
        """
        if self.aggregator is None:
            raise InputError("a prior shifts scores, and this verifier has none; train it first")
        return self.replaced(aggregator=replace(self.aggregator, prior=prior))

    def with_effort(self, effort: Effort) -> Self:
        """Copy this verifier with another effort of its aligner: ``fast``, ``balanced`` (its own) or ``thorough``.

        See :class:`syncheck.aligners.ReaderAligner`. An unknown effort, or any for another aligner, raises InputError.
        """
        return self.replaced(aligner=at_effort(self.aligner, effort))

    def replaced(self, **parts: Any) -> Self:
        """Copy this verifier with other parts, given as keyword arguments of the class."""
        own = ("aligner", "config", "aggregator", "trained_on", "name")
        return type(self)(**{name: getattr(self, name) for name in own} | parts)

    def query(self, *, passages: GivenPassages, question: str = "") -> Query:
        """Take a question and passages; WrongTypeError or InputError for anything else."""
        check_text(question, "question")
        return Query(question, given_passages(passages, "passages"))

    def scorer(self, query: Query, *, citation: str | re.Pattern[str] | None = None) -> SentenceScorer:
        """Make the scorer for sentences of answers to one query, which reads its passages once."""
        return SentenceScorer(
            query,
            config=self.config,
            aggregator=self.aggregator,
            aligner=self.aligner,
            monitor=self.name,
            citation=citation_pattern(citation),
        )

    def continuations(self, query: Query) -> Continuations:
        """Read and score continuations of answers to a query, for a decoder that chooses between them."""
        return Continuations(self.scorer(query), self.config.segmenter)

    def cut(self, text: str) -> list[SentenceSpan]:
        """Cut an answer into sentences; reasoning has none."""
        segmenter = AnswerSegmenter(self.config.segmenter)
        segmenter.push(text)
        segmenter.finish()
        return segmenter.spans

    def save_pretrained(self, directory: str | Path) -> None:
        """Write the verifier to a folder, without pickle; :meth:`from_pretrained` reads it."""
        checkpoint.write(directory, self)

    @classmethod
    def from_pretrained(
        cls,
        directory: str | Path,
        *,
        aligner: Aligner | None = None,
        device: str | torch.device = "cpu",
        revision: str | None = None,
        **hub_options: Any,
    ) -> Self:
        """Load a verifier, or a monitor that reads text alone; runs no code from there.

        Parameters
        ----------
        directory
            The folder, or a repository ``owner/name`` of the Hugging Face Hub if there is no folder of that name.
        aligner
            An instance of the aligner that it was trained with; None loads it.
        device
            Where an aligner that is loaded here runs.
        revision
            Branch, tag or commit of a repository; None is its main branch.
        **hub_options
            For a repository: ``token``, ``cache_dir``, and ``local_files_only=True`` to take it from the cache.

        Raises
        ------
        CheckpointError
            If a file is missing or damaged, or a repository cannot be fetched.
        InputError
            If the folder contains a monitor that needs a language model's signals, or a revision is given for a folder.
        MismatchError
            If it was trained with another aligner.
        """
        stored = checkpoint.read(fetched(directory, revision=revision, **hub_options))
        require_text_schema(stored.config.schema)
        return cls(
            stored.aligner(aligner, device=device),
            config=stored.config,
            aggregator=stored.aggregator(),
            trained_on=stored.trained_on,
            name=stored.name,
        )

    def _checked(self, scorer: SentenceScorer, response: str | None, sentences: Sequence[str] | None) -> Report:
        started = time.perf_counter()
        if (response is None) == (sentences is None):
            found = "neither" if response is None else "both"
            raise InputError(f"pass either the answer or its sentences; found {found}")
        if sentences is None:
            check_text(response, "answer")
            assert response is not None
            spans = self.cut(response)
        else:
            check_sequence(sentences, "sentences", of="strings")
            check_texts(sentences, "sentences")
            response, spans = "".join(sentences), spans_of(sentences)
        claims = [Claim(response[span.start : span.end], span) for span in spans]
        (scored,) = scorer.claims([claims], earlier=[()])
        report = report_of(scorer, response, scored, stop=None, seconds=time.perf_counter() - started)
        return self.cited(report, citation=scorer.citation)


def _arguments(record: object, place: str) -> dict[str, Any]:
    """Take the arguments of :meth:`Verifier.check` from a record; InputError or WrongTypeError if it has others."""
    if not isinstance(record, Mapping):
        found = type(record).__name__
        raise WrongTypeError(f"{place} must be a mapping with the arguments of Verifier.check; found {found}")
    names = ("passages", "question", "answer", "sentences", "citation")
    if "passages" not in record or not record.keys() <= set(names):
        raise InputError(
            f"{place} must have the arguments of Verifier.check as its fields: passages, answer or sentences, and "
            f"perhaps question and citation; found {', '.join(map(repr, record)) or 'none'}. Leave out the others"
        )
    return dict(record)


def require_verifier(verifier: object) -> None:
    """Raise WrongTypeError for anything but a verifier."""
    if not isinstance(verifier, Verifier):
        raise WrongTypeError(f"expected a Verifier, as Verifier() makes; found {type(verifier).__name__}")
