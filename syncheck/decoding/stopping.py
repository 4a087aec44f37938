"""When ``model.generate`` takes a row for over: what its stopping criteria say, overheard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from torch import Tensor
from transformers.generation import EosTokenCriteria, StoppingCriteriaList

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["OverheardStops"]

_lock = Lock()
_listeners: WeakKeyDictionary[PreTrainedModel, int] = WeakKeyDictionary()
_listening: ContextVar[tuple[OverheardStops, ...]] = ContextVar("_listening", default=())
"""Those of this context: a thread, or an asyncio task, overhears its own ``generate`` alone."""


class OverheardStops:
    """Where each row of a loop of ``model.generate`` is over; nothing is known of a loop written by hand.

    Parameters
    ----------
    model
        Whose ``generate`` is overheard.
    rows
        How many sequences it decodes.

    Attributes
    ----------
    end_tokens : tuple of int or None
        Token ids that end a row; None until ``generate`` has begun.
    over : list of int or None
        Columns, prompt and padding included, with which each row was over; None while it is not.
    limit : int or None
        Columns that end every row.
    """

    def __init__(self, model: PreTrainedModel, rows: int) -> None:
        self.model = model
        self.end_tokens: tuple[int, ...] | None = None
        self.over: list[int | None] = [None] * rows
        self.limit: int | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Overhear what ``generate`` does inside, called from here."""
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
        """Take what ``generate`` begins with."""
        ends = [criterion.eos_token_id for criterion in criteria if isinstance(criterion, EosTokenCriteria)]
        self.end_tokens = tuple(int(token) for tokens in ends for token in tokens.flatten().tolist())
        self.over = [None] * len(self.over)
        self.limit = criteria.max_length

    def hear(self, columns: int, fired: Tensor) -> None:
        """Take what the criteria said of each row, (B,) bool, once it had so many columns."""
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
    """Let a model's ``generate`` be overheard: there is no public place to see its criteria at work."""
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
