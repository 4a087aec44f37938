"""What is measured at each token, from the logits and hidden states of the model."""

from __future__ import annotations

from syncheck.signals.branch import Branch, check_window, window_of
from syncheck.signals.cache import GrowLayer, RewindableCache, is_rewindable, require_rewindable
from syncheck.signals.forward import ForwardArguments, require_watchable
from syncheck.signals.lid import LidVariant, ReferenceBank
from syncheck.signals.positions import check_one_encoding, check_same_encoding, encoding_of, switches_of
from syncheck.signals.rotary import take_turns_in_rotary
from syncheck.signals.taps import Taps, decoder_blocks
from syncheck.signals.token_tree import reads_less, takes_token_tree
from syncheck.signals.tokenwise import TokenStatistics, context_sensitivity_ratio, token_statistics

__all__ = [
    "Branch",
    "ForwardArguments",
    "GrowLayer",
    "LidVariant",
    "ReferenceBank",
    "RewindableCache",
    "Taps",
    "TokenStatistics",
    "check_one_encoding",
    "check_same_encoding",
    "check_window",
    "context_sensitivity_ratio",
    "decoder_blocks",
    "encoding_of",
    "is_rewindable",
    "reads_less",
    "require_rewindable",
    "require_watchable",
    "switches_of",
    "take_turns_in_rotary",
    "takes_token_tree",
    "token_statistics",
    "window_of",
]
