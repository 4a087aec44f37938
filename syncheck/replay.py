"""Replay of given responses (text, token ids or sentences): read, then measured and scored in batches."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

import numpy as np

from syncheck.base.checks import check_sequence, check_text, check_texts
from syncheck.base.errors import InputError, SyncheckError, WrongTypeError, describe_failure
from syncheck.decoding import ScoredAnswer, Transcript, end_tokens_of
from syncheck.decoding.generation import after_end, check_response
from syncheck.decoding.scored import GrowingResponse, scored_answers
from syncheck.monitor_base import MonitorParts, require_prompt, scorers_of
from syncheck.results import Report
from syncheck.results.types import RagPrompt, SentenceSpan
from syncheck.signals import check_window, encoding_of, switches_of
from syncheck.text.sentences import Detokenizer, IncrementalSegmenter, segment_given

if TYPE_CHECKING:
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

Failed = Callable[[int, str], None]
"""Function that is called with the index of a response that failed, and the reason."""


@dataclass(frozen=True, slots=True)
class GivenResponse:
    """A response as it is replayed: its tokens without end-of-text token, its sentences, and its text."""

    token_ids: list[int]
    spans: list[SentenceSpan]
    """The sentences, which partition the tokens."""
    transcript: Transcript
    """The text, and the characters of each token."""


def read_response(
    monitor: MonitorParts,
    prompt: RagPrompt,
    response: str | None = None,
    *,
    response_token_ids: Sequence[int] | None = None,
    sentences: Sequence[str] | None = None,
) -> GivenResponse:
    """Read a response as :meth:`syncheck.Monitor.score` takes it; with its prompt it must fit the model's window."""
    require_prompt(prompt)
    model = monitor.model
    given = [response is not None, response_token_ids is not None or sentences is not None]
    if sum(given) != 1:
        raise InputError(
            "pass exactly one of response, response_token_ids and sentences (the last two may go together); "
            f"found {'none' if not any(given) else 'response and another'}"
        )
    if sentences is not None:
        check_texts(sentences, "sentences")
    if response_token_ids is not None:
        token_ids, behind = _cut_at_end(monitor, response_token_ids)
        check_window(model, len(prompt.with_context_ids) + len(token_ids))  # decoding a long text takes long
        read = _decoded(monitor, prompt, token_ids, behind)
    else:
        text = "".join(sentences) if sentences is not None else response
        check_text(text, "response")
        assert text is not None
        reading = GrowingResponse(model, monitor.tokenizer, prompt, segmenter=monitor.config.segmenter, text=text)
        spans = reading.finish()  # sets the others
        read = GivenResponse(reading.token_ids, spans, reading.transcript)
        if sentences is not None:
            sentences = _cut(sentences, len(read.transcript.text))
    check_window(model, len(prompt.with_context_ids) + max(len(read.token_ids), 1))
    check_response(model, prompt, len(read.token_ids))
    if sentences is None:
        return read
    texts = [read.transcript.text[a:b] for a, b in read.transcript.char_spans]
    return replace(read, spans=segment_given(texts, sentences) if read.token_ids else [])


Columns = tuple[RagPrompt, "str | GivenResponse | None", "Sequence[int] | None", "Sequence[str] | None"]
"""A prompt with its response: a text or what was read of it, token ids, and sentences."""


def columns_of(
    prompts: Sequence[RagPrompt],
    responses: Sequence[str | GivenResponse] | None,
    response_token_ids: Sequence[Sequence[int]] | None,
    sentences: Sequence[Sequence[str]] | None,
) -> list[Columns]:
    """Pair each prompt with its response.

    A different number of responses raises InputError; arguments that are not sequences raise WrongTypeError.
    """
    check_sequence(prompts, "prompts", of="prompts")
    columns = {"responses": responses, "response_token_ids": response_token_ids, "sentences": sentences}
    for name, given in columns.items():
        if given is not None:
            check_sequence(given, name, of="one for each prompt")
            if len(given) != len(prompts):
                raise InputError(
                    f"{name} must have one entry for each of the {len(prompts)} prompts; found {len(given)}"
                )
    nothing = [None] * len(prompts)
    filled = (nothing if given is None else given for given in columns.values())
    return list(zip(prompts, *filled, strict=True))


def read_responses(
    monitor: MonitorParts,
    prompts: Sequence[RagPrompt],
    responses: Sequence[str | GivenResponse] | None,
    response_token_ids: Sequence[Sequence[int]] | None,
    sentences: Sequence[Sequence[str]] | None,
) -> list[GivenResponse]:
    """Read one response for each prompt, except those that are read already; errors as in :func:`columns_of`."""
    return [
        response
        if isinstance(response, GivenResponse)
        else read_response(monitor, prompt, response, response_token_ids=ids, sentences=cut)
        for prompt, response, ids, cut in columns_of(prompts, responses, response_token_ids, sentences)
    ]


def verified(
    monitor: MonitorParts,
    prompt: RagPrompt,
    response: str | GivenResponse | None = None,
    *,
    response_token_ids: Sequence[int] | None = None,
    sentences: Sequence[str] | None = None,
) -> Report:
    """Score a response by its text alone, without the model; token ids are decoded up to an end-of-text token."""
    require_prompt(prompt)
    if isinstance(response, GivenResponse):
        response = response.transcript.text
    if response_token_ids is None:
        return monitor.verifier.answer(prompt, response, sentences=sentences)
    if response is not None:
        raise InputError("pass either response or response_token_ids; found both")
    ids, behind = _cut_at_end(monitor, response_token_ids)
    text = _decoded(monitor, prompt, ids, behind).transcript.text
    if sentences is not None and "".join(sentences) != text:
        raise InputError("sentences and response_token_ids must be of the same text; pass one of them")
    report = monitor.verifier.answer(prompt, None if sentences else text, sentences=sentences or None)
    return replace(report, after_end=after_end(monitor.model, monitor.tokenizer, behind))


