"""Stand-ins with exact behaviour: texts a random model would never write, scores and support by formula."""

import copy
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
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
    " Angus Scott is a rugby player. He grew up on a farm in 1982. The Brumbies signed him as a prop! Did he "
    "play long? No one knows it."
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
