"""Monitors of a model: prompt, session, verifier, signals and aggregator joined into scored sentences."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import torch

from syncheck import replay
from syncheck.base.checks import check_choice, check_count
from syncheck.base.errors import InputError
from syncheck.decoding import prepare_generation
from syncheck.decoding.attach import BatchWatch, Watch
from syncheck.decoding.scored import GrowingResponse, MeasuredText, ScoredAnswer
from syncheck.monitor_base import MonitorParts, require_prompt, rows_of, scorers_of
from syncheck.replay import GivenResponse
from syncheck.results import Report
from syncheck.results.events import EndEvent, Event, SentenceEvent, TokenEvent
from syncheck.results.protocol import Reveal
from syncheck.results.types import RagPrompt
from syncheck.scoring import check_stop_below
from syncheck.signals import check_window
from syncheck.watching.text_watch import TextWatch, watch, watch_async

if TYPE_CHECKING:
    from syncheck.results import ProtocolEvent


class ModelMonitor(MonitorParts):
    """Watches a language model and scores the sentences of its answers.

    The base of :class:`syncheck.Monitor`, which describes its parameters and adds training; what is built upon
    monitors takes any of them.
    """

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
        return kind(self.model, self.tokenizer, rows, scorers=scorers_of(rows, self.scorer), **self._measuring)

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
        lookup: int = 16,
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
        lookup
            Largest number of tokens that are drafted from the prompt and read in one forward pass, for a single
            response; 0 turns this off. It saves time where the response copies; see
            :class:`syncheck.decoding.PromptLookup`.
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
        check_count(lookup, "lookup", least=0)
        if num_return_sequences is not None:
            kwargs["num_return_sequences"] = num_return_sequences
        plan = prepare_generation(self.model, given, **{"tokenizer": self.tokenizer, **kwargs})
        each = plan.config.num_return_sequences or 1
        with self.session([prompt for prompt in given for _ in range(each)]) as watched:
            for _ in watched.decode(plan, generator=generator, stop_below=stop_below, lookup=lookup):
                pass
            reports = watched.reports(seconds=time.perf_counter() - started)
        return reports[0] if isinstance(prompts, RagPrompt) and each == 1 else reports

    def stream(
        self,
        prompt: RagPrompt,
        *,
        reveal: Reveal = "verified",
        generator: torch.Generator | None = None,
        stop_below: float | None = None,
        lookup: int = 16,
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
        generator, stop_below, lookup, **kwargs
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
        check_count(lookup, "lookup", least=0)
        plan = prepare_generation(self.model, prompt, **{"tokenizer": self.tokenizer, **kwargs})
        if (plan.config.num_return_sequences or 1) > 1:
            raise InputError("a stream is of one response; use generate for several")
        with self.session(prompt) as watched:
            held: list[TokenEvent] = []
            for step, sentences in watched.steps(plan, generator=generator, stop_below=stop_below, lookup=lookup):
                (token_id,), (text,) = step.token_ids, step.texts
                if token_id not in plan.end_tokens:
                    held.append(TokenEvent(token_id, text))
                if reveal == "immediate":
                    yield from held
                    held = []
                for sentence in sentences[0] if sentences else ():
                    row = watched.decoding.rows[0]
                    event = SentenceEvent.of(sentence, row.token_ids, row.text)
                    yield event
                    if reveal == "verified":
                        tokens = len(event.token_ids)
                        yield from held[:tokens]
                        held = held[tokens:]
            (report,) = watched.reports(seconds=time.perf_counter() - started)
            yield from held if report.stop != "below_threshold" else ()
            yield EndEvent(report)

    def watch_text(self, prompt: RagPrompt, *, signals: bool = False, **options: Any) -> TextWatch:  # noqa: ANN401
        """Score an answer while its text arrives, whichever model writes it; as :meth:`syncheck.Verifier.watch_text`.

        ``signals`` is as in :meth:`score`. If the model has to read the prompt, and it does not fit its window,
        PromptError is raised.
        """
        require_prompt(prompt)
        if not self._asks_model(signals):
            return self.verifier.watched(prompt, **options)
        check_window(self.model, len(prompt.with_context_ids) + 1)
        reading = GrowingResponse(self.model, self.tokenizer, prompt, segmenter=self.config.segmenter)
        session, scorer = self.given_session(prompt), self.scorer(prompt)
        answer = MeasuredText(session, scorer, reading)
        return TextWatch(answer, prompt, has_scores=self.aggregator is not None, **options)

    def watch(
        self,
        stream: Iterable[str],
        prompt: RagPrompt,
        *,
        signals: bool = False,
        **options: Any,
    ) -> Iterator[ProtocolEvent]:
        """Score the answer in a stream of text, which is then closed; as :meth:`syncheck.Verifier.watch`.

        ``signals`` and the errors of a prompt are as in :meth:`watch_text`.
        """
        return watch(stream, partial(self.watch_text, prompt, signals=signals), **options)

    def watch_async(
        self,
        stream: AsyncIterable[str],
        prompt: RagPrompt,
        *,
        signals: bool = False,
        **options: Any,
    ) -> AsyncIterator[ProtocolEvent]:
        """Score the answer in an asynchronous stream of text; otherwise as :meth:`watch`."""
        return watch_async(stream, lambda: self.watch_text(prompt, signals=signals, **options))

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
            The text. If the model reads it, it is tokenised once, without special tokens, and an end-of-text token that
            is written in it ends it; what is after that is in ``after_end`` of the report.
        response_token_ids
            The token ids of the response, instead of its text. An end-of-text token ends the response and is not part
            of it; text after it, padding aside, is in ``after_end`` of the report.
        sentences
            The sentences of the response with all white space: joined, they are the response.
        signals
            True measures the model's signals even if the schema needs none. False leaves the text to :attr:`verifier`
            in that case, and the report has no tokens. A monitor without an aggregator always measures them.

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
        if not self._asks_model(signals):
            return replay.verified(self, prompt, response, response_token_ids=response_token_ids, sentences=sentences)
        given = self.read(prompt, response, response_token_ids=response_token_ids, sentences=sentences)
        (answer,) = replay.replay(self, [prompt], [given])
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
        if not self._asks_model(signals):
            columns = replay.columns_of(prompts, responses, response_token_ids, sentences)
            return [
                replay.verified(self, prompt, text, response_token_ids=ids, sentences=cut)
                for prompt, text, ids, cut in columns
            ]
        given = replay.read_responses(self, prompts, responses, response_token_ids, sentences)
        answers = replay.replay_batches(self, prompts, given, batch_size=batch_size)
        reports = {i: answer.report(given[i].transcript, stop=None, seconds=seconds) for i, answer, seconds in answers}
        return [reports[i] for i in range(len(given))]

    def replay(self, prompt: RagPrompt, response: str | GivenResponse) -> ScoredAnswer:
        """Measure and score a response, and return the signals of its sentences as well; see :meth:`replay_batch`."""
        given = replay.read_responses(self, [prompt], [response], None, None)
        return replay.replay(self, [prompt], given)[0]

    def replay_batch(
        self,
        prompts: Sequence[RagPrompt],
        responses: Sequence[str | GivenResponse],
        *,
        batch_size: int = 16,
        on_failure: Callable[[int, str], None] | None = None,
    ) -> Iterator[tuple[int, ScoredAnswer]]:
        """Measure and score many given responses as :meth:`score_batch` does, and return their signals as well.

        Parameters
        ----------
        prompts, batch_size
            As in :meth:`score_batch`.
        responses
            Texts, or responses from :meth:`read`, which also reads token ids and sentences.
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
        given = replay.read_responses(self, prompts, responses, None, None)
        answers = replay.replay_batches(self, prompts, given, batch_size=batch_size, on_failure=on_failure)
        return ((place, answer) for place, answer, _ in answers)

    def read(
        self,
        prompt: RagPrompt,
        response: str | None = None,
        *,
        response_token_ids: Sequence[int] | None = None,
        sentences: Sequence[str] | None = None,
    ) -> GivenResponse:
        """Read the tokens and sentences of a given response, before the model runs; arguments as in :meth:`score`."""
        return replay.read_response(self, prompt, response, response_token_ids=response_token_ids, sentences=sentences)
