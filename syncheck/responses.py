"""A response that is given rather than decoded: as text, as token ids or cut into sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from syncheck.config import SegmenterConfig
from syncheck.decoding import Transcript, end_tokens_of
from syncheck.errors import InputError, WrongTypeError
from syncheck.segments import Detokenizer, IncrementalSegmenter, in_given, positions_in, segment_given
from syncheck.signals import check_window
from syncheck.types import RagPrompt, SentenceSpan

__all__ = ["GivenResponse", "batches_of_like_length", "read_response", "rows_given"]


@dataclass(frozen=True, slots=True)
class GivenResponse:
    """Tokens of a response without an end-of-text token, its sentences, which partition them, and its text."""

    token_ids: list[int]
    spans: list[SentenceSpan]
    transcript: Transcript


def read_response(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompt: RagPrompt,
    segmenter: SegmenterConfig,
    *,
    response: str | None,
    response_token_ids: Sequence[int] | None,
    sentences: Sequence[str] | None,
) -> GivenResponse:
    """Read a response as :meth:`syncheck.Monitor.score` takes it.

    Raises
    ------
    InputError
        If not exactly one of ``response``, ``response_token_ids`` and ``sentences`` is the response (the last two may
        go together), or an id is outside the vocabulary.
    PromptError
        If prompt and response do not fit the model's window, or the tokenizer rewrites the text without telling where.
    WrongTypeError
        If one is of another type.
    """
    given = [response is not None, response_token_ids is not None or sentences is not None]
    if sum(given) != 1:
        raise InputError(
            "pass exactly one of response, response_token_ids and sentences (the last two may go together); "
            f"found {'none' if not any(given) else 'response and another'}"
        )
    if sentences is not None and (isinstance(sentences, str) or not all(isinstance(s, str) for s in sentences)):
        raise WrongTypeError("sentences must be a list of strings")
    if response_token_ids is not None:
        token_ids = _before_end(_checked(model, response_token_ids), end_tokens_of(model, tokenizer))
        check_window(model, len(prompt.with_context_ids) + len(token_ids))  # before what takes long of a long text
        read = _decoded(tokenizer, prompt, token_ids, segmenter)
    else:
        text = "".join(sentences) if sentences is not None else response
        if not isinstance(text, str):
            raise WrongTypeError(f"response must be a string; found {type(text).__name__}")
        read = _tokenized(model, tokenizer, prompt, text, segmenter)
    check_window(model, len(prompt.with_context_ids) + max(len(read.token_ids), 1))
    if sentences is None:
        return read
    texts = [read.transcript.text[a:b] for a, b in read.transcript.char_spans]
    return replace(read, spans=segment_given(texts, sentences) if read.token_ids else [])


Given = tuple[str | None, Sequence[int] | None, Sequence[str] | None]
"""A response as text, as token ids and in sentences, as far as it was given."""


def rows_given(
    prompts: Sequence[RagPrompt],
    responses: Sequence[str] | None,
    response_token_ids: Sequence[Sequence[int]] | None,
    sentences: Sequence[Sequence[str]] | None,
) -> list[Given]:
    """Return what was given of each row.

    Raises
    ------
    InputError
        If there are not as many as prompts.
    """
    columns = {"responses": responses, "response_token_ids": response_token_ids, "sentences": sentences}
    for name, given in columns.items():
        if given is not None and len(given) != len(prompts):
            raise InputError(f"{name} must be one for each of the {len(prompts)} prompts; found {len(given)}")
    absent = [None] * len(prompts)
    return list(zip(responses or absent, response_token_ids or absent, sentences or absent, strict=True))


def batches_of_like_length(
    prompts: Sequence[RagPrompt], given: Sequence[GivenResponse], size: int
) -> Iterator[list[int]]:
    """Yield the indices of up to ``size`` responses at once, from the shortest with their prompts to the longest.

    Raises
    ------
    InputError
        If ``size`` is below 1.
    """
    if size < 1:
        raise InputError(f"batch_size must be at least 1; found {size}")
    order = sorted(range(len(given)), key=lambda i: len(prompts[i].with_context_ids) + len(given[i].token_ids))
    yield from (order[first : first + size] for first in range(0, len(order), size))


def _tokenized(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompt: RagPrompt,
    text: str,
    segmenter: SegmenterConfig,
    *,
    cut: int = 0,
) -> GivenResponse:
    """Tokenize a text without its first ``cut`` characters; characters are counted in the text.

    The text of an answer that Llama-2 wrote begins with the space that its tokenizer puts before a text, so it is
    tokenized without its own.
    """
    # It may be the model's window that is too small; then we say so, and not the tokenizer.
    encoded = tokenizer(text[cut:], add_special_tokens=False, return_offsets_mapping=tokenizer.is_fast, verbose=False)
    without_space = int(not cut and text.startswith(" "))  # tokens that it may yet lose
    check_window(model, len(prompt.with_context_ids) + len(encoded["input_ids"]) - without_space)
    read = _decoded(tokenizer, prompt, list(encoded["input_ids"]), segmenter)
    decoded = read.transcript
    if not cut and text.startswith(" ") and decoded.text == " " + text:
        return _tokenized(model, tokenizer, prompt, text, segmenter, cut=1)
    offsets = [(a + cut, b + cut) for a, b in encoded["offset_mapping"]] if tokenizer.is_fast else None
    positions = positions_in(text, decoded.text, decoded.char_spans, offsets)
    char_spans = [(positions[a], positions[b]) for a, b in decoded.char_spans]
    return GivenResponse(read.token_ids, in_given(text, positions, read.spans), Transcript(text, char_spans))


def _decoded(
    tokenizer: PreTrainedTokenizerBase, prompt: RagPrompt, token_ids: list[int], config: SegmenterConfig
) -> GivenResponse:
    """Return the text of token ids and its sentences."""
    detokenizer, segmenter = Detokenizer(tokenizer, prompt.with_context_ids), IncrementalSegmenter(config)
    spans = [span for token_id in token_ids for span in segmenter.push(detokenizer.push(token_id))]
    if token_ids:
        spans += segmenter.finish(detokenizer.flush())
    return GivenResponse(token_ids, spans, Transcript(segmenter.text, segmenter.char_spans))


def _checked(model: PreTrainedModel, token_ids: Sequence[int]) -> list[int]:
    if not all(isinstance(i, int | np.integer) for i in token_ids):
        raise WrongTypeError("response_token_ids must be a list of integers")
    size = model.get_input_embeddings().num_embeddings
    outside = [int(i) for i in token_ids if not 0 <= i < size]
    if outside:
        raise InputError(f"response_token_ids must be in 0..{size - 1}, the vocabulary; found {outside[:5]}")
    return [int(i) for i in token_ids]


def _before_end(token_ids: Sequence[int], end_tokens: Collection[int]) -> list[int]:
    return list(takewhile(lambda token: token not in end_tokens, token_ids))
