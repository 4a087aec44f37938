"""Sessions whose tokens come one by one: live ones run the model and take drafts, observed ones hear another loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers.generation import EosTokenCriteria, StoppingCriteriaList

from syncheck.base.errors import NotReadyError
from syncheck.decoding.rows import Part, Sequences
from syncheck.decoding.session import RoundSession
from syncheck.signals import Branch

if TYPE_CHECKING:
    from transformers import PreTrainedModel


CLEAR_LEAD = 2
"""Lead, in recent forward passes, of those after which the logits without the context were asked for over the others;
from this lead on, both branches read a token in one forward pass."""


class LiveSession(RoundSession):
    """Rows that are decoded in lockstep; parameters as of :class:`Session`.

    The logits may be read, and tokens drafted, at any time.
    """

    def _open(self) -> Tensor:
        self._own = Branch(self._model, [row.prompt.with_context_ids for row in self.rows])
        self._is_joined: bool | None = None  # once tried
        self._is_asked = False  # for logits of the branch without the context, since the other was fed
        self._lead = 0  # recent passes after which it was asked for, minus the others
        self._draft: list[int] = []  # may follow the token that is fed next
        self._sequences: Sequences
        return self._own.next_logits

    @property
    def next_logits(self) -> Tensor:
        """Raw logits (B, V) of the next token; feeds the last token if it has not been fed yet."""
        self._feed_pending()
        return self._columns.logits[len(self._columns.ids)]

    @property
    def contrast_logits(self) -> Tensor:
        """Raw logits (B, V) of the next token without the context; NotReadyError if no prompt has a context."""
        if self._contrast is None:
            raise NotReadyError("without a context there is nothing to contrast; pass passages that are not empty")
        self._is_asked = True
        self._contrast_to(len(self._columns.ids), is_asked=True)
        return self._columns.contrast[len(self._columns.ids)]

    @property
    def room(self) -> int | None:
        """Number of tokens that still fit the model's window; None if the model states no limit."""
        if self._window is None:
            return None
        return self._window - self._own.width - (len(self._columns.ids) - self._columns.fed)

    def sequences(self, row: int | None = None) -> Tensor:
        """View the ids so far, prompt included, which must not be written to.

        Parameters
        ----------
        row
            Index of a row, for its ids (1, n) without padding. None for the ids (B, n) of all rows: shorter rows begin
            with repeats of their own first token, and rows that are over continue with whatever was pushed to them
            since.

        Returns
        -------
        Tensor of shape (B, n) or (1, n), int64
        """
        return self._sequences.padded() if row is None else self._sequences.of_row(row)

    def draft(self, token_ids: Sequence[int]) -> None:
        """Suggest tokens that may follow the last one, so that both are fed in one forward pass.

        Those that are then pushed need no forward pass of their own. The others are taken back, and change nothing.

        Parameters
        ----------
        token_ids
            The next tokens of the row that is fed; those beyond the window are ignored. They have no effect once the
            logits have been read, if several rows are fed, or if the model's state cannot be rewound.
        """
        self._draft = list(token_ids)

    def _begin(self, next_logits: Tensor | None, heads: Sequence[Part] | None = None) -> None:
        super()._begin(next_logits, heads)
        ids = [[*row.prompt.with_context_ids, *row.token_ids] for row in self.rows]
        self._sequences = Sequences(ids, self._model.device)

    def _add(self, token_ids: Tensor, pushed: Sequence[int]) -> None:
        self._draft = []
        if self._columns.contradicts(pushed):
            self._take_draft_back()
        super()._add(token_ids, pushed)
        self._sequences.append(token_ids)

    def _narrow(self, branch: Branch, read: int) -> None:
        """Let rows that need no more of a branch, which has read ``read`` columns, leave it; here they all stay."""

    def _feed_pending(self) -> None:
        columns = self._columns
        if columns.fed >= len(columns.ids):
            return
        own, ids = self._own, columns.ids[columns.fed]
        other = self._read_along()
        for branch in (own, other):
            if branch is not None:
                self._narrow(branch, columns.fed)
        fed = own.fed if len(own.fed) < len(self.rows) else None
        tokens = (ids if fed is None else ids[fed])[:, None]
        if self._draft and len(tokens) == 1:
            columns.read_ahead(own.fitting(self._draft, after=1), row=own.fed[0])
            tokens = torch.cat([tokens, tokens.new_tensor([columns.draft])], dim=1)
        with self._taps.recording() as recorded:
            if other is not None and other.fed == own.fed:
                logits, contrast = own.feed_with(other, tokens)
                columns.was_contrasted(contrast, rows=fed)
            else:
                logits = own.feed(tokens)
        # A tree has them in one row, and after them those of the other branch.
        states = [layer[0].flatten(0, 1)[: tokens.numel()].reshape(*tokens.shape, -1) for layer in recorded]
        columns.was_fed(logits, states, rows=fed)

    def _take_draft_back(self) -> None:
        """Let both branches forget the tokens that they have read ahead of those that were pushed."""
        columns = self._columns
        ahead, contrasted_ahead = (read - len(columns.ids) for read in (columns.fed, columns.contrasted))
        columns.forget_draft()
        self._own.take_back(ahead, columns.logits[-1][self._own.fed])
        if self._contrast is not None and contrasted_ahead > 0:
            self._contrast.take_back(contrasted_ahead, columns.contrast[-1][self._contrast.fed])

    def _read_along(self) -> Branch | None:
        """Choose the branch without the context if it should read the next token in the other branch's forward pass.

        That costs less if each step asks for its logits, and more if it could read many tokens at a time.
        """
        self._lead = min(max(self._lead + (1 if self._is_asked else -1), 0), 2 * CLEAR_LEAD)
        self._is_asked = False
        if self._contrast is None or self._lead < CLEAR_LEAD or self._columns.contrasted != self._columns.fed:
            return None
        if self._is_joined is None:
            self._is_joined = self._own.join(self._contrast)
        return self._contrast if self._is_joined else None

    def _contrast_to(self, stop: int, *, is_asked: bool = False) -> None:
        branch, columns = self._contrast, self._columns
        if branch is None or columns.contrasted >= stop:
            return
        if is_asked or len(branch.fed) < branch.rows:
            self._narrow(branch, columns.contrasted)
        fed = branch.fed if len(branch.fed) < len(self.rows) else None
        unread = columns.unread(stop) if fed is None else columns.unread(stop)[fed]
        if columns.draft and stop == len(columns.ids) and branch.fed == self._own.fed:
            draft = branch.fitting(columns.draft, after=unread.shape[1])
            unread = torch.cat([unread, unread.new_tensor([draft])], dim=1)
        columns.was_contrasted(branch.feed(unread), rows=fed)


