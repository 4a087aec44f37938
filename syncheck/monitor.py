"""The monitor: joins prompt, session, features, aligner and aggregator into scored sentences."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import torch

from syncheck import checkpoint, replay
from syncheck.aggregators import Aggregator
from syncheck.aligners import Aligner
from syncheck.base.checks import check_choice
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.base.pretrained import require_tokenizer
from syncheck.config import AggregatorKind, MonitorConfig, ProbabilisticClassifier
from syncheck.contrasts.deciding import deciding_words
from syncheck.decoding import StopReason, decode, drain, prepare_generation
from syncheck.decoding.attach import BatchWatch, Watch
from syncheck.decoding.scored import ScoredAnswer, check_stop_below
from syncheck.features.schemas import ALIGNER_ALONE, feature_schema
from syncheck.hub import StoredMonitor
from syncheck.monitor_base import require_prompt, rows_of
from syncheck.replay import GivenResponse
from syncheck.results import Report
from syncheck.results.events import EndEvent, Event, SentenceEvent, TokenEvent
from syncheck.results.protocol import Reveal
from syncheck.results.types import GeneratorToken, RagPrompt
from syncheck.signals import LidReferences, require_watchable
from syncheck.watching import text_watch as watching

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from syncheck.aligners import TextGenerator
    from syncheck.labelling import LabelledResponse
    from syncheck.results import ProtocolEvent

Teacher: TypeAlias = 'Monitor | Aligner | TextGenerator | Literal["generic"]'
"""Source of labels for :meth:`Monitor.adapt`: a monitor, an aligner, a language model that is prompted for judgements,
or ``"generic"``, the bundled monitor for text alone."""


class Monitor(StoredMonitor):
    """Scores the sentences of a language model's answers for faithfulness to the retrieved context.

    Parameters
    ----------
    model, tokenizer
        A Hugging Face causal language model, which is put into evaluation mode, and its tokenizer.
    config
        Measurements and thresholds; None takes the schema ``syncheck.v3`` with the model's default layers. If config,
        aggregator and LID references are all None, the monitor scores any model's sentences from their text alone: as
        the bundled monitor ``generic`` (see :func:`syncheck.load_kit`), which assumes that half of the sentences are
        faithful; with the packaged reader or the bundled aligner as aligner, in the form that was trained with it;
        with another aligner, by its support alone.
    aggregator
        Turns the features of the config's schema into P(faithful); None leaves sentences without a score (status
        ``no_aggregator``).
    lid_references
        Reference activations for LID. Without them LID is not measured; a warning is logged if the aggregator expects
        it.
    aligner
        Scores sentences against the context; None leaves ``align_score`` unmeasured, except for ``generic``, which
        takes its own.
    trained_on
        Digests of the questions that the aggregator was trained on, so that an evaluation can refuse them; see
        :func:`syncheck.training.question_digests`.
    name
        Name of a bundled monitor, shown in reports.

    Raises
    ------
    UnsupportedModelError
        If the model is compiled or has an encoder; see :func:`syncheck.signals.require_watchable`.
    WrongTypeError
        If the model is no loaded model, the tokenizer no tokenizer, or the aligner no aligner.
    MismatchError
        If the aggregator expects features other than those of the config's schema, or another order.

    Notes
    -----
    Threads may share a monitor or a model; results are the same, to the last bit, as in a single thread. Different
    threads may advance a stream, but only one at a time. A watch belongs to the thread or asyncio task that enters its
    ``with`` block, or to a worker that runs in its context, as ``asyncio.to_thread`` arranges.

    While threads run, the model (weights, ``config``, device) and the truncation, padding and ``split_special_tokens``
    of the tokenizer must not change. Pass a ``generator`` to each call that samples: threads draw from torch's global
    source in an unpredictable order. Load models before threads start, since loading changes torch's default dtype for
    all of them.

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
        require_tokenizer(tokenizer)
        if aligner is not None and not hasattr(aligner, "align"):
            found = repr(aligner) if isinstance(aligner, str) else type(aligner).__name__
            raise WrongTypeError(f"aligner must be an aligner, as load_aligner(...) returns, or None; found {found}")
        if config is None and aggregator is None and lid_references is None:
            if (generic := checkpoint.generic_name(aligner)) is not None:
                config, aggregator, aligner = checkpoint.generic_parts(generic, aligner, model.device)
                name = generic
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
            The loop's prompt, or a list with the prompt of each row; with ``num_return_sequences=n``, repeat each
            prompt n times.

        Returns
        -------
        Watch or BatchWatch
            A context manager to run the loop in; a BatchWatch for a list.

        Raises
        ------
        PromptError
            If a prompt does not fit the model's window.
        InputError
            If the list is empty.
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
        **kwargs: Any,
    ) -> Report: ...

    @overload
    def generate(
        self,
        prompts: RagPrompt | Sequence[RagPrompt],
        *,
        num_return_sequences: int | None = None,
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
        """Generate responses and score their sentences as they are completed.

        Parameters
        ----------
        prompts
            From :meth:`prompt`; a list is decoded as one batch.
        num_return_sequences
            Responses to each prompt; more than one requires sampling, as in ``model.generate``.
        generator
            Source of randomness for sampling; None uses torch's global one.
        stop_below
            A score in [0, 1]: a response ends with the first sentence that scores lower, or that makes a claim and has
            no score; its ``stop`` is then ``below_threshold``. None ends no response early.
        **kwargs
            Arguments of ``model.generate``: ``max_new_tokens``, ``do_sample``, ``generation_config``,
            ``logits_processor``, ``stopping_criteria``, ``stop_strings``, ``streamer``, ...

        Returns
        -------
        Report or list of Report
            A list for a list of prompts or several responses, with the responses to one prompt next to each other;
            ``seconds`` is then the time of the whole batch.

        Raises
        ------
        PromptError
            If a prompt does not fit the model's window.
        InputError
            For an empty list, ``stop_below`` outside [0, 1], beam search, a cache of your own, or outputs that are not
            collected; see :func:`syncheck.decoding.prepare_generation`.
        NotReadyError
            If ``stop_below`` is given and the monitor has no aggregator.
        """
        started = time.perf_counter()
        given = rows_of(prompts)
        check_stop_below(stop_below, has_scores=self.aggregator is not None)
        if num_return_sequences is not None:
            kwargs["num_return_sequences"] = num_return_sequences
        plan = prepare_generation(self.model, given, called=self.generate, **{"tokenizer": self.tokenizer, **kwargs})
        each = plan.config.num_return_sequences or 1
        with self.session([prompt for prompt in given for _ in range(each)]) as watched:
            stops = drain(watched.decode(plan, generator=generator, stop_below=stop_below))
            reports = watched.reports(stops=stops, seconds=time.perf_counter() - started)
        return reports[0] if isinstance(prompts, RagPrompt) and each == 1 else reports

    def stream(
        self,
        prompt: RagPrompt,
        *,
        reveal: Reveal = "verified",
        generator: torch.Generator | None = None,
        stop_below: float | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> Iterator[Event]:
        """Generate one response and yield events as they happen.

        The event of a sentence comes before the second token of the next sentence is decoded.

        Parameters
        ----------
        prompt
            From :meth:`prompt`.
        reveal
            ``verified``: the tokens of a sentence come after its score. ``immediate``: tokens come as they are decoded.
        generator, stop_below, **kwargs
            As in :meth:`generate`.

        Yields
        ------
        TokenEvent, SentenceEvent, EndEvent
            One EndEvent, the last.

        Raises
        ------
        PromptError, NotReadyError
            As in :meth:`generate`.
        InputError
            As in :meth:`generate`; also if ``reveal`` is unknown or several sequences are requested.
        """
        started = time.perf_counter()
        require_prompt(prompt)
        check_choice(reveal, "reveal", Reveal)
        check_stop_below(stop_below, has_scores=self.aggregator is not None)
        plan = prepare_generation(self.model, prompt, called=self.stream, **{"tokenizer": self.tokenizer, **kwargs})
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

    def watch_text(
        self,
        prompt: RagPrompt,
        *,
        reveal: Reveal = "verified",
        stop_below: float | None = None,
        signals: bool = False,
        at_once: int | None = None,
        passage_ids: Sequence[str] | None = None,
    ) -> watching.TextWatch:
        """Score an answer while its text arrives, whichever model writes it.

        Parameters
        ----------
        prompt
            From :meth:`prompt`.
        reveal, stop_below, signals, at_once, passage_ids
            As in :class:`syncheck.watching.TextWatch`.

        Returns
        -------
        TextWatch
            A context manager that takes the text and returns events.

        Examples
        --------
        >>> with monitor.watch_text(prompt) as watched:  # doctest: +SKIP
        ...     for piece in stream:
        ...         for event in watched.feed(piece):
        ...             print(event)
        ...     print(watched.close())
        """
        return watching.TextWatch(
            self,
            prompt,
            reveal=reveal,
            stop_below=stop_below,
            signals=signals,
            at_once=at_once,
            passage_ids=passage_ids,
        )

    def watch(
        self,
        stream: Iterable[str | tuple[str, Sequence[GeneratorToken]]],
        prompt: RagPrompt,
        *,
        reveal: Reveal = "verified",
        stop_below: float | None = None,
        signals: bool = False,
        at_once: int | None = None,
        passage_ids: Sequence[str] | None = None,
    ) -> Iterator[ProtocolEvent]:
        """Score the answer in a stream of text, to its end or until ``stop_below`` ends it; then close the stream.

        Parameters
        ----------
        stream
            The pieces of an answer: strings, or pairs of a string and the tokens that its generator reports. The
            pieces of a list or another sequence are all there, so that its sentences are scored together.
        prompt, reveal, stop_below, signals, at_once, passage_ids
            As in :meth:`watch_text`.

        Yields
        ------
        ProtocolEvent
            See :mod:`syncheck.watching`.

        Raises
        ------
        WrongTypeError
            If the stream or a piece has another type.
        InputError, NotReadyError, PromptError
            As in :class:`syncheck.watching.TextWatch` and its ``feed``.
        """
        return watching.watch(
            self,
            stream,
            prompt,
            reveal=reveal,
            stop_below=stop_below,
            signals=signals,
            at_once=at_once,
            passage_ids=passage_ids,
        )

    def watch_async(
        self,
        stream: AsyncIterable[str | tuple[str, Sequence[GeneratorToken]]],
        prompt: RagPrompt,
        *,
        reveal: Reveal = "verified",
        stop_below: float | None = None,
        signals: bool = False,
        at_once: int | None = None,
        passage_ids: Sequence[str] | None = None,
    ) -> AsyncIterator[ProtocolEvent]:
        """Score the answer in an asynchronous stream of text; otherwise as :meth:`watch`.

        Reading continues while a sentence is scored; sentences that arrive meanwhile are scored together.
        """
        return watching.watch_async(
            self,
            stream,
            prompt,
            reveal=reveal,
            stop_below=stop_below,
            signals=signals,
            at_once=at_once,
            passage_ids=passage_ids,
        )

    def score(
        self,
        prompt: RagPrompt,
        response: str | None = None,
        *,
        response_token_ids: Sequence[int] | None = None,
        sentences: Sequence[str] | None = None,
        signals: bool = False,
    ) -> Report:
        """Score a given response; its signals are those of the monitored model, whichever model wrote it.

        Parameters
        ----------
        prompt
            From :meth:`prompt`.
        response
            The text, tokenised once, without special tokens. If the model reads it, an end-of-text token that is
            written in it ends it; what is after that is in ``after_end`` of the report.
        response_token_ids
            The token ids of the response, instead of its text. An end-of-text token ends the response and is not part
            of it; text after it, padding aside, is in ``after_end`` of the report.
        sentences
            The sentences of the response with all white space: joined, they are the response.
        signals
            True measures the model's signals even if the schema needs none. False does not run the model in that case,
            and all signals of tokens are NaN. A monitor without an aggregator always measures them.

        Raises
        ------
        InputError
            If not exactly one of ``response``, ``response_token_ids`` and ``sentences`` is given (the last two may go
            together and must then agree), an id is outside the vocabulary, or a text has a lone surrogate.
        PromptError
            If prompt and response do not fit the model's window or cross a length at which it encodes every token again
            (see :func:`syncheck.signals.check_one_encoding`), or a slow tokenizer rewrites the text.
        WrongTypeError
            If an argument has the wrong type.
        """
        started = time.perf_counter()
        wanted = signals or self.aggregator is None
        given = self.read(prompt, response, response_token_ids=response_token_ids, sentences=sentences, signals=wanted)
        (answer,) = replay.replay(self, [prompt], [given], signals=wanted)
        return answer.report(given.transcript, stop=None, seconds=time.perf_counter() - started)

    def explain(self, report: Report) -> Report:
        """Return a report with words side by side for sentences that the aligner alone calls contradicted.

        The contrast of such a sentence, of the kind ``reading``, has the words of it and of its evidence without which
        the aligner finds no contradiction. To find them, the aligner reads each of these sentences some 20 to 40 times,
        with one word left out; :meth:`score` does not do so. Other sentences are as they were.
        """
        if self.aligner is None:
            return report
        explained = []
        for one in report.sentences:
            if one.verdict == "contradicted" and not one.contrasts and one.evidence is not None:
                words = deciding_words(one.text, one.evidence, report.prompt.passages, self.aligner.align)
                one = one if words is None else replace(one, contrasts=(words,))
            explained.append(one)
        return replace(report, sentences=tuple(explained))

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
        """Score many given responses in padded batches; otherwise as :meth:`score`.

        Parameters
        ----------
        prompts
            From :meth:`prompt`.
        responses, response_token_ids, sentences
            As in :meth:`score`, one for each prompt.
        signals
            As in :meth:`score`.
        batch_size
            Most responses that are replayed at once; responses of similar length are batched together.

        Returns
        -------
        list of Report
            In the order of ``prompts``; ``seconds`` is the time of the response's batch.

        Raises
        ------
        InputError
            If there are not as many responses as prompts, or ``batch_size`` is below 1; also as in :meth:`score`.
        PromptError, WrongTypeError
            As in :meth:`score`.
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
        """Measure and score a given response as :meth:`score` does, and return the signals of its sentences as well."""
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
        """Measure and score many given responses as :meth:`score_batch` does, and return their signals as well.

        Parameters
        ----------
        prompts, response_token_ids, sentences, signals, batch_size
            As in :meth:`score_batch`.
        responses
            Texts, or responses from :meth:`read`.
        on_failure
            None lets an error of the model's forward pass propagate. Otherwise a batch that fails, for example for
            lack of memory, is replayed in halves, and this function is called with the index of each response that
            fails alone and the reason.

        Returns
        -------
        iterator of (int, ScoredAnswer)
            Index among ``prompts`` and answer of each response, as soon as its batch is replayed.

        Raises
        ------
        InputError, PromptError, WrongTypeError
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
        """Return the tokens and sentences of a given response without running the model; arguments as in :meth:`score`.

        If neither ``signals`` nor the schema needs the model, the response may exceed its window.
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
