"""FOD without its search: the greedy answer up to the first sentence below tau_1."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fod.config import DEFAULTS, FODConfig, Threshold
from fod.generator import FODGenerator
from syncheck import Monitor

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["BacktrackGenerator"]


class BacktrackGenerator(FODGenerator):
    """Decodes greedily and ends before the first sentence below tau_1: FOD (BT) of the paper's Table 2.

    Parameters
    ----------
    model, tokenizer
        Those of the monitor.
    monitor
        A trained monitor.
    backtrack_threshold
        tau_1 in [0, 1]; None takes the monitor's own, ``"calibrated"`` the one that ``syncheck calibrate --risk``
        chose, with the promise at :class:`fod.Thresholds`.
    max_sentences
        Most sentences of an answer.

    Raises
    ------
    NotReadyError, InputError, UnsupportedModelError
        As :class:`fod.FODGenerator`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        monitor: Monitor,
        *,
        backtrack_threshold: Threshold | None = None,
        max_sentences: int = DEFAULTS.max_sentences,
    ) -> None:
        config = FODConfig(backtrack_threshold=backtrack_threshold, max_sentences=max_sentences)
        super().__init__(model, tokenizer, monitor, config=config)
        self.thresholds = replace(self.thresholds, prune=None)
