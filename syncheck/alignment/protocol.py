"""What an aligner is: something that says how well a context supports a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, Self, runtime_checkable

from syncheck.alignment.evidence import EvidenceIndex
from syncheck.errors import InputError
from syncheck.given import check_texts
from syncheck.pretrained import same_weights
from syncheck.types import Support

__all__ = [
    "Aligner",
    "ConfiguredAligner",
    "IndexedAligner",
    "KnowsLanguages",
    "KnowsWeights",
    "QuestionAligner",
    "check_asked",
    "identity_of",
    "is_same_aligner",
    "languages_of",
    "options_of",
    "weights_of",
]


class Aligner(Protocol):
    """Scores claims against a context.

    Attributes
    ----------
    name : str
        Stored in a monitor's config, so that the same aligner is used again.
    """

    name: str

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Score each claim against the passages.

        Parameters
        ----------
        passages
            The context, of any length; nothing is cut in silence.
        claims
            Sentences to check; an empty list gives an empty list.

        Returns
        -------
        list of Support
            One per claim: P(supported) in [0, 1], higher is better, and the best evidence.
        """
        ...


@runtime_checkable
class QuestionAligner(Aligner, Protocol):
    """An aligner that also wants to know what the claims answer; a monitor tells it."""

    def about(self, question: str) -> Self:
        """Return the same aligner, by the same name, for claims that answer this question."""
        ...


@runtime_checkable
class IndexedAligner(Aligner, Protocol):
    """An aligner that reads the chunks of an index; a monitor makes one for each prompt and keeps it as long.

    A monitor then asks :meth:`align_indexed`, and not :meth:`align`.
    """

    def align_indexed(self, index: EvidenceIndex, claims: Sequence[str]) -> list[Support]:
        """Score each claim against the passages that are indexed; see :meth:`Aligner.align`."""
        ...


@runtime_checkable
class ConfiguredAligner(Aligner, Protocol):
    """An aligner whose scores depend on options beside the checkpoint that its name says.

    Attributes
    ----------
    options : mapping from str to str or int
        Stored with a monitor beside the name, and compared: keywords of :func:`~syncheck.alignment.load_aligner`.
    """

    options: Mapping[str, str | int]


@runtime_checkable
class KnowsLanguages(Protocol):
    """An aligner that reads some languages only.

    Attributes
    ----------
    languages : frozenset of str
        ISO 639-1 codes. A monitor gives sentences in others the status ``unsupported_language``.
    """

    languages: frozenset[str]


def languages_of(aligner: Aligner) -> frozenset[str] | None:
    """Return the languages that an aligner reads; None if it does not say."""
    return aligner.languages if isinstance(aligner, KnowsLanguages) else None


def check_asked(passages: Sequence[str], claims: Sequence[str]) -> None:
    """Check what an aligner is asked: lists of whole strings, of which no claim is blank.

    Raises
    ------
    InputError
        If a claim is blank, or a text holds half of a character (a lone surrogate).
    WrongTypeError
        If either is no sequence of strings.
    """
    check_texts(passages, "passages")
    check_texts(claims, "claims")
    if any(not claim.strip() for claim in claims):
        raise InputError("a claim is blank; leave out claims without text")


def options_of(aligner: Aligner) -> dict[str, str | int]:
    """Return the options that tell an aligner from others of its name; empty for one that has none."""
    return dict(aligner.options) if isinstance(aligner, ConfiguredAligner) else {}


def identity_of(aligner: Aligner | None) -> str:
    """Return what tells an aligner from any other, as the command line's ``--aligner`` takes it."""
    if aligner is None:
        return "none"
    return " ".join(
        [aligner.name, *(f"--aligner-{name} {value}" for name, value in sorted(options_of(aligner).items()))]
    )


@runtime_checkable
class KnowsWeights(Protocol):
    """An aligner, or a part of one, that can tell its weights from others."""

    def weights_sha256(self) -> str | None:
        """Return the digest of :func:`~syncheck.pretrained.weights_sha256`; None where the weights are elsewhere."""
        ...


def weights_of(part: object) -> str | None:
    """Return the digest of the weights of an aligner, or of a part of one; None if it does not know them."""
    return part.weights_sha256() if isinstance(part, KnowsWeights) else None


def is_same_aligner(first: Aligner, second: Aligner) -> bool:
    """Whether two aligners have one name or the same weights.

    A copy of a checkpoint in another folder is the same aligner, and so is one of other options or another calibration:
    its errors are the same network's. Aligners that do not know their weights, such as one behind an endpoint, are told
    apart by their names alone.
    """
    if first is second or first.name == second.name:
        return True
    own, other = weights_of(first), weights_of(second)
    return own is not None and other is not None and same_weights(own, other)
