"""With what sentences were measured: which model and weights, which aligner, which prompt template."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from syncheck.alignment import identity_of
from syncheck.checkpoint import fingerprint
from syncheck.errors import MismatchError

if TYPE_CHECKING:
    from syncheck.monitor import Monitor

__all__ = ["check_same_instrument", "instrument_of"]

_INSTRUMENT = ("model", "weights sha256", "aligner", "template")


def instrument_of(monitor: Monitor) -> dict[str, str]:
    """Return what decides, beside the schema and the segmentation, what a monitor measures of a response, by name.

    ``weights sha256`` is :func:`~syncheck.pretrained.weights_sha256`, and missing where that is None.
    """
    model = fingerprint(monitor.model, monitor.tokenizer)
    weights = model.pop("weights_sha256")
    return {
        "model": json.dumps(model, sort_keys=True),
        **({} if weights is None else {"weights sha256": weights}),
        "aligner": identity_of(monitor.aligner),
        "template": str(monitor.config.template),
    }


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
        if name in expected and name in found and expected[name] != found[name]:
            raise MismatchError(
                f"{what} measured with another {name}: expected {_shown(expected, name)}, found {_shown(found, name)}. "
                f"{remedy}"
            )


def _shown(provenance: Mapping[str, str], name: str) -> str:
    """Return a fact, and for weights the model they are of."""
    of = f" of {provenance['model']}" if name == "weights sha256" and "model" in provenance else ""
    return f"{provenance[name]}{of}"
