"""Protocol of aligners, which score how well a context supports a claim, and checked calls of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import isfinite
from numbers import Integral, Real
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from syncheck.base.checks import check_texts
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.base.pretrained import same_weights, weights_sha256
from syncheck.reading.evidence import EvidenceIndex
from syncheck.results.types import Effort, Evidence, Support

logger = logging.getLogger(__name__)

BATCH = 16  # number of pairs that are scored at once
_Item = TypeVar("_Item")


class Aligner(Protocol):
    """Protocol of an aligner, which scores claims against a context."""

    name: str
    """Stored in a monitor's config, so that the same aligner is used again."""

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim against the passages.

        Parameters
        ----------
        passages
            The context, of any length; an aligner must not cut it silently.
        claims
            Sentences to check; an empty list gives an empty list.

        Returns
        -------
        list of Support
            One for each claim: P(supported) in [0, 1], higher is better, and the best evidence.
        """


@runtime_checkable
class QuestionAligner(Aligner, Protocol):
    """Protocol of an aligner that also takes the question, which a monitor passes."""

    def about(self, question: str) -> Self:
        """Bind the question that the claims answer; the name stays the same."""


@runtime_checkable
class IndexedAligner(Aligner, Protocol):
    """Protocol of an aligner that reads the chunks of an index, which a monitor makes once for each prompt."""

    def align_indexed(self, index: EvidenceIndex, claims: Sequence[str]) -> list[Support]:
        """Score each claim against indexed passages; a monitor calls this instead of :meth:`align`."""


@runtime_checkable
class ConfiguredAligner(Aligner, Protocol):
    """Protocol of an aligner whose scores depend on options besides the checkpoint that it is named after."""

    options: Mapping[str, str | int]
    """Keyword arguments of :func:`~syncheck.aligners.load_aligner`, stored with a monitor and compared on loading."""


@runtime_checkable
class EffortAligner(Aligner, Protocol):
    """Protocol of an aligner that can read more or less of the passages for a claim."""

    effort: Effort

    def at(self, effort: Effort) -> Self:
        """Make an aligner of another effort, which shares the weights of this one; InputError if it has no such."""


@runtime_checkable
class KnowsLanguages(Protocol):
    """Protocol of an aligner that reads only some languages."""

    languages: frozenset[str]
    """ISO 639-1 codes. Sentences in other languages get the status ``unsupported_language``."""


@runtime_checkable
class ReadsAnswers(Protocol):
    """Protocol of an aligner that can read an answer in short after its question, as in "What does it cost: £18."."""

    reads_answers: bool
    """True if it is to get such answers with the question, False if alone."""


def reads_answers(aligner: Aligner | None) -> bool:
    """Tell whether an aligner gets answers in short with their question."""
    return isinstance(aligner, ReadsAnswers) and aligner.reads_answers


def at_effort(aligner: Aligner | None, effort: Effort | None) -> Aligner | None:
    """Take an aligner at an effort, None leaves it as it is; InputError if it is no aligner of several efforts."""
    if effort is None:
        return aligner
    if isinstance(aligner, EffortAligner):
        return aligner.at(effort)
    name = "no aligner" if aligner is None else f"the aligner {aligner.name!r}"
    raise InputError(f"an effort is for the reader; found {name}, which has only one. Leave out the effort")


def languages_of(aligner: Aligner) -> frozenset[str] | None:
    """Name the languages that an aligner reads; None if it does not say."""
    return aligner.languages if isinstance(aligner, KnowsLanguages) else None


def require_aligner(aligner: object) -> None:
    """Raise WrongTypeError for anything but an aligner or None."""
    if aligner is not None and not hasattr(aligner, "align"):
        found = repr(aligner) if isinstance(aligner, str) else type(aligner).__name__
        raise WrongTypeError(f"aligner must be an aligner, as load_aligner(...) returns, or None; found {found}")


def check_asked(passages: Sequence[str], claims: Sequence[str]) -> None:
    """Check the arguments of an aligner: lists of valid strings (else WrongTypeError), no blank claim (InputError)."""
    check_texts(passages, "passages")
    check_texts(claims, "claims")
    if any(not claim.strip() for claim in claims):
        raise InputError("a claim is blank; leave out claims without text")


def scored_by_length(
    items: Sequence[_Item], score: Callable[[list[_Item]], list[float]], *, length: Callable[[_Item], int]
) -> list[float]:
    """Score items in batches of similar length; the results are in the order of the items."""
    order = sorted(range(len(items)), key=lambda place: length(items[place]))
    scores: dict[int, float] = {}
    for start in range(0, len(order), BATCH):
        places = order[start : start + BATCH]
        scores |= zip(places, score([items[place] for place in places]), strict=True)
    return [scores[place] for place in range(len(items))]


def batches(sizes: Sequence[int], room: int) -> Iterator[slice]:
    """Cut items of these sizes into batches of at most ``room`` tokens, or of one item."""
    begin = filled = 0
    for place, size in enumerate(sizes):
        if place > begin and filled + size > room:
            yield slice(begin, place)
            begin, filled = place, 0
        filled += size
    if sizes:
        yield slice(begin, len(sizes))


def options_of(aligner: Aligner) -> dict[str, str | int]:
    """Collect the options that distinguish an aligner from others with its name; empty if it has none."""
    return dict(aligner.options) if isinstance(aligner, ConfiguredAligner) else {}


def identity_of(aligner: Aligner | None) -> str:
    """Describe an aligner by name and options, in the form that ``--aligner`` takes on the command line."""
    if aligner is None:
        return "none"
    options = (f"--aligner-{name} {value}" for name, value in sorted(options_of(aligner).items()))
    return " ".join([aligner.name, *options])


@runtime_checkable
class KnowsWeights(Protocol):
    """Protocol of an aligner, or a part of one, that has a digest of its weights."""

    def weights_sha256(self) -> str | None:
        """Compute the digest of :func:`~syncheck.base.pretrained.weights_sha256`; None if the weights are elsewhere."""


class OfNetwork:
    """Base of an aligner, or a part of one, with the weights of ``_model``, a network or a part that may know them."""

    _model: Any

    def weights_sha256(self) -> str | None:
        """Compute a digest that identifies the weights; see :class:`KnowsWeights`."""
        return weights_sha256(self._model) if hasattr(self._model, "state_dict") else weights_of(self._model)


def weights_of(part: object) -> str | None:
    """Compute the digest of the weights of an aligner, or of a part of one; None if it does not know them."""
    return part.weights_sha256() if isinstance(part, KnowsWeights) else None


def is_same_aligner(first: Aligner, second: Aligner) -> bool:
    """Tell whether two aligners have the same name or, if both know them, the same weights, with whatever options."""
    if first is second or first.name == second.name:
        return True
    own, other = weights_of(first), weights_of(second)
    return own is not None and other is not None and same_weights(own, other)


@dataclass(frozen=True, slots=True)
class Unaligned:
    """Result for a claim without support, with the reason."""

    reason: str


class AskedAligner:
    """Calls an aligner for claims that answer one question, and turns its failures into reasons.

    An aligner may be the user's code, and generation must survive it: an error, a shortage of memory, or a result that
    breaks the protocol becomes the reason why claims have no support. The aligner gets the question and the indexed
    passages if it takes them.
    """

    def __init__(self, aligner: Aligner, question: str, index: EvidenceIndex) -> None:
        self._aligner, self._question, self._index = aligner, question, index

    def __call__(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support | Unaligned]:
        """Score each claim, or say why there is no score; an invalid result is the reason only for its own claim."""
        name = getattr(self._aligner, "name", type(self._aligner).__name__)
        try:
            supports = list(islice(self._supports(passages, list(claims)), len(claims) + 1))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of compiled code, for example, is not an Exception
            logger.exception("aligner %r failed; its sentences get the status 'failed'", name)
            return [Unaligned(f"aligner {name!r} failed: {type(error).__name__}: {error}")] * len(claims)
        if len(supports) != len(claims):
            many = "more" if len(supports) > len(claims) else len(supports)
            reason = f"aligner {name!r} misbehaved: expected {len(claims)} results; found {many}"
            logger.error("%s; its sentences get the status 'failed'", reason)
            return [Unaligned(reason)] * len(claims)
        checked = [_checked(result, len(passages), name) for result in supports]
        for result in checked:
            if isinstance(result, Unaligned):
                logger.error("%s; the sentence gets the status 'failed'", result.reason)
        return checked

    def _supports(self, passages: Sequence[str], claims: list[str]) -> list[Support]:
        if isinstance(self._told, IndexedAligner):
            return self._told.align_indexed(self._index, claims)
        return self._told.align(passages, claims)

    @cached_property
    def _told(self) -> Aligner:
        aligner = self._aligner
        return aligner.about(self._question) if isinstance(aligner, QuestionAligner) else aligner


def _checked(result: object, passages: int, name: str) -> Support | Unaligned:
    """Convert a result of the aligner of this name to plain numbers, or say why it is invalid."""
    misbehaved = f"aligner {name!r} misbehaved: expected"
    if not isinstance(result, Support):
        return Unaligned(f"{misbehaved} a Support; found {_shown(result)}")
    score, odds, against, quote = result.score, result.log_odds, result.contradicted, result.evidence
    is_quote = quote is None or (isinstance(quote, Evidence) and isinstance(quote.text, str))
    for is_valid, expected, value in (
        (_is_share(score), "a score in [0, 1]", score),
        (odds is None or (isinstance(odds, Real) and isfinite(odds)), "finite log-odds or None", odds),
        (against is None or _is_share(against), "P(contradicted) in [0, 1] or None", against),
        (is_quote, "Evidence or None", quote),
    ):
        if not is_valid:
            return Unaligned(f"{misbehaved} {expected}; found {_shown(value)}")
    log_odds, contradicted = (None if value is None else float(value) for value in (odds, against))
    if quote is None:
        return Support(float(score), None, log_odds, contradicted)
    if not isinstance(quote.passage, Integral) or not 0 <= quote.passage < passages or not _is_share(quote.score):
        return Unaligned(
            f"{misbehaved} evidence in one of {passages} passages with a score in [0, 1]; found passage "
            f"{_shown(quote.passage)}, score {_shown(quote.score)}"
        )
    evidence = Evidence(int(quote.passage), quote.text, float(quote.score))
    return Support(float(score), evidence, log_odds, contradicted)


def _is_share(score: object) -> bool:
    return isinstance(score, Real) and 0 <= float(score) <= 1  # False of NaN


def _shown(value: object) -> str:
    return repr(value) if value is None or isinstance(value, Real) else type(value).__name__
