"""Replay of given responses (text, token ids or sentences): read, then measured and scored in batches."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

import numpy as np

from syncheck.decoding import ScoredAnswer, Transcript, end_tokens_of
from syncheck.decoding.generation import check_response
from syncheck.decoding.measuring import unmeasured
from syncheck.decoding.scored import scored_unmeasured
from syncheck.errors import InputError, SyncheckError, WrongTypeError, describe_failure
from syncheck.given import check_sequence, check_text, check_texts
from syncheck.parts import MonitorParts, require_prompt
from syncheck.schemas import needs_signals
from syncheck.segments import Detokenizer, IncrementalSegmenter, in_given, positions_in, segment_given
from syncheck.signals import check_window, encoding_of, switches_of
from syncheck.types import RagPrompt, SentenceSpan

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

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
    signals: bool = True,
) -> GivenResponse:
    """Read a response as :meth:`syncheck.Monitor.score` takes it; it must fit the window if the model is to read it."""
    require_prompt(prompt)
    model = monitor.model
    bounded = signals or needs_signals(monitor.config.schema)
    given = [response is not None, response_token_ids is not None or sentences is not None]
    if sum(given) != 1:
        raise InputError(
            "pass exactly one of response, response_token_ids and sentences (the last two may go together); "
            f"found {'none' if not any(given) else 'response and another'}"
        )
    if sentences is not None:
        check_texts(sentences, "sentences")
    if response_token_ids is not None:
        token_ids, behind = _cut_at_end(_checked(model, response_token_ids), end_tokens_of(model, monitor.tokenizer))
        if bounded:
            check_window(model, len(prompt.with_context_ids) + len(token_ids))  # decoding a long text takes long
        read = _decoded(monitor, prompt, token_ids, behind)
    else:
        text = "".join(sentences) if sentences is not None else response
        check_text(text, "response")
        assert text is not None
        read = _tokenized(monitor, prompt, text, bounded=bounded)
        if sentences is not None:
            sentences = _cut(sentences, len(read.transcript.text))
    if bounded:
        check_window(model, len(prompt.with_context_ids) + max(len(read.token_ids), 1))
        check_response(model, prompt, len(read.token_ids))
    if sentences is None:
        return read
    texts = [read.transcript.text[a:b] for a, b in read.transcript.char_spans]
    return replace(read, spans=segment_given(texts, sentences) if read.token_ids else [])


def read_responses(
    monitor: MonitorParts,
    prompts: Sequence[RagPrompt],
    responses: Sequence[str | GivenResponse] | None,
    response_token_ids: Sequence[Sequence[int]] | None,
    sentences: Sequence[Sequence[str]] | None,
    *,
    signals: bool = True,
) -> list[GivenResponse]:
    """Read one response for each prompt, except those that are read already.

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
    found = []
    for i, prompt in enumerate(prompts):
        response = None if responses is None else responses[i]
        if not isinstance(response, GivenResponse):
            response = read_response(
                monitor,
                prompt,
                response,
                response_token_ids=None if response_token_ids is None else response_token_ids[i],
                sentences=None if sentences is None else sentences[i],
                signals=signals,
            )
        found.append(response)
    return found


def replay(
    monitor: MonitorParts, prompts: Sequence[RagPrompt], given: Sequence[GivenResponse], *, signals: bool
) -> list[ScoredAnswer]:
    """Score responses in one batch; the model runs only if its signals are wanted or the schema needs them."""
    if signals or needs_signals(monitor.config.schema):
        with monitor.given_session(prompts) as watched:
            watched.replay([g.token_ids for g in given], [g.spans for g in given], [g.transcript for g in given])
        return watched.answers
    scorers = {prompt: monitor.scorer(prompt) for prompt in prompts}
    measured = [unmeasured(g.token_ids, g.spans, g.transcript) for g in given]
    return scored_unmeasured([scorers[prompt] for prompt in prompts], measured)


def replay_batches(
    monitor: MonitorParts,
    prompts: Sequence[RagPrompt],
    given: Sequence[GivenResponse],
    *,
    signals: bool,
    batch_size: int,
    on_failure: Failed | None = None,
) -> Iterator[tuple[int, ScoredAnswer, float]]:
    """Score many responses; yield the index and answer of each, and the seconds of its batch, batch by batch."""
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1; found {batch_size}")
    batches = list(_batches_of_like_length(monitor.model, prompts, given, batch_size))

    def in_halves(batch: Sequence[int]) -> Iterator[tuple[int, ScoredAnswer, float]]:
        started = time.perf_counter()
        try:
            answers = replay(monitor, [prompts[i] for i in batch], [given[i] for i in batch], signals=signals)
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

    return (found for batch in batches for found in in_halves(batch))


def _batches_of_like_length(
    model: PreTrainedModel, prompts: Sequence[RagPrompt], given: Sequence[GivenResponse], size: int
) -> Iterator[list[int]]:
    """Yield the indices of up to ``size`` responses at once, in the order of their length with the prompt.

    Responses that the model would encode differently in a batch than alone are kept apart.
    """
    switches = switches_of(model)
    order = sorted(range(len(given)), key=lambda i: len(prompts[i].with_context_ids) + len(given[i].token_ids))
    batch: list[int] = []
    for i in order:
        together = [*batch, i]
        longest = max(len(given[k].token_ids) for k in together)  # what the others are filled up to
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


