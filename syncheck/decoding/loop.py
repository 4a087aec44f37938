"""The decode step that all decoders share, and the loop of plain decoding."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from syncheck.base.errors import InputError
from syncheck.decoding.generation import GenerationSetup, meets_stop_string
from syncheck.decoding.search import SearchSession

logger = logging.getLogger(__name__)

StopReason = Literal["end_of_text", "stop_string", "length", "criteria", "window", "not_finite"]
"""Why a row ended: an end-of-text token, one of ``stop_strings``, ``max_new_tokens``, another stopping criterion, a
full window, or scores from which no token can be chosen (see :meth:`GenerationSetup.choosable`)."""

Adjust = Callable[[Tensor, Sequence[int]], Tensor]
"""Returns scores (b, V), a new float32 tensor, from the raw logits (b, V) and the indices of their rows."""


@dataclass(frozen=True, slots=True)
class Step:
    """One decode step of B rows; each field has B entries."""

    token_ids: tuple[int, ...]
    """The chosen tokens; padding for rows that took no part."""
    texts: tuple[str, ...]
    """The text that each row's token completed; empty for an end-of-text token."""
    stops: tuple[StopReason | None, ...]
    """Why each row is over; None if it continues or took no part."""


def take_step(
    session: SearchSession,
    plan: GenerationSetup,
    choose: Callable[[Tensor], Tensor],
    *,
    rows: Sequence[int] | None = None,
    one_sentence: bool = False,
    adjust: Adjust | None = None,
) -> Step:
    """Choose a token for each row, push it, and end the rows that are over with it.

    Parameters
    ----------
    plan
        Processors, stopping criteria and end-of-text tokens.
    choose
        Returns the chosen tokens, (b,) int64, from scores (b, V) float32.
    rows
        Indices of the rows that take part. Processors then get rows of unequal length separately, since padding would
        count as text, and criteria get each row alone. None passes all rows at once, padded as ``generate`` does, feeds
        the streamer, and chooses for rows that are over as well, without effect.
    one_sentence
        As in :meth:`SearchSession.push`. No limit ends a row that closes a sentence with its token, since the token is
        not part of the sentence.
    adjust
        Returns the scores that the processors get, a new float32 tensor, from the raw logits (b, V) and the indices of
        their rows. It may exclude tokens: where processors exclude all the others, they are applied to the row's raw
        logits instead.

    Returns
    -------
    Step
        Its ``stops`` have ``end_of_text`` for a row that took part although it was over.

    Raises
    ------
    InputError
        If the processors leave no token to a row that is not over.
    """
    logits = session.next_logits if rows is None else session.next_logits[rows]
    taking = list(range(len(session.rows)) if rows is None else rows)
    over = [row.ended for row in session.rows]
    scores, lost = plan.choosable(_adjusted(session, plan, logits, rows, adjust), logits)
    empty = _is_empty(scores).tolist() if plan.processors else []
    if any(is_empty and not over[row] for row, is_empty in zip(taking, empty, strict=False)):
        raise InputError("the logits processors exclude every token; change them, or the limits that they follow")
    token_ids = torch.full((len(over),), plan.pad_token, device=scores.device)
    token_ids[taking] = choose(scores)
    token_ids = token_ids.masked_fill(torch.tensor(over, device=scores.device), plan.pad_token)
    texts = session.push(token_ids, end_tokens=plan.end_tokens, one_sentence=one_sentence)
    if rows is None and plan.streamer is not None:
        plan.streamer.put(token_ids.cpu())
    fired = plan.criteria(session.sequences(), scores).tolist() if rows is None else None
    stops: list[StopReason | None] = [None] * len(over)
    for place, index in enumerate(taking):
        row = session.rows[index]
        if row.ended:
            stops[index] = "end_of_text"
        elif not (one_sentence and row.closed):
            alone = scores[place : place + 1]
            has_fired = plan.criteria(session.sequences(index), alone).any() if fired is None else fired[place]
            stops[index] = "not_finite" if lost[place] else _limit(session, plan, index, has_fired=bool(has_fired))
            if stops[index] is not None:
                row.end()
    return Step(tuple(token_ids.tolist()), tuple(texts), tuple(stops))


def decode(
    session: SearchSession,
    plan: GenerationSetup,
    *,
    generator: torch.Generator | None = None,
    adjust: Adjust | None = None,
    lookup: int = 16,
) -> Iterator[Step]:
    """Decode until every row is over.

    Pauses after each token, before it is fed to the model, so that the caller can look at ``session.rows`` and measure
    a sentence before the next step costs anything. A row that a stopping criterion ends is filled with the padding
    token, as in ``generate``. If the logits of a row are not finite, this is logged once, and the row ends there with
    ``not_finite`` unless processors leave a token to choose.

    Parameters
    ----------
    plan
        Processors, stopping criteria and end-of-text tokens.
    generator
        Source of randomness for sampling; None uses torch's global one.
    adjust
        As in :func:`take_step`.
    lookup
        Largest number of tokens that a :class:`PromptLookup` drafts for a session of one row; 0 turns it off.

    Yields
    ------
    Step
        Its ``stops`` are those of all rows that are over.
    """
    stops: tuple[StopReason | None, ...] = (None,) * len(session.rows)
    if plan.streamer is not None:
        plan.streamer.put(session.sequences().cpu())
    warned: set[int] = set()
    first = session.rows[0].prompt.with_context_ids
    drafts = PromptLookup(first, longest=lookup) if lookup and len(session.rows) == 1 else None
    while not all(row.ended for row in session.rows):
        if drafts is not None:
            drafts.read_ahead(session, 0, max_length=plan.config.max_length)
        _warn(session.next_logits, stops, warned)
        step = take_step(session, plan, lambda scores: plan.choose(scores, generator), adjust=adjust)
        stops = tuple(before or now for before, now in zip(stops, step.stops, strict=True))
        yield Step(step.token_ids, step.texts, stops)
    if plan.streamer is not None:
        plan.streamer.end()


