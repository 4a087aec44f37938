"""The monitor: joins prompt, session, features, aligner and aggregator into scored sentences."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from syncheck import checkpoint
from syncheck.aggregators import Aggregator
from syncheck.alignment import Aligner
from syncheck.config import AggregatorKind, MonitorConfig
from syncheck.decoding import StopReason, decode, end_tokens_of, prepare
from syncheck.errors import InputError, WrongTypeError
from syncheck.features import feature_schema, needs_lid
from syncheck.judging import EndEvent, Event, MonitoredSession, SentenceEvent, SentenceJudge, TokenEvent
from syncheck.measuring import Transcript
from syncheck.prompts import build_prompt
from syncheck.report import Report
from syncheck.segments import Detokenizer, IncrementalSegmenter, segment_given
from syncheck.session import DecodingSession
from syncheck.signals import ReferenceBank, check_window
from syncheck.types import RagPrompt
from syncheck.watch import Watch

if TYPE_CHECKING:
    from syncheck.training import LabelledResponse

__all__ = ["Monitor"]

logger = logging.getLogger(__name__)


class Monitor:
    """Scores the sentences of a language model's answers for faithfulness to the retrieved context.

    Parameters
    ----------
    model
        A Hugging Face causal language model; put into evaluation mode.
    tokenizer
        Its tokenizer.
    config
        What is measured.
    aggregator
        Turns features into P(faithful); None leaves the sentences without a score (status ``no_aggregator``).
    bank
        Reference activations for LID; needed when the schema has LID features and there is an aggregator.
    aligner
        Scores sentences against the context; None leaves ``align_score`` unmeasured.
    trained_on
        Ids of the records the aggregator has seen, so that an evaluation can refuse them.

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
        config: MonitorConfig,
        aggregator: Aggregator | None = None,
        bank: ReferenceBank | None = None,
        aligner: Aligner | None = None,
        trained_on: Iterable[str] = (),
    ) -> None:
        self.trained_on = frozenset(trained_on)
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.config = config
        self.aggregator = aggregator
        self.bank = bank
        self.aligner = aligner
        self.schema = feature_schema(config.schema, config.layers)
        if aggregator is not None and bank is None and needs_lid(config.schema):
            logger.warning("schema %r has LID, but there are no references; LID will not be measured", config.schema)

    def prompt(self, *, question: str, context: str | Sequence[str]) -> RagPrompt:
        """Build the pair of prompts; see :func:`syncheck.build_prompt`."""
        return build_prompt(self.tokenizer, question=question, context=context, template=self.config.template)

    def session(self, prompt: RagPrompt) -> MonitoredSession:
        """Open a session for a decoder of your own; a context manager."""
        decoding = DecodingSession(
            self.model, self.tokenizer, prompt, layers=self.config.layers, segmenter=self.config.segmenter
        )
        return MonitoredSession(decoding, self.judge(prompt))

    def judge(self, prompt: RagPrompt) -> SentenceJudge:
        """Return what turns the measured sentences of one prompt into scores."""
        _require_prompt(prompt)
        return SentenceJudge(
            prompt, schema=self.schema, aggregator=self.aggregator, bank=self.bank, aligner=self.aligner
        )

    def attach(self, prompt: RagPrompt) -> Watch:
        """Watch a generation loop that is not ours; see :class:`syncheck.Watch`."""
        return Watch(
            self.model,
            self.tokenizer,
            prompt,
            judge=self.judge(prompt),
            layers=self.config.layers,
            segmenter=self.config.segmenter,
        )

    def generate(self, prompt: RagPrompt, *, generator: torch.Generator | None = None, **kwargs: Any) -> Report:  # noqa: ANN401
        """Generate a response and score its sentences as they come.

        Parameters
        ----------
        prompt
            From :meth:`prompt`.
        generator
            Source of randomness when ``do_sample`` is set; None uses torch's global one, as ``generate`` does.
        **kwargs
            What ``model.generate`` takes: ``max_new_tokens``, ``do_sample``, ``generation_config``,
            ``logits_processor``, ``stopping_criteria``, ``streamer``, ...

        Returns
        -------
        Report

        Raises
        ------
        PromptError
            If the prompt does not fit the model's window.
        InputError
            For beam search and several sequences.
        """
        for event in self.stream(prompt, generator=generator, **kwargs):
            if isinstance(event, EndEvent):
                return event.report
        raise AssertionError("a stream closes with an EndEvent")

    def stream(
        self,
        prompt: RagPrompt,
        *,
        release: Literal["verified", "immediate"] = "verified",
        generator: torch.Generator | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> Iterator[Event]:
        """Generate and yield events as they happen.

        A sentence's event exists before the next sentence's second token is decoded.

        Parameters
        ----------
        prompt
            From :meth:`prompt`.
        release
            ``verified``: a token's event follows that of its sentence, so that text reaches a reader only with its
            score. ``immediate``: tokens come as they are decoded.
        generator
            As in :meth:`generate`.
        **kwargs
            As in :meth:`generate`.

        Yields
        ------
        TokenEvent, SentenceEvent, EndEvent
        """
        started = time.perf_counter()
        _require_prompt(prompt)
        if release not in ("verified", "immediate"):
            raise InputError(f"release must be 'verified' or 'immediate'; found {release!r}")
        plan = prepare(self.model, prompt, **kwargs)
        with self.session(prompt) as watched:
            held: list[TokenEvent] = []
            stop: StopReason | None = None
            for token_id, text, reason in decode(watched.decoding, plan, generator=generator):
                stop = reason
                if token_id not in plan.end_tokens:
                    held.append(TokenEvent(token_id, text))
                if release == "immediate":
                    yield from held
                    held = []
                if not watched.decoding.rows[0].closed:
                    continue
                for sentence in watched.judge_round():
                    yield SentenceEvent(sentence)
                    if release == "verified":
                        count = sentence.token_end - sentence.token_start
                        yield from held[:count]
                        held = held[count:]
            yield from held
            yield EndEvent(watched.report(stop=stop, seconds=time.perf_counter() - started))

    def score(
        self,
        prompt: RagPrompt,
        response: str | None = None,
        *,
        response_token_ids: Sequence[int] | None = None,
        sentences: Sequence[str] | None = None,
    ) -> Report:
        """Score a given response by replay; the monitored model acts as surrogate for whatever model wrote it.

        Parameters
        ----------
        prompt
            From :meth:`prompt`.
        response
            The text, tokenised once, without special tokens.
        response_token_ids
            Its tokens instead, for instance those the model generated; what follows an end-of-text token, and
            that token, do not count.
        sentences
            The response cut into sentences, with all white space; joined they are the response.

        Raises
        ------
        InputError
            If not exactly one of ``response``, ``response_token_ids`` and ``sentences`` is the response; the last
            two may go together and then have to agree.
        PromptError
            If prompt and response do not fit the model's window.
        """
        started = time.perf_counter()
        watched = self.replay(prompt, response, response_token_ids=response_token_ids, sentences=sentences)
        return watched.report(stop=None, seconds=time.perf_counter() - started)

    def replay(
        self,
        prompt: RagPrompt,
        response: str | None = None,
        *,
        response_token_ids: Sequence[int] | None = None,
        sentences: Sequence[str] | None = None,
    ) -> MonitoredSession:
        """Measure and judge a given response; as :meth:`score`, with the signals beside the scores.

        Returns
        -------
        MonitoredSession
            Closed; its ``sentences`` and ``signals`` are those of the response.
        """
        _require_prompt(prompt)
        token_ids = self._response_ids(response, response_token_ids, sentences)
        check_window(self.model, len(prompt.with_context_ids) + max(len(token_ids), 1))
        detokenizer = Detokenizer(self.tokenizer, prompt.with_context_ids)
        segmenter = IncrementalSegmenter(self.config.segmenter)
        spans = [span for token_id in token_ids for span in segmenter.push(detokenizer.push(token_id))]
        if token_ids:
            spans += segmenter.finish(detokenizer.flush())
        transcript = Transcript(segmenter.text, segmenter.char_spans)
        if sentences is not None:
            texts = [segmenter.text[a:b] for a, b in segmenter.char_spans]
            spans = segment_given(texts, sentences) if token_ids else []
        with self.session(prompt) as watched:
            watched.replay(token_ids, spans, transcript)
        return watched

    def _response_ids(
        self, response: str | None, token_ids: Sequence[int] | None, sentences: Sequence[str] | None
    ) -> list[int]:
        given = [response is not None, token_ids is not None or sentences is not None]
        if sum(given) != 1:
            raise InputError(
                "pass exactly one of response, response_token_ids and sentences (the last two may go together); "
                f"found {'none' if not any(given) else 'response and another'}"
            )
        if sentences is not None and (isinstance(sentences, str) or not all(isinstance(s, str) for s in sentences)):
            raise WrongTypeError("sentences must be a list of strings")
        if token_ids is not None:
            return _before_end(self._checked(token_ids), end_tokens_of(self.model, self.tokenizer))
        text = "".join(sentences) if sentences is not None else response
        if not isinstance(text, str):
            raise WrongTypeError(f"response must be a string; found {type(text).__name__}")
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _checked(self, token_ids: Sequence[int]) -> list[int]:
        if not all(isinstance(i, int | np.integer) for i in token_ids):
            raise WrongTypeError("response_token_ids must be a list of integers")
        size = self.model.get_input_embeddings().num_embeddings
        outside = [int(i) for i in token_ids if not 0 <= i < size]
        if outside:
            raise InputError(f"response_token_ids must be in 0..{size - 1}, the vocabulary; found {outside[:5]}")
        return [int(i) for i in token_ids]

    @classmethod
    def fit(
        cls,
        records: Iterable[LabelledResponse],
        *,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        aggregator: AggregatorKind = "mlp",
        config: MonitorConfig | None = None,
        aligner: Aligner | None | Literal["bundled"] = "bundled",
        random_state: int = 0,
    ) -> Monitor:
        """Train a monitor on labelled responses; see :func:`syncheck.training.fit_monitor`."""
        from syncheck.training import fit_monitor

        return fit_monitor(
            records,
            model=model,
            tokenizer=tokenizer,
            kind=aggregator,
            config=config,
            aligner=aligner,
            random_state=random_state,
        )

    def save_pretrained(self, directory: str | Path) -> None:
        """Write config, aggregator and LID references to a folder; the model and the aligner are named, not copied."""
        checkpoint.save(Path(directory), self)

    @classmethod
    def from_pretrained(
        cls,
        directory: str | Path,
        *,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        aligner: Aligner | None = None,
    ) -> Monitor:
        """Read a folder that :meth:`save_pretrained` wrote.

        Parameters
        ----------
        directory
            The folder.
        model, tokenizer
            Those the monitor was trained with.
        aligner
            Replaces the saved choice by one with the same name; None loads the saved choice.

        Raises
        ------
        CheckpointError
            If a file is missing or damaged.
        MismatchError
            If the monitor was trained with another model, tokenizer or aligner.
        """
        return checkpoint.load(cls, Path(directory), model=model, tokenizer=tokenizer, aligner=aligner)


def _require_prompt(prompt: object) -> None:
    if not isinstance(prompt, RagPrompt):
        raise WrongTypeError(f"prompt must be a RagPrompt, from monitor.prompt(...); found {type(prompt).__name__}")


def _before_end(token_ids: Sequence[int], end_tokens: Collection[int]) -> list[int]:
    return list(takewhile(lambda token: token not in end_tokens, token_ids))