MATCHED = 3
"""Number of last tokens that are looked up: after fewer, other tokens follow so often that drafts cost a CPU time."""

FIRST_DRAFT = 8
"""Number of tokens that are drafted until one was found right or wrong."""


class PromptLookup:
    """Drafts the next tokens of one response from its prompt and from itself (Saxena, 2023, "Prompt Lookup Decoding").

    The length of drafts adapts: it doubles with each token that was foreseen, and is halved, down to none, with each
    that was not. What would have been drafted counts too, so that drafts begin again where the text copies again.

    Parameters
    ----------
    prompt_ids
        Token ids of the prompt, passages included.
    longest
        Largest number of tokens in a draft.

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

    def read_ahead(self, session: LiveSession, row: int, *, max_length: int) -> None:
        """Draft for the only row that a session feeds; ``max_length`` limits its prompt and response, in tokens."""
        left = max_length - session.sequences(row).shape[1]
        session.draft(self.draft(session.rows[row].token_ids)[:left])


def _as_text(token_ids: Sequence[int]) -> str:
    """Convert tokens to a string with a character for each, which is searched faster than a list."""
    return "".join(map(chr, token_ids))


class ObservedSession(RoundSession):
    """Rows that another loop decodes; parameters as of :class:`Session`.

    Takes :meth:`observe` after the prompt and after each ``push``.
    """

    def _open(self) -> None:
        return None

    def observe(self, logits: Tensor, states: Sequence[Tensor]) -> None:
        """Take the logits (B, 1, V) and each layer's states (B, 1, H) of the last fed token, initially the prompt's."""
        if self._columns.logits:
            self._columns.was_fed(logits, states)
        else:
            self._columns.logits.append(logits[:, 0])

    def recording(self) -> AbstractContextManager[list[list[Tensor]]]:
        """Make a context manager that collects the tapped blocks' outputs of an observed loop, one list per layer."""
        return self._taps.recording()

    @property
    def is_recording(self) -> bool:
        """True if a forward pass that runs in this thread or asyncio task is one of the observed loop."""
        return self._taps.is_recording

    def _feed_pending(self) -> None:
        if self._columns.fed < len(self._columns.ids):
            raise NotReadyError("the last token was not fed to the model yet; call report(out) with the final ids")


