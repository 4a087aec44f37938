"""Which model and aligner, with which weights, measured what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from operator import eq
from typing import TYPE_CHECKING

from syncheck.alignment import identity_of, weights_of
from syncheck.checkpoint import fingerprint
from syncheck.errors import MismatchError
from syncheck.pretrained import same_weights

if TYPE_CHECKING:
    from syncheck.monitor import Monitor

__all__ = ["check_same_instrument", "instrument_of"]


_INSTRUMENT = ("model", "weights sha256", "aligner", "aligner weights sha256", "template")
_NAMED_BY = {"weights sha256": "model", "aligner weights sha256": "aligner"}
"""Digests, and the fact that says what they are of."""


def instrument_of(monitor: Monitor) -> dict[str, str]:
    """Return what decides, beside the schema and the segmentation, what a monitor measures of a response, by name.

    ``weights sha256`` is :func:`~syncheck.pretrained.weights_sha256` of the model, ``aligner weights sha256``
    :func:`~syncheck.alignment.weights_of` the aligner; either is left out where it is None.
    """
    model = fingerprint(monitor.model, monitor.tokenizer)
    facts = {
        "weights sha256": model.pop("weights_sha256"),
        "model": json.dumps(model, sort_keys=True),
        "aligner": identity_of(monitor.aligner),
        "aligner weights sha256": weights_of(monitor.aligner),
        "template": str(monitor.config.template),
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def check_same_instrument(expected: Mapping[str, str], found: Mapping[str, str], *, what: str, remedy: str) -> None:
    """Check that two provenances name one instrument; facts that either of them lacks are not compared.

    Parameters
    ----------
    expected, found
        As :func:`instrument_of` returns them, or as a file notes them.
    what
        Begins the message: what was measured with ``found``.
    remedy
        Ends it.

    Raises
    ------
    MismatchError
        If they differ, with the model and the fact of each.
    """
    for name in _INSTRUMENT:
        alike = same_weights if name in _NAMED_BY else eq
        if name in expected and name in found and not alike(expected[name], found[name]):
            raise MismatchError(
                f"{what} measured with another {name}: expected {_shown(expected, name)}, found {_shown(found, name)}. "
                f"{remedy}"
            )


def _shown(provenance: Mapping[str, str], name: str) -> str:
    """Return a fact, and for weights what they are of."""
    of = provenance.get(_NAMED_BY.get(name, ""))
    return provenance[name] if of is None else f"{provenance[name]} of {of}"
