"""The verifier: scores the sentences of an answer against the passages, by their text alone."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from syncheck import checkpoint
from syncheck.aggregators import Aggregator
from syncheck.aggregators.aggregator import check_schema
from syncheck.aligners.protocol import Effort, at_effort
from syncheck.base.checks import check_sequence, check_text, check_texts
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.base.printable import summary
from syncheck.checkpoint import fetched
from syncheck.config import MonitorConfig
from syncheck.contrasts.contrast import deciding_words
from syncheck.features.schemas import ALIGNER_ALONE, feature_schema, needs_signals
from syncheck.reading import Claim
from syncheck.results import Report
from syncheck.results.protocol import ProtocolEvent, Reveal
from syncheck.results.types import GeneratorToken, Query, SentenceSpan
from syncheck.scoring import SentenceScorer, report_of
from syncheck.text.sentences import TextSegmenter, spans_of
from syncheck.watching.growing import NOT_MEASURED, GrowingText
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
        If the config's schema has features that only a language model's signals give, or the aligner has only one
        effort and another is asked for.
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
            config, aggregator, aligner, name = _generic(aligner, device)
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
        passages: str | Sequence[str],
        question: str = "",
        sentences: Sequence[str] | None = None,
    ) -> Report:
        """Score the sentences of an answer.

        Parameters
        ----------
        answer
            The answer, by whichever model.
        passages
            The passages that it is checked against: a string or several; empty if it is known that there are none.
        question
            The question that it answers; some aligners read it.
        sentences
            The sentences of the answer, in place of ``answer``; joined as they are, they are the answer.

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
        return self.answer(self.query(question=question, passages=passages), answer, sentences=sentences)

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
            As in :meth:`check`, when the answer's turn comes.
        """
        scorer: SentenceScorer | None = None
        for record in records:
            given = dict(record)
            answer, sentences = given.pop("answer", None), given.pop("sentences", None)
            query = self.query(**given)
            scorer = scorer if scorer is not None and scorer.query == query else self.scorer(query)
            yield self._checked(scorer, answer, sentences)

    def answer(self, query: Query, response: str | None = None, *, sentences: Sequence[str] | None = None) -> Report:
        """Score the sentences of an answer to a query; otherwise as :meth:`check`."""
        return self._checked(self.scorer(query), response, sentences)

    def watch_text(
        self,
        *,
        passages: str | Sequence[str],
        question: str = "",
        reveal: Reveal = "verified",
        stop_below: float | None = None,
        stop_after: bool = True,
        at_once: int | None = None,
        passage_ids: Sequence[str] | None = None,
    ) -> TextWatch:
        """Score an answer while its text arrives, whichever model writes it.

        Parameters
        ----------
        passages, question
            As in :meth:`check`.
        reveal, stop_below, stop_after, at_once, passage_ids
            As in :class:`syncheck.watching.TextWatch`.

        Returns
        -------
        TextWatch
            A context manager that takes the text and returns events.

        Examples
        --------
        >>> with verifier.watch_text(passages=passages) as watched:  # doctest: +SKIP
        ...     for piece in stream:
        ...         for event in watched.feed(piece):
        ...             print(event)
        ...     print(watched.close())
        """
        query = self.query(question=question, passages=passages)
        return self.watched(
            query,
            reveal=reveal,
            stop_below=stop_below,
            stop_after=stop_after,
            at_once=at_once,
            passage_ids=passage_ids,
        )

    def watched(self, query: Query, **options: Any) -> TextWatch:  # noqa: ANN401 - those of TextWatch
        """Make the watch over an answer to a query; ``options`` are those of :class:`syncheck.watching.TextWatch`."""
        aligner = source_of_support(self.aligner)
        answer = GrowingText(self.scorer(query), TextSegmenter(self.config.segmenter), aligner=aligner)
        return TextWatch(answer, query, has_scores=self.aggregator is not None, **options)

    def watch(
        self,
        pieces: Iterable[str | tuple[str, Sequence[GeneratorToken]]],
        *,
        passages: str | Sequence[str],
        question: str = "",
        **options: Any,
    ) -> Iterator[ProtocolEvent]:
        """Score the answer in a stream of text, to its end or until ``stop_below`` ends it; then close the stream.

        Parameters
        ----------
        pieces
            The pieces of an answer: strings, or pairs of a string and the tokens that its generator reports. The
            pieces of a list or another sequence are all there, so that its sentences are scored together.
        passages, question
            As in :meth:`check`.
        **options
            ``reveal``, ``stop_below``, ``at_once`` and ``passage_ids`` of :class:`syncheck.watching.TextWatch`.

        Yields
        ------
        ProtocolEvent
            See :mod:`syncheck.results.protocol`.

        Raises
        ------
        WrongTypeError
            If the stream or a piece has another type.
        InputError, NotReadyError
            As in :class:`syncheck.watching.TextWatch` and its ``feed``.
        """
        return watch(pieces, lambda: self.watch_text(passages=passages, question=question, **options))

    def watch_async(
        self,
        pieces: AsyncIterable[str | tuple[str, Sequence[GeneratorToken]]],
        *,
        passages: str | Sequence[str],
        question: str = "",
        **options: Any,
    ) -> AsyncIterator[ProtocolEvent]:
        """Score the answer in an asynchronous stream of text; otherwise as :meth:`watch`.

        Reading continues while a sentence is scored; sentences that arrive meanwhile are scored together.
        """
        return watch_async(pieces, lambda: self.watch_text(passages=passages, question=question, **options))

    def explain(self, report: Report) -> Report:
        """Add words side by side to sentences of a report that the aligner alone calls contradicted.

        The contrast of such a sentence, of the kind ``reading``, has the words of it and of its evidence without which
        the aligner finds no contradiction. To find them, the aligner reads each of these sentences some 20 to 40 times,
        with one word left out; :meth:`check` does not do so. Other sentences stay as they are.
        """
        if self.aligner is None:
            return report
        explained = []
        for sentence in report.sentences:
            if sentence.verdict == "contradicted" and not sentence.contrasts and sentence.evidence is not None:
                passages = report.prompt.passages
                words = deciding_words(sentence.text, sentence.evidence, passages, self.aligner.align)
                sentence = sentence if words is None else replace(sentence, contrasts=(words,))
            explained.append(sentence)
        return replace(report, sentences=tuple(explained))

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
        """Copy this verifier with another effort of its aligner.

        Parameters
        ----------
        effort
            ``fast``, ``balanced`` (the reader's own) or ``thorough``; see :class:`syncheck.aligners.ReaderAligner`.

        Raises
        ------
        InputError
            If the effort is unknown, or the aligner has only one.
        """
        return self.replaced(aligner=at_effort(self.aligner, effort))

    def replaced(self, **parts: Any) -> Self:
        """Copy this verifier with other parts, given as keyword arguments of the class."""
        own = ("aligner", "config", "aggregator", "trained_on", "name")
        return type(self)(**{name: getattr(self, name) for name in own} | parts)

    def query(self, *, passages: str | Sequence[str], question: str = "") -> Query:
        """Take a question and passages; WrongTypeError or InputError for anything else."""
        check_text(question, "question")
        given = [passages] if isinstance(passages, str) else passages
        check_texts(given, "passages")
        return Query(question, tuple(given))

    def scorer(self, query: Query) -> SentenceScorer:
        """Make the scorer for sentences of answers to one query, which reads its passages once."""
        return SentenceScorer(
            query, config=self.config, aggregator=self.aggregator, aligner=self.aligner, monitor=self.name
        )

    def cut(self, text: str) -> list[SentenceSpan]:
        """Cut a text into sentences."""
        segmenter = TextSegmenter(self.config.segmenter)
        return segmenter.push(text) + segmenter.finish()

    def save_pretrained(self, directory: str | Path) -> None:
        """Write the verifier to a folder, without pickle; :meth:`from_pretrained` reads it."""
        checkpoint.write(
            directory,
            config=self.config,
            aggregator=self.aggregator,
            aligner=self.aligner,
            trained_on=self.trained_on,
        )

    @classmethod
    def from_pretrained(
        cls,
        directory: str | Path,
        *,
        aligner: Aligner | None = None,
        trusted: Collection[str] = (),
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
        trusted
            Full names of types that a saved scikit-learn classifier of your own may consist of; see
            :meth:`~syncheck.aggregators.Aggregator.load`.
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
        UntrustedTypesError
            If a classifier has types that are not trusted; the error lists them.
        """
        stored = checkpoint.read(fetched(directory, revision=revision, **hub_options))
        require_text_schema(stored.config.schema)
        return cls(
            stored.aligner(aligner, device=device),
            config=stored.config,
            aggregator=stored.aggregator(trusted=trusted),
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
        return report_of(scorer, response, scored, stop=None, seconds=time.perf_counter() - started)


def _generic(
    aligner: Aligner | None, device: str | torch.device
) -> tuple[MonitorConfig, Aggregator, Aligner | None, str | None]:
    """Load config, aggregator, aligner and name of the bundled verifier, in the form that fits an aligner."""
    name = checkpoint.generic_name(aligner)
    if name is None:
        config = MonitorConfig(schema=ALIGNER_ALONE, backtrack_threshold=0.5, prune_threshold=0.5)
        return config, Aggregator.from_signal("align_score", schema=feature_schema(ALIGNER_ALONE, ())), aligner, None
    return *checkpoint.generic_parts(name, aligner, device), name


def source_of_support(aligner: Aligner | None) -> str:
    """Name an aligner as a source in :attr:`syncheck.Report.sources`."""
    return NOT_MEASURED if aligner is None else f"aligner {getattr(aligner, 'name', type(aligner).__name__)}"


def require_aligner(aligner: object) -> None:
    """Raise WrongTypeError for anything but an aligner or None."""
    if aligner is not None and not hasattr(aligner, "align"):
        found = repr(aligner) if isinstance(aligner, str) else type(aligner).__name__
        raise WrongTypeError(f"aligner must be an aligner, as load_aligner(...) returns, or None; found {found}")


def require_text_schema(version: str) -> None:
    """Refuse, with an InputError, a schema whose features need a language model's signals."""
    if needs_signals(version):
        raise InputError(
            f"schema {version!r} has features of a language model's signals; use syncheck.Monitor with that model, or "
            "a schema of text alone, such as 'syncheck.v5'"
        )


def require_verifier(verifier: object) -> None:
    """Raise WrongTypeError for anything but a verifier."""
    if not isinstance(verifier, Verifier):
        raise WrongTypeError(f"expected a Verifier, as Verifier() makes; found {type(verifier).__name__}")