def _tokenized(monitor: MonitorParts, prompt: RagPrompt, text: str, *, bounded: bool, cut: int = 0) -> GivenResponse:
    """Tokenise a text from character ``cut`` on, up to an end-of-text token that is written in it.

    What is behind it is kept as ``after_end`` of the transcript. A text that the model does not read (``bounded`` is
    false) has no such end. Characters are counted in the whole text. Llama-2's tokenizer puts a space before a text, so
    its answers begin with one; such an answer is tokenised without the space.
    """
    model, tokenizer = monitor.model, monitor.tokenizer
    # verbose=False: check_window reports a text that is too long.
    encoded = tokenizer(text[cut:], add_special_tokens=False, return_offsets_mapping=tokenizer.is_fast, verbose=False)
    token_ids, behind = _cut_at_end(encoded["input_ids"], end_tokens_of(model, tokenizer) if bounded else ())
    without_space = int(not cut and text.startswith(" "))  # tokens that it may yet lose
    if bounded:
        check_window(model, len(prompt.with_context_ids) + len(token_ids) - without_space)
    offsets = [(a + cut, b + cut) for a, b in encoded["offset_mapping"]] if tokenizer.is_fast else None
    if len(token_ids) < len(encoded["input_ids"]):
        text = _before_token(
            tokenizer, text, encoded["input_ids"][len(token_ids)], offsets[len(token_ids)] if offsets else None
        )
        offsets = offsets[: len(token_ids)] if offsets else None
    read = _decoded(monitor, prompt, token_ids, behind)
    decoded = read.transcript
    if not cut and text.startswith(" ") and decoded.text == " " + text:
        return _tokenized(monitor, prompt, text, bounded=bounded, cut=1)
    positions = positions_in(text, decoded.text, decoded.char_spans, offsets)
    char_spans = [(positions[a], positions[b]) for a, b in decoded.char_spans]
    transcript = replace(decoded, text=text, char_spans=char_spans)
    return GivenResponse(read.token_ids, in_given(text, positions, read.spans), transcript)


def _before_token(tokenizer: PreTrainedTokenizerBase, text: str, token_id: int, place: tuple[int, int] | None) -> str:
    """Return the text before a token; all of it if the tokenizer put the token after the text."""
    if place is None:  # a slow tokenizer gives no place, but the token is in the text under its name
        return text.partition(tokenizer.convert_ids_to_tokens(token_id))[0]
    start, stop = place
    return text[:start] if start < stop else text


def _decoded(monitor: MonitorParts, prompt: RagPrompt, token_ids: list[int], behind: list[int]) -> GivenResponse:
    """Return the text of token ids and its sentences, and the text of the tokens behind their end."""
    detokenizer = Detokenizer(monitor.tokenizer, prompt.with_context_ids)
    segmenter = IncrementalSegmenter(monitor.config.segmenter)
    spans = [span for token_id in token_ids for span in segmenter.push(detokenizer.push(token_id))]
    if token_ids:
        spans += segmenter.finish(detokenizer.flush())
    transcript = Transcript(segmenter.text, segmenter.char_spans, _after_end(monitor, behind))
    return GivenResponse(token_ids, spans, transcript)


def _after_end(monitor: MonitorParts, token_ids: list[int]) -> str:
    """Return the text of tokens behind an end-of-text token, without the padding that generation puts there."""
    padding = monitor.model.generation_config.pad_token_id
    written = [token for token in token_ids if token != padding]
    return monitor.tokenizer.decode(written, skip_special_tokens=True).strip() if written else ""


def _cut(sentences: Sequence[str], length: int) -> list[str]:
    """Return the sentences of a text that was cut off at ``length`` characters."""
    starts = accumulate(map(len, sentences), initial=0)
    pairs = zip(sentences, starts, strict=False)
    return [s[: length - start] if start <= length < start + len(s) else s for s, start in pairs]


def _checked(model: PreTrainedModel, token_ids: Sequence[int]) -> list[int]:
    check_sequence(token_ids, "response_token_ids", of="integers")
    if not all(isinstance(i, int | np.integer) for i in token_ids):
        raise WrongTypeError("response_token_ids must be a list of integers")
    size = model.get_input_embeddings().num_embeddings
    if outside := [int(i) for i in token_ids if not 0 <= i < size]:
        raise InputError(f"response_token_ids must be in 0..{size - 1}, the vocabulary; found {outside[:5]}")
    return [int(i) for i in token_ids]


def _cut_at_end(token_ids: Sequence[int], end_tokens: Collection[int]) -> tuple[list[int], list[int]]:
    """Return the tokens before the first end-of-text token, and those after it."""
    before = list(takewhile(lambda token: token not in end_tokens, token_ids))
    return before, list(token_ids[len(before) + 1 :])