_lock = Lock()
_listeners: WeakKeyDictionary[PreTrainedModel, int] = WeakKeyDictionary()
_listening: ContextVar[tuple[OverheardStops, ...]] = ContextVar("_listening", default=())
"""Listeners of this context: a thread or an asyncio task observes only its own ``generate``."""


class OverheardStops:
    """Records where ``model.generate`` considers each row over; it does not observe a loop written by hand.

    ``end_tokens`` end a row and are None until ``generate`` has begun; ``over`` has for each row its length in columns,
    prompt and padding included, when it was over, None until then; ``limit`` is the length in columns at which every
    row ends.
    """

    def __init__(self, model: PreTrainedModel, rows: int) -> None:
        self.model = model
        self.end_tokens: tuple[int, ...] | None = None
        self.over: list[int | None] = [None] * rows
        self.limit: int | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Observe a ``generate`` that this thread or asyncio task calls inside the ``with`` block."""
        if not self.model.can_generate():
            yield  # only loops written by hand
            return
        _begin(self.model)
        _listening.set((*_listening.get(), self))
        try:
            yield
        finally:
            # Not reset by a token, which is refused where a generator is closed in another context.
            _listening.set(tuple(listener for listener in _listening.get() if listener is not self))
            _end(self.model)

    def begin(self, criteria: StoppingCriteriaList) -> None:
        """Record the stopping criteria with which ``generate`` begins."""
        ends = [criterion.eos_token_id for criterion in criteria if isinstance(criterion, EosTokenCriteria)]
        self.end_tokens = tuple(int(token) for tokens in ends for token in tokens.flatten().tolist())
        self.over = [None] * len(self.over)
        self.limit = criteria.max_length

    def hear(self, columns: int, fired: Tensor) -> None:
        """Record which rows, (B,) bool, the criteria end at a length of ``columns``."""
        for row, has_fired in enumerate(fired.tolist()[: len(self.over)]):
            if has_fired and self.over[row] is None:
                self.over[row] = columns


class _Overheard(StoppingCriteriaList):  # type: ignore[misc]
    def __init__(self, criteria: StoppingCriteriaList, listeners: list[OverheardStops]) -> None:
        super().__init__(criteria)
        self._listeners = listeners
        for listener in listeners:
            listener.begin(criteria)

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401 - as transformers has it
        fired: Tensor = super().__call__(input_ids, scores, **kwargs)
        for listener in self._listeners:
            listener.hear(input_ids.shape[1], fired)
        return fired


def _begin(model: PreTrainedModel) -> None:
    """Make a model's ``generate`` observable; transformers has no public hook for its stopping criteria."""
    with _lock:
        _listeners[model] = _listeners.get(model, 0) + 1
        if _listeners[model] > 1:
            return
        made_by_model = model._get_stopping_criteria  # noqa: SLF001 - see above

        def prepared(*args: Any, **kwargs: Any) -> StoppingCriteriaList:  # noqa: ANN401
            criteria: StoppingCriteriaList = made_by_model(*args, **kwargs)
            listeners = [listener for listener in _listening.get() if listener.model is model]
            return _Overheard(criteria, listeners) if listeners else criteria

        model._get_stopping_criteria = prepared  # noqa: SLF001


def _end(model: PreTrainedModel) -> None:
    with _lock:
        _listeners[model] -= 1
        if not _listeners[model]:
            del _listeners[model]
            del model._get_stopping_criteria  # noqa: SLF001 - what the class has is seen again
