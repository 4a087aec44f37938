"""Observed sessions: another loop runs the model with the context, and passes its outputs on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from torch import Tensor

from syncheck.base.errors import NotReadyError
from syncheck.decoding.session import RoundSession


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