def replay(monitor: MonitorParts, prompts: Sequence[RagPrompt], given: Sequence[GivenResponse]) -> list[ScoredAnswer]:
    """Measure and score responses in one batch."""
    with monitor.given_session(prompts) as session:
        measured = session.replay([g.token_ids for g in given], [g.spans for g in given], [g.transcript for g in given])
    return scored_answers(scorers_of(prompts, monitor.scorer), measured)


def replay_batches(
    monitor: MonitorParts,
    prompts: Sequence[RagPrompt],
    given: Sequence[GivenResponse],
    *,
    batch_size: int,
    on_failure: Failed | None = None,
) -> Iterator[tuple[int, ScoredAnswer, float]]:
    """Score many responses; yield the index and answer of each, and the seconds of its batch, batch by batch."""
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1; found {batch_size}")
    batches = list(_batches_of_like_prompts(monitor.model, prompts, given, batch_size))

    def in_halves(batch: Sequence[int]) -> Iterator[tuple[int, ScoredAnswer, float]]:
        started = time.perf_counter()
        try:
            answers = replay(monitor, [prompts[i] for i in batch], [given[i] for i in batch])
        except SyncheckError:
            raise
        except Exception as error:  # whatever a model's forward raises, the other responses are replayed
            if on_failure is None:
                raise
            reason = describe_failure(error)
        else:
            seconds = time.perf_counter() - started
            yield from ((place, answer, seconds) for place, answer in zip(batch, answers, strict=True))
            return
        # Outside the handler, which would keep the tensors of the failed forward alive.
        if len(batch) == 1:
            on_failure(batch[0], reason)
            return
        middle = len(batch) // 2
        logger.warning(
            "%d responses at once: %s; measured as %d and %d", len(batch), reason, middle, len(batch) - middle
        )
        for half in (batch[:middle], batch[middle:]):
            yield from in_halves(half)

    return (replayed for batch in batches for replayed in in_halves(batch))


def _batches_of_like_prompts(
    model: PreTrainedModel, prompts: Sequence[RagPrompt], given: Sequence[GivenResponse], size: int
) -> Iterator[list[int]]:
    """Yield the indices of up to ``size`` responses at once: those with the same passages together, by length.

    A batch encodes the beginning that its prompts share once. Responses that the model would encode differently in a
    batch than alone are kept apart.
    """
    switches = switches_of(model)
    lengths = [len(prompt.with_context_ids) + len(each.token_ids) for prompt, each in zip(prompts, given, strict=True)]
    widths: dict[tuple[str, ...], int] = {}
    for prompt, length in zip(prompts, lengths, strict=True):
        widths[prompt.passages] = max(length, widths.get(prompt.passages, 0))
    order = sorted(range(len(given)), key=lambda i: (widths[prompts[i].passages], prompts[i].passages, lengths[i]))
    batch: list[int] = []
    for i in order:
        together = [*batch, i]
        longest = max(len(given[k].token_ids) for k in together)  # the others are padded to this
        pairs = [(len(prompts[k].with_context_ids), len(prompts[k].without_context_ids)) for k in together]
        alike = all(
            len({encoding_of(switches, n) for n in (*branch, max(branch) + longest)}) == 1
            for branch in zip(*pairs, strict=True)
        )
        if batch and (len(batch) == size or not alike):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _decoded(monitor: MonitorParts, prompt: RagPrompt, token_ids: list[int], behind: list[int]) -> GivenResponse:
    """Decode token ids to text, cut it into sentences, and decode the tokens after their end."""
    detokenizer = Detokenizer(monitor.tokenizer, prompt.with_context_ids)
    segmenter = IncrementalSegmenter(monitor.config.segmenter)
    spans = [span for token_id in token_ids for span in segmenter.push(detokenizer.push(token_id))]
    if token_ids:
        spans += segmenter.finish(detokenizer.flush())
    transcript = Transcript(segmenter.text, segmenter.char_spans, after_end(monitor.model, monitor.tokenizer, behind))
    return GivenResponse(token_ids, spans, transcript)


def _cut(sentences: Sequence[str], length: int) -> list[str]:
    """Cut the sentences to those of a text that was cut off at ``length`` characters."""
    starts = accumulate(map(len, sentences), initial=0)
    pairs = zip(sentences, starts, strict=False)
    return [s[: length - start] if start <= length < start + len(s) else s for s, start in pairs]


def _cut_at_end(monitor: MonitorParts, token_ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """Check token ids and split them at the first end-of-text token: those before it, and those after it."""
    check_sequence(token_ids, "response_token_ids", of="integers")
    if not all(isinstance(i, int | np.integer) for i in token_ids):
        raise WrongTypeError("response_token_ids must be a list of integers")
    size = monitor.model.get_input_embeddings().num_embeddings
    if outside := [int(i) for i in token_ids if not 0 <= i < size]:
        raise InputError(f"response_token_ids must be in 0..{size - 1}, the vocabulary; found {outside[:5]}")
    ids, ends = [int(i) for i in token_ids], end_tokens_of(monitor.model, monitor.tokenizer)
    before = list(takewhile(lambda token: token not in ends, ids))
    return before, ids[len(before) + 1 :]
