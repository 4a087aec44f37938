"""The monitor: joins prompt, session, features, aligner and aggregator into scored sentences."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import torch

from syncheck import checkpoint, replay
from syncheck.aggregators import Aggregator
from syncheck.alignment import Aligner
from syncheck.attach import BatchWatch, Watch
from syncheck.config import AggregatorKind, MonitorConfig, ProbabilisticClassifier
from syncheck.decoding import StopReason, decode, drain, prepare_generation
from syncheck.decoding.scored import ScoredAnswer, check_stop_below
from syncheck.errors import InputError
from syncheck.events import EndEvent, Event, SentenceEvent, TokenEvent
from syncheck.hub import StoredMonitor
from syncheck.parts import require_prompt, rows_of
from syncheck.replay import GivenResponse
from syncheck.report import Report
from syncheck.schemas import ALIGNER_ALONE, feature_schema
from syncheck.signals import LidReferences, require_watchable
from syncheck.streams import watching
from syncheck.types import GeneratorToken, RagPrompt

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from syncheck.alignment import TextGenerator
    from syncheck.labelling import LabelledResponse
    from syncheck.streams import ProtocolEvent

Teacher: TypeAlias = 'Monitor | Aligner | TextGenerator | Literal["generic"]'
"""Labels sentences: a monitor, an aligner, a language model that is asked, or the bundled monitor ``generic``."""


class Monitor(StoredMonitor):
    """Scores the sentences of a language model's answers for faithfulness to the retrieved context.

    Parameters
    ----------
    model, tokenizer
        A Hugging Face causal language model, which is put into evaluation mode, and its tokenizer.
    config
        Measurements and thresholds; None takes the schema ``syncheck.v3`` with the model's default layers. Without
        config, aggregator and LID references, the monitor scores any model's sentences by their text alone: as the
        bundled monitor ``generic``, which assumes that as many sentences are faithful as not; with the packaged
        reader as ``generic-reader``, which was trained with it; with another aligner by its support alone.
    aggregator
        Turns the features of the config's schema into P(faithful); None leaves sentences without a score (status
        ``no_aggregator``).
    lid_references
        Reference activations for LID; needed when the schema has LID features and there is an aggregator.
    aligner
        Scores sentences against the context; None leaves ``align_score`` unmeasured.
    trained_on
        Digests of the questions that the aggregator has seen, so that an evaluation can refuse them; see
        :func:`syncheck.training.question_digests`. Monitors saved by earlier versions store ids of records.
    name
        Shown in reports; that of a bundled monitor.

    Raises
    ------
    UnsupportedModelError
        If the model is compiled or has an encoder; see :func:`syncheck.signals.require_watchable`.
    MismatchError
        If the aggregator reads other features than the config's schema has, or in another order.

    Notes
    -----
    Threads may share a monitor, or a model, and get the answers that one thread would get, to the last bit.
    A stream may be advanced by another thread each time, but by one at a time. A watch belongs to the thread, or the
    asyncio task, that enters its ``with`` block, or to a worker that is given its context, as ``asyncio.to_thread``
    does.

    While threads run, the model (weights, ``config``, device) and the truncation, padding and ``split_special_tokens``
    of the tokenizer must not change. Pass a ``generator`` to each call that samples: threads take turns by chance in
    torch's global source. Load models before threads start, since loading changes torch's default dtype for all of
    them.

    Examples
    --------
    >>> monitor = Monitor.from_pretrained("my-monitor", model=model, tokenizer=tokenizer)  # doctest: +SKIP
    >>> prompt = monitor.prompt(question="Who ...?", context=["passage", ...])  # doctest: +SKIP
    >>> report = monitor.generate(prompt, max_new_tokens=200)  # doctest: +SKIP
    >>> [(s.score, s.text) for s in report.sentences]  # doctest: +SKIP
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        config: MonitorConfig | None = None,
        aggregator: Aggregator | None = None,
        lid_references: LidReferences | None = None,
        aligner: Aligner | None = None,
        trained_on: Iterable[str] = (),
        name: str | None = None,
    ) -> None:
        require_watchable(model)
        if config is None and aggregator is None and lid_references is None:
            if (generic := checkpoint.generic_name(aligner)) is not None:
                config, aggregator, bundled = checkpoint.generic_parts(generic, model.device)
                aligner, name = aligner or bundled, generic
            else:
                config = MonitorConfig(schema=ALIGNER_ALONE, backtrack_threshold=0.5, prune_threshold=0.5)
                aggregator = Aggregator.from_signal("align_score", schema=feature_schema(ALIGNER_ALONE, ()))
        super().__init__(
            model,
            tokenizer,
            config=config or MonitorConfig(),
            aggregator=aggregator,
            lid_references=lid_references,
            aligner=aligner,
            trained_on=trained_on,
            name=name,
        )

    @overload
    def attach(self, prompts: RagPrompt) -> Watch: ...

    @overload
    def attach(self, prompts: Sequence[RagPrompt]) -> BatchWatch: ...

    def attach(self, prompts: RagPrompt | Sequence[RagPrompt]) -> Watch | BatchWatch:
        """Watch a generation loop of your own or of ``model.generate``.

        Parameters
        ----------
        prompts
            The loop's prompt, or a list with that of each row: each n times with ``num_return_sequences=n``.
        """
        rows = self._fitting(prompts)
        kind = Watch if isinstance(prompts, RagPrompt) else BatchWatch
        return kind(self.model, self.tokenizer, rows, scorers=self._scorers(rows), **self._measuring)

    @overload
    def generate(
        self,
        prompts: RagPrompt,
        *,
        num_return_sequences: Literal[1] | None = None,
        generator: torch.Generator | None = None,
        stop_below: float | None = None,
        **kwargs: Any,
    ) -> Report: ...

    @overload
    def generate(
        self,
        prompts: RagPrompt | Sequence[RagPrompt],
        *,
        num_return_sequences: int | None = None,
        generator: torch.Generator | None = None,
        stop_below: float | None = None,
        **kwargs: Any,
    ) -> list[Report]: ...

    def generate(
        self,
        prompts: RagPrompt | Sequence[RagPrompt],
        *,
        num_return_sequences: int | None = None,
        generator: torch.Generator | None = None,
        stop_below: float | None = None,
        **kwargs: Any,
    ) -> Report | list[Report]:
        """Generate responses and score their sentences as they come.

        Parameters
        ----------
        prompts
            From :meth:`prompt`; a list is decoded as one batch.
        num_return_sequences
            Responses to each prompt; more than one requires sampling, as in ``model.generate``.
        generator
            Source of randomness for sampling; None uses torch's global one.
        stop_below
            A score in [0, 1]: a response ends with the first sentence that does not reach it, or that claims something
            and has no score; its ``stop`` is then ``below_threshold``. None never ends one.
        **kwargs
            Arguments of ``model.generate``: ``max_new_tokens``, ``do_sample``, ``generation_config``,
            ``logits_processor``, ``stopping_criteria``, ``streamer``, ...

        Returns
        -------
        Report or list of Report
            A list for a list of prompts or several responses, those to one prompt together; ``seconds`` is then that of
            the batch.

        Raises
        ------
        PromptError
            If a prompt does not fit the model's window.
        InputError
            For beam search, another cache and outputs that are not collected; see
            :func:`syncheck.decoding.prepare_generation`.
        """
        started = time.perf_counter()
        given = rows_of(prompts)
        check_stop_below(stop_below, has_scores=self.aggregator is not None)
        if num_return_sequences is not None:
            kwargs["num_return_sequences"] = num_return_sequences
        plan = prepare_generation(self.model, given, **kwargs)
        each = plan.config.num_return_sequences or 1
        with self.session([prompt for prompt in given for _ in range(each)]) as watched:
            stops = drain(watched.decode(plan, generator=generator, stop_below=stop_below))
            reports = watched.reports(stops=stops, seconds=time.perf_counter() - started)
        return reports[0] if isinstance(prompts, RagPrompt) and each == 1 else reports

    def stream(
        self,
        prompt: RagPrompt,
        *,
        reveal: Literal["verified", "immediate"] = "verified",
        generator: torch.Generator | None = None,
        stop_below: float | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> Iterator[Event]:
        """Generate and yield events as they happen: a sentence's before the next sentence's second token is decoded.

        Parameters
        ----------
        prompt
            From :meth:`prompt`; a single one.
        reveal
            ``verified``: the tokens of a sentence come after its score. ``immediate``: tokens come as they are decoded.
        generator, stop_below, **kwargs
            As in :meth:`generate`.

        Yields
        ------
        TokenEvent, SentenceEvent, EndEvent
        """
        started = time.perf_counter()
        require_prompt(prompt)
        if reveal not in ("verified", "immediate"):
            raise InputError(f"reveal must be 'verified' or 'immediate'; found {reveal!r}")
        check_stop_below(stop_below, has_scores=self.aggregator is not None)
        plan = prepare_generation(self.model, prompt, **kwargs)
        if (plan.config.num_return_sequences or 1) > 1:
            raise InputError("a stream is of one response; use generate for several")
        with self.session(prompt) as watched:
            held: list[TokenEvent] = []
            stop: StopReason | None = None
            for step in decode(watched.decoding, plan, generator=generator):
                (token_id,), (text,), (stop,) = step.token_ids, step.texts, step.stops
                if token_id not in plan.end_tokens:
                    held.append(TokenEvent(token_id, text))
                if reveal == "immediate":
                    yield from held
                    held = []
                if not watched.is_due():
                    continue
                known = len(watched.answers[0].sentences)
                watched.score_round()
                row, is_cut = watched.decoding.rows[0], watched.cut_below(stop_below)
                for sentence in watched.answers[0].sentences[known:]:
                    event = SentenceEvent.of(sentence, row.token_ids, row.text)
                    yield event
                    if reveal == "verified":
                        tokens = len(event.token_ids)
                        yield from held[:tokens]
                        held = held[tokens:]
                held = [] if is_cut else held
            yield from held
            (report,) = watched.reports(stops=[stop], seconds=time.perf_counter() - started)
            yield EndEvent(report)

    def watch_text(self, prompt: RagPrompt, **options: Any) -> watching.TextWatch:  # noqa: ANN401
        """Check an answer while its text arrives, whoever writes it; a context manager.

        Parameters
        ----------
        prompt
            From :meth:`prompt`.
        **options
            ``reveal``, ``stop_below``, ``signals``, ``at_once``, ``passage_ids``; see
            :class:`syncheck.streams.TextWatch`.

        Examples
        --------
        >>> with monitor.watch_text(prompt) as watched:  # doctest: +SKIP
        ...     for piece in stream:
        ...         for event in watched.feed(piece):
        ...             print(event)
        ...     print(watched.close())
        """
        return watching.TextWatch(self, prompt, **options)

    def watch(
        self,
        stream: Iterable[str | tuple[str, Sequence[GeneratorToken]]],
        prompt: RagPrompt,
        **options: Any,  # noqa: ANN401
    ) -> Iterator[ProtocolEvent]:
        """Check a stream of text, and close it at its end, or where ``stop_below`` stops it.

        Parameters
        ----------
        stream
            The pieces of an answer, each alone or with the generator's tokens.
        prompt, **options
            As in :meth:`watch_text`.
        """
        return watching.watch(self, stream, prompt, **options)

    def watch_async(
        self,
        stream: AsyncIterable[str | tuple[str, Sequence[GeneratorToken]]],
        prompt: RagPrompt,
        **options: Any,  # noqa: ANN401
    ) -> AsyncIterator[ProtocolEvent]:
        """Check an asynchronous stream of text; otherwise as :meth:`watch`.

        It is read on while a sentence is scored, and sentences that arrive meanwhile are scored together.
        """
        return watching.watch_async(self, stream, prompt, **options)

    def score(
        self,
        prompt: RagPrompt,
        response: str | None = None,
        *,
        response_token_ids: Sequence[int] | None = None,
        sentences: Sequence[str] | None = None,
        signals: bool = False,
    ) -> Report:
        """Score a given response; its signals are those of the monitored model, whoever wrote it.

        Parameters
        ----------
        prompt
            From :meth:`prompt`.
        response
            The text, tokenised once, without special tokens.
        response_token_ids
            Its token ids instead. An end-of-text token ends the response and is not part of it.
        sentences
            The response cut into sentences, with all white space; joined they are the response.
        signals
            Whether to measure the model's signals even if the schema needs none. Without them such a monitor does not
            run the model, and every token's signals are NaN. A monitor without an aggregator always measures them.

        Raises
        ------
        InputError
            If not exactly one of ``response``, ``response_token_ids`` and ``sentences`` is given (the last two may go
            together and then have to agree), an id is outside the vocabulary, or a text holds a lone surrogate.
        PromptError
            If prompt and response do not fit the model's window or cross a length at which it encodes every token again
            (see :func:`syncheck.signals.check_one_encoding`), or a slow tokenizer rewrites the text.
        WrongTypeError
            If an argument has another type.
        """
        started = time.perf_counter()
        wanted = signals or self.aggregator is None
        given = self.read(prompt, response, response_token_ids=response_token_ids, sentences=sentences, signals=wanted)
        (answer,) = replay.replay(self, [prompt], [given], signals=wanted)
        return answer.report(given.transcript, stop=None, seconds=time.perf_counter() - started)

    def score_batch(
        self,
        prompts: Sequence[RagPrompt],
        responses: Sequence[str] | None = None,
        *,
        response_token_ids: Sequence[Sequence[int]] | None = None,
        sentences: Sequence[Sequence[str]] | None = None,
        signals: bool = False,
        batch_size: int = 16,
    ) -> list[Report]:
        """Score many given responses in padded batches; otherwise like :meth:`score`.

        Parameters
        ----------
        prompts
            From :meth:`prompt`.
        responses, response_token_ids, sentences
            As in :meth:`score`, one for each prompt.
        signals
            As in :meth:`score`.
        batch_size
            Responses replayed at once; those of like length go together.

        Returns
        -------
        list of Report
            In the order of ``prompts``; ``seconds`` is that of a response's batch.

        Raises
        ------
        InputError
            If there are not as many responses as prompts, or ``batch_size`` is below 1.
        """
        wanted = signals or self.aggregator is None
        given = replay.read_responses(self, prompts, responses, response_token_ids, sentences, signals=wanted)
        found = replay.replay_batches(self, prompts, given, signals=wanted, batch_size=batch_size)
        reports = {i: answer.report(given[i].transcript, stop=None, seconds=seconds) for i, answer, seconds in found}
        return [reports[i] for i in range(len(given))]

    def replay(
        self,
        prompt: RagPrompt,
        response: str | None = None,
        *,
        response_token_ids: Sequence[int] | None = None,
        sentences: Sequence[str] | None = None,
    ) -> ScoredAnswer:
        """Measure and score a given response like :meth:`score`, and return the signals as well."""
        given = self.read(prompt, response, response_token_ids=response_token_ids, sentences=sentences)
        return replay.replay(self, [prompt], [given], signals=True)[0]

    def replay_batch(
        self,
        prompts: Sequence[RagPrompt],
        responses: Sequence[str | GivenResponse] | None = None,
        *,
        response_token_ids: Sequence[Sequence[int]] | None = None,
        sentences: Sequence[Sequence[str]] | None = None,
        signals: bool = True,
        batch_size: int = 16,
        on_failure: Callable[[int, str], None] | None = None,
    ) -> Iterator[tuple[int, ScoredAnswer]]:
        """Measure and score many given responses like :meth:`score_batch`, and return the signals as well.

        Parameters
        ----------
        prompts, response_token_ids, sentences, signals, batch_size
            As in :meth:`score_batch`.
        responses
            Texts, or responses from :meth:`read`.
        on_failure
            None raises the error of a forward. Otherwise a batch that fails, for lack of memory say, is replayed in
            halves, and this is called with the index and the reason of a response that fails alone.

        Returns
        -------
        iterator of (int, ScoredAnswer)
            The index among ``prompts`` and the answer of each response, as soon as its batch is replayed.

        Raises
        ------
        InputError
            As in :meth:`score_batch`, before anything is replayed.

        Examples
        --------
        >>> for index, answer in monitor.replay_batch(prompts, responses):  # doctest: +SKIP
        ...     print(responses[index], [signals.kl.mean() for signals in answer.signals])
        """
        given = replay.read_responses(self, prompts, responses, response_token_ids, sentences)
        found = replay.replay_batches(
            self, prompts, given, signals=signals, batch_size=batch_size, on_failure=on_failure
        )
        return ((place, answer) for place, answer, _ in found)

    def read(
        self,
        prompt: RagPrompt,
        response: str | None = None,
        *,
        response_token_ids: Sequence[int] | None = None,
        sentences: Sequence[str] | None = None,
        signals: bool = True,
    ) -> GivenResponse:
        """Return the tokens and sentences of a given response without a forward; arguments as in :meth:`score`.

        Where neither ``signals`` nor the schema asks the model, the response may exceed its window.
        """
        return replay.read_response(
            self, prompt, response, response_token_ids=response_token_ids, sentences=sentences, signals=signals
        )

    @classmethod
    def fit(
        cls,
        records: Iterable[LabelledResponse | Mapping[str, Any]],
        *,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        aggregator: AggregatorKind | ProbabilisticClassifier | Literal["best"] = "best",
        config: MonitorConfig | None = None,
        aligner: Aligner | None | Literal["bundled"] = "bundled",
        seed: int = 0,
    ) -> Monitor:
        """Train a monitor on labelled responses; see :func:`syncheck.training.fit_monitor`."""
        from syncheck.training import fit_monitor

        return fit_monitor(
            records, model=model, tokenizer=tokenizer, aggregator=aggregator, config=config, aligner=aligner, seed=seed
        )

    @classmethod
    def adapt(
        cls,
        prompts: Iterable[Mapping[str, Any]],
        *,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        teacher: Teacher = "generic",
        **options: Any,  # noqa: ANN401
    ) -> Monitor:
        """Train a monitor without labels, on questions with passages; see :func:`syncheck.training.adapt_monitor`."""
        from syncheck.training import adapt_monitor

        return adapt_monitor(prompts, model=model, tokenizer=tokenizer, teacher=teacher, **options).monitor
