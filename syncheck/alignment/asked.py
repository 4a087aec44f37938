"""An aligner as it is asked while sentences are judged: whatever it does, each claim gets a support or a reason."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite
from numbers import Integral, Real

from syncheck.alignment.evidence import EvidenceIndex
from syncheck.alignment.protocol import Aligner, IndexedAligner, QuestionAligner
from syncheck.types import Evidence, Support

__all__ = ["AskedAligner", "Unaligned"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Unaligned:
    """Why there is no support of a claim."""

    reason: str


class AskedAligner:
    """Asks an aligner about claims that answer one question.

    An aligner is the user's code, and what is being generated must survive it: an error, a shortage of memory and an
    answer in another form than the protocol's become the claims' reason. Only ``KeyboardInterrupt`` and ``SystemExit``,
    which ask the whole program to stop, pass.

    Parameters
    ----------
    aligner
        The aligner.
    question
        Told to it if it wants to know; see :class:`~syncheck.alignment.QuestionAligner`.
    index
        The passages, cut and indexed, for an aligner that reads these; see :class:`~syncheck.alignment.IndexedAligner`.
    """

    def __init__(self, aligner: Aligner, question: str, index: EvidenceIndex) -> None:
        self._aligner = aligner
        self._question = question
        self._index = index
        self._told: Aligner | None = None

    def __call__(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support | Unaligned]:
        """Return the support of each claim, or why there is none.

        Where the answer does not have one result for each claim, or there is none, that is the reason for all of them;
        a result that is no support is the reason for its own claim.
        """
        name = getattr(self._aligner, "name", type(self._aligner).__name__)
        try:
            found = list(islice(self._supports(passages, list(claims)), len(claims) + 1))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of compiled code, for one, is no Exception
            logger.exception("aligner %r failed; its sentences get the status 'failed'", name)
            return [Unaligned(f"aligner {name!r} failed: {type(error).__name__}: {error}")] * len(claims)
        if len(found) != len(claims):
            many = "more" if len(found) > len(claims) else str(len(found))
            reason = f"aligner {name!r} misbehaved: expected {len(claims)} results; found {many}"
            logger.error("%s; its sentences get the status 'failed'", reason)
            return [Unaligned(reason)] * len(claims)
        return [self._named(name, _checked(result, len(passages))) for result in found]

    def _supports(self, passages: Sequence[str], claims: list[str]) -> list[Support]:
        aligner = self._ready()
        if isinstance(aligner, IndexedAligner):
            return aligner.align_indexed(self._index, claims)
        return aligner.align(passages, claims)

    def _ready(self) -> Aligner:
        if self._told is None:
            aligner = self._aligner
            self._told = aligner.about(self._question) if isinstance(aligner, QuestionAligner) else aligner
        return self._told

    @staticmethod
    def _named(name: str, each: Support | Unaligned) -> Support | Unaligned:
        if isinstance(each, Support):
            return each
        reason = f"aligner {name!r} misbehaved: {each.reason}"
        logger.error("%s; the sentence gets the status 'failed'", reason)
        return Unaligned(reason)


def _checked(result: object, passages: int) -> Support | Unaligned:
    """Return a result with plain numbers, or what is wrong with it."""
    if not isinstance(result, Support):
        return Unaligned(f"expected a Support; found {_shown(result)}")
    if not _is_share(result.score):
        return Unaligned(f"expected a score in [0, 1]; found {_shown(result.score)}")
    if result.log_odds is not None and not (isinstance(result.log_odds, Real) and isfinite(result.log_odds)):
        return Unaligned(f"expected finite log-odds or None; found {_shown(result.log_odds)}")
    if result.contradicted is not None and not _is_share(result.contradicted):
        return Unaligned(f"expected P(contradicted) in [0, 1] or None; found {_shown(result.contradicted)}")
    log_odds, contradicted = (
        None if value is None else float(value) for value in (result.log_odds, result.contradicted)
    )
    found = result.evidence
    if found is None:
        return Support(float(result.score), None, log_odds, contradicted)
    if not isinstance(found, Evidence) or not isinstance(found.text, str):
        return Unaligned(f"expected Evidence or None; found {_shown(found)}")
    if not isinstance(found.passage, Integral) or not 0 <= found.passage < passages or not _is_share(found.score):
        return Unaligned(
            f"expected evidence in one of {passages} passages with a score in [0, 1]; found passage "
            f"{_shown(found.passage)}, score {_shown(found.score)}"
        )
    evidence = Evidence(int(found.passage), found.text, float(found.score))
    return Support(float(result.score), evidence, log_odds, contradicted)


def _is_share(score: object) -> bool:
    return isinstance(score, Real) and 0 <= float(score) <= 1  # False of NaN


def _shown(value: object) -> str:
    return repr(value) if value is None or isinstance(value, Real) else type(value).__name__
