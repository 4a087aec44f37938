"""A response that is given rather than decoded: as text, as token ids or cut into sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

import numpy as np

from syncheck.config import SegmenterConfig
from syncheck.decoding import Transcript, end_tokens_of
from syncheck.errors import InputError, WrongTypeError
from syncheck.given import check_sequence, check_text, check_texts
from syncheck.segments import Detokenizer, IncrementalSegmenter, in_given, positions_in, segment_given
from syncheck.signals import check_one_encoding, check_window, encoding_of, switches_of
from syncheck.types import RagPrompt, SentenceSpan

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

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
        go together), an id is outside the vocabulary, or a text holds half of a character (a lone surrogate).
    PromptError
        If prompt and response do not fit the model's window or cross a length where it encodes every token anew (see
        :func:`syncheck.signals.check_one_encoding`), or the tokenizer rewrites the text without telling where.
    WrongTypeError
        If one is of another type.
    """
    given = [response is not None, response_token_ids is not None or sentences is not None]
    if sum(given) != 1:
        raise InputError(
            "pass exactly one of response, response_token_ids and sentences (the last two may go together); "
            f"found {'none' if not any(given) else 'response and another'}"
        )
    if sentences is not None:
        check_texts(sentences, "sentences")
    if response_token_ids is not None:
        token_ids = _before_end(_checked(model, response_token_ids), end_tokens_of(model, tokenizer))
        check_window(model, len(prompt.with_context_ids) + len(token_ids))  # before what takes long of a long text
        read = _decoded(tokenizer, prompt, token_ids, segmenter)
    else:
        text = "".join(sentences) if sentences is not None else response
        check_text(text, "response")
        assert text is not None
        read = _tokenized(model, tokenizer, prompt, text, segmenter)
        if sentences is not None:
            sentences = _cut(sentences, len(read.transcript.text))
    check_window(model, len(prompt.with_context_ids) + max(len(read.token_ids), 1))
    for ids in (prompt.with_context_ids, *((prompt.without_context_ids,) if prompt.has_context else ())):
        check_one_encoding(model, len(ids), len(ids) + len(read.token_ids))
    if sentences is None:
        return read
    texts = [read.transcript.text[a:b] for a, b in read.transcript.char_spans]
    return replace(read, spans=segment_given(texts, sentences) if read.token_ids else [])


Given = tuple[str | GivenResponse | None, Sequence[int] | None, Sequence[str] | None]
"""A response as text or as read already, as token ids and in sentences, as far as it was given."""


def rows_given(
    prompts: Sequence[RagPrompt],
    responses: Sequence[str | GivenResponse] | None,
    response_token_ids: Sequence[Sequence[int]] | None,
    sentences: Sequence[Sequence[str]] | None,
) -> list[Given]:
    """Return what was given of each row.

    Raises
    ------
    InputError
        If there are not as many as prompts.
    WrongTypeError
        If what was given is no sequence.
    """
    check_sequence(prompts, "prompts", of="prompts")
    columns = {"responses": responses, "response_token_ids": response_token_ids, "sentences": sentences}
    for name, given in columns.items():
        if given is not None:
            check_sequence(given, name, of="one for each prompt")
        if given is not None and len(given) != len(prompts):
            raise InputError(f"{name} must be one for each of the {len(prompts)} prompts; found {len(given)}")
    absent = [None] * len(prompts)
    return list(zip(*(absent if given is None else given for given in columns.values()), strict=True))


def batches_of_like_length(
    model: PreTrainedModel, prompts: Sequence[RagPrompt], given: Sequence[GivenResponse], size: int
) -> Iterator[list[int]]:
    """Yield the indices of up to ``size`` responses at once, from the shortest with their prompts to the longest.

    Those that the model would encode in another way together than alone are not put together.

    Raises
    ------
    InputError
        If ``size`` is below 1.
    """
    if size < 1:
        raise InputError(f"batch_size must be at least 1; found {size}")
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

    It ends before the first end-of-text token that is written in it, as token ids do.

    The text of an answer that Llama-2 wrote begins with the space that its tokenizer puts before a text, so it is
    tokenized without its own.
    """
    # It may be the model's window that is too small; then we say so, and not the tokenizer.
    encoded = tokenizer(text[cut:], add_special_tokens=False, return_offsets_mapping=tokenizer.is_fast, verbose=False)
    token_ids = _before_end(encoded["input_ids"], end_tokens_of(model, tokenizer))
    without_space = int(not cut and text.startswith(" "))  # tokens that it may yet lose
    check_window(model, len(prompt.with_context_ids) + len(token_ids) - without_space)
    offsets = [(a + cut, b + cut) for a, b in encoded["offset_mapping"]] if tokenizer.is_fast else None
    if len(token_ids) < len(encoded["input_ids"]):
        text = _before_token(
            tokenizer, text, encoded["input_ids"][len(token_ids)], offsets[len(token_ids)] if offsets else None
        )
        offsets = offsets[: len(token_ids)] if offsets else None
    read = _decoded(tokenizer, prompt, token_ids, segmenter)
    decoded = read.transcript
    if not cut and text.startswith(" ") and decoded.text == " " + text:
        return _tokenized(model, tokenizer, prompt, text, segmenter, cut=1)
    positions = positions_in(text, decoded.text, decoded.char_spans, offsets)
    char_spans = [(positions[a], positions[b]) for a, b in decoded.char_spans]
    return GivenResponse(read.token_ids, in_given(text, positions, read.spans), Transcript(text, char_spans))


def _before_token(tokenizer: PreTrainedTokenizerBase, text: str, token_id: int, place: tuple[int, int] | None) -> str:
    """Return what stands before a token in a text; all of it where the tokenizer has put the token behind the text."""
    if place is None:  # a slow tokenizer does not tell where, but the token stands in the text as it is called
        return text.partition(tokenizer.convert_ids_to_tokens(token_id))[0]
    start, stop = place
    return text[:start] if start < stop else text


def _decoded(
    tokenizer: PreTrainedTokenizerBase, prompt: RagPrompt, token_ids: list[int], config: SegmenterConfig
) -> GivenResponse:
    """Return the text of token ids and its sentences."""
    detokenizer, segmenter = Detokenizer(tokenizer, prompt.with_context_ids), IncrementalSegmenter(config)
    spans = [span for token_id in token_ids for span in segmenter.push(detokenizer.push(token_id))]
    if token_ids:
        spans += segmenter.finish(detokenizer.flush())
    return GivenResponse(token_ids, spans, Transcript(segmenter.text, segmenter.char_spans))


def _cut(sentences: Sequence[str], length: int) -> list[str]:
    """Return the sentences, that in which a text of so many characters is cut off without what follows."""
    starts = accumulate(map(len, sentences), initial=0)
    pairs = zip(sentences, starts, strict=False)
    return [s[: length - start] if start <= length < start + len(s) else s for s, start in pairs]


def _checked(model: PreTrainedModel, token_ids: Sequence[int]) -> list[int]:
    check_sequence(token_ids, "response_token_ids", of="integers")
    if not all(isinstance(i, int | np.integer) for i in token_ids):
        raise WrongTypeError("response_token_ids must be a list of integers")
    size = model.get_input_embeddings().num_embeddings
    outside = [int(i) for i in token_ids if not 0 <= i < size]
    if outside:
        raise InputError(f"response_token_ids must be in 0..{size - 1}, the vocabulary; found {outside[:5]}")
    return [int(i) for i in token_ids]


def _before_end(token_ids: Sequence[int], end_tokens: Collection[int]) -> list[int]:
    return list(takewhile(lambda token: token not in end_tokens, token_ids))