def _adjusted(
    session: SearchSession,
    plan: GenerationSetup,
    logits: Tensor,
    rows: Sequence[int] | None,
    adjust: Adjust | None,
) -> Tensor:
    """Compute the scores (b, V) of these rows after ``adjust`` and the processors."""

    def unrestricted() -> Tensor:
        return _processed(session, plan, logits.to(torch.float32, copy=True), rows)

    if adjust is None:
        return unrestricted()
    taking = range(len(session.rows)) if rows is None else rows
    scores = _processed(session, plan, adjust(logits, taking), rows)
    is_empty = _is_empty(scores)
    return torch.where(is_empty[:, None], unrestricted(), scores) if is_empty.any() else scores


def _is_empty(scores: Tensor) -> Tensor:
    """Tell for each row of scores (B, V) whether they exclude every token, (B,) bool."""
    return scores.amax(-1).isneginf()


def _processed(session: SearchSession, plan: GenerationSetup, scores: Tensor, rows: Sequence[int] | None) -> Tensor:
    """Compute the scores (b, V) of these rows after the processors."""
    if not plan.processors:
        return scores
    if rows is None:
        whole: Tensor = plan.processors(session.sequences(), scores)
        return whole
    sequences = [session.sequences(row) for row in rows]  # each (1, n)
    lengths = [ids.shape[1] for ids in sequences]
    for length in dict.fromkeys(lengths):
        places = [place for place, own in enumerate(lengths) if own == length]
        scores[places] = plan.processors(torch.cat([sequences[place] for place in places]), scores[places])
    return scores


def _limit(session: SearchSession, plan: GenerationSetup, row: int, *, has_fired: bool) -> StopReason | None:
    if has_fired and meets_stop_string(plan.criteria, session.sequences(row)):
        return "stop_string"
    if has_fired:
        return "length" if session.sequences().shape[1] >= plan.config.max_length else "criteria"
    return "window" if session.room is not None and session.room <= 0 else None


def _warn(logits: Tensor, stops: Sequence[StopReason | None], warned: set[int]) -> None:
    """Log, once for each row, that it continues although its logits (B, V) are not a distribution."""
    for row, is_finite in enumerate(logits.amax(-1).isfinite().tolist()):  # amax is NaN where there is one
        if not is_finite and stops[row] is None and row not in warned:
            warned.add(row)
            logger.warning(
                "the model's logits are not finite in row %d: its sentence gets the status 'failed'. Check the "
                "weights, or run the model in another type, bfloat16 or float32",
                row,
            )


MATCHED = 3
"""Number of last tokens that are looked up: after fewer, other tokens follow so often that drafts cost a CPU time."""

FIRST_DRAFT = 8
"""Number of tokens that are drafted until one was found right or wrong."""


class PromptLookup:
    """Drafts the next tokens of one response from its prompt and from itself (Saxena, 2023, "Prompt Lookup Decoding").

    The length of drafts adapts, up to ``longest``: it doubles with each token that was foreseen, and is halved, down to
    none, with each that was not. What would have been drafted counts too, so that drafts begin again where the text
    copies again.

    Examples
    --------
    >>> PromptLookup([7, 8, 9, 5, 6, 4], longest=2).draft([3, 7, 8, 9])
    [5, 6]
    """

    def __init__(self, prompt_ids: Sequence[int], *, longest: int) -> None:
        self._prompt = _as_text(prompt_ids)
        self._longest = longest
        self._length = min(FIRST_DRAFT, longest)
        self._foreseen: tuple[int, int] | None = None  # length of the response, and the token expected after it

    def draft(self, token_ids: Sequence[int]) -> list[int]:
        """Find the tokens that followed the last three where these occurred last; none if they have not occurred."""
        if self._foreseen is not None and self._foreseen[0] == len(token_ids) - 1:
            is_right = self._foreseen[1] == token_ids[-1]
            self._length = min(2 * self._length + 1, self._longest) if is_right else self._length // 2
        text = self._prompt + _as_text(token_ids)
        place = text.rfind(text[-MATCHED:], 0, len(text) - 1)
        drafted = [ord(token) for token in text[place + MATCHED :][: self._longest]] if place >= 0 else []
        self._foreseen = (len(token_ids), drafted[0]) if drafted else None
        return drafted[: self._length]

    def read_ahead(self, session: SearchSession, row: int, *, max_length: int) -> None:
        """Draft for the only row that a session feeds; ``max_length`` limits its prompt and response, in tokens."""
        left = max_length - session.sequences(row).shape[1]
        session.draft(self.draft(session.rows[row].token_ids)[:left])


def _as_text(token_ids: Sequence[int]) -> str:
    """Convert tokens to a string with a character for each, which is searched faster than a list."""
    return "".join(map(chr, token_ids))
