"""Stand-ins with exact behaviour: texts a random model would never write, scores and support by formula."""

import copy
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import normalizers

from syncheck.base.files import write_digests

LAYERS = (2, 3, 4)
"""Decoder blocks, of six, with references in tests/golden/signals."""

PASSAGES = (
    "Angus Scott is a professional rugby player. He grew up on a farm in New South Wales.",
    "The Brumbies signed Scott in 2003 as an understudy.",
)
QUESTION = "Who is Angus Scott?"
ANSWER = (
    " Angus Scott is a rugby player. He grew up on a farm in 1982. The Brumbies signed him as a prop! He did "
    "play long. No one knows it."
)
"""Five sentences; as a response its first token begins with a space."""

REWRITINGS = {
    "a space before it": normalizers.Prepend(" "),
    "composed": normalizers.NFC(),
    "decomposed": normalizers.NFD(),
    "compatible": normalizers.NFKC(),
    "stripped": normalizers.Strip(),
    "lower case": normalizers.Lowercase(),
}
"""What a tokenizer may do to a text before it reads it."""


def rewriting(golden: Any, normalizer: normalizers.Normalizer) -> Any:
    """Return a golden model whose tokenizer rewrites texts before its own normalizer does."""
    tokenizer = copy.deepcopy(golden.tokenizer)
    own = tokenizer.backend_tokenizer.normalizer
    tokenizer.backend_tokenizer.normalizer = normalizers.Sequence([normalizer, own] if own else [normalizer])
    return replace(golden, tokenizer=tokenizer)


def wavy(values: dict[str, float]) -> float:
    """Differs much from sentence to sentence and little by rounding, in [0, 1]."""
    return 0.5 + 0.5 * float(np.sin(20 * values["mean_entropy"]))


def rewrite(path: Path, change: Mapping[str, Any], *, without: Collection[str] = ()) -> None:
    """Change fields of a JSON file, and keep its folder's digests, if it has any, those of the files."""
    config = {name: value for name, value in json.loads(path.read_text()).items() if name not in without}
    path.write_text(json.dumps(config | dict(change)))
    reseal(path.parent)


def reseal(folder: Path) -> None:
    """Make the digests of a saved monitor those of its files as they are."""
    if (folder / "digests.json").exists():
        write_digests(folder, json.loads((folder / "digests.json").read_text())["sha256"])


def assert_same(report, other):
    """Check that two reports are of the same tokens and sentences, with signals and scores that are equal but for
    rounding.
    """
    assert report.response == other.response
    np.testing.assert_array_equal(report.tokens.token_ids, other.tokens.token_ids)
    np.testing.assert_array_equal(report.tokens.char_spans, other.tokens.char_spans)
    for name in ("log_prob", "log_prob_without_context", "entropy", "kl"):
        found, wanted = getattr(report.tokens, name), getattr(other.tokens, name)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4, err_msg=name)
    places = [
        [(s.text, s.start, s.end, s.token_start, s.token_end, s.status) for s in r.sentences] for r in (report, other)
    ]
    assert places[0] == places[1]
    for a, b in zip(report.sentences, other.sentences, strict=True):
        assert numbers(a.features) == pytest.approx(numbers(b.features), rel=1e-3, abs=1e-6, nan_ok=True)
        assert a.score == pytest.approx(b.score, abs=5e-3)


def numbers(features):
    return {name: np.nan if value is None else value for name, value in features.items()}
