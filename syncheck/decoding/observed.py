"""Sessions of another loop's tokens, and where ``model.generate`` considers their rows over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from torch import Tensor
from transformers.generation import EosTokenCriteria, StoppingCriteriaList

from syncheck.base.errors import NotReadyError
from syncheck.decoding.generation import meets_stop_string
from syncheck.decoding.session import RoundSession

if TYPE_CHECKING:
    from transformers import PreTrainedModel


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
    prompt and padding included, when it was over, None until then; ``by_string`` are the rows that a stop string ended;
    ``limit`` is the length in columns at which every row ends.
    """

    def __init__(self, model: PreTrainedModel, rows: int) -> None:
        self.model = model
        self.end_tokens: tuple[int, ...] | None = None
        self.over: list[int | None] = [None] * rows
        self.by_string: set[int] = set()
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
        self.over, self.by_string = [None] * len(self.over), set()
        self.limit = criteria.max_length

    def hear(self, criteria: StoppingCriteriaList, input_ids: Tensor, fired: Tensor) -> None:
        """Record which rows of ids (B, n), by (B,) bool, the criteria end."""
        for row, has_fired in enumerate(fired.tolist()[: len(self.over)]):
            if has_fired and self.over[row] is None:
                self.over[row] = input_ids.shape[1]
                if meets_stop_string(criteria, input_ids[row : row + 1]):
                    self.by_string.add(row)


class _Overheard(StoppingCriteriaList):  # type: ignore[misc]
    def __init__(self, criteria: StoppingCriteriaList, listeners: list[OverheardStops]) -> None:
        super().__init__(criteria)
        self._listeners = listeners
        for listener in listeners:
            listener.begin(criteria)

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:  # noqa: ANN401 - as transformers has it
        fired: Tensor = super().__call__(input_ids, scores, **kwargs)
        for listener in self._listeners:
            listener.hear(self, input_ids, fired)
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
