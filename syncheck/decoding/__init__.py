"""Answers being decoded: how tokens are chosen, what is held of them, and how their sentences are measured."""

from syncheck.decoding.loop import Step, decode
from syncheck.decoding.measuring import Transcript
from syncheck.decoding.plan import DecodingPlan, StopReason, check_reach, end_tokens_of, plan_of, prepare
from syncheck.decoding.rows import Row
from syncheck.decoding.sequences import Sequences
from syncheck.decoding.session import DecodingSession
from syncheck.decoding.stopping import OverheardStops

__all__ = [
    "DecodingPlan",
    "DecodingSession",
    "OverheardStops",
    "Row",
    "Sequences",
    "Step",
    "StopReason",
    "Transcript",
    "check_reach",
    "decode",
    "end_tokens_of",
    "plan_of",
    "prepare",
]
