"""Stand-ins with exact behaviour: texts a random model would never write, scores and support by formula."""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers.generation import LogitsProcessor

from syncheck import Evidence
from syncheck.files import write_digests
from syncheck.types import FeatureSchema, Support

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


class Script(LogitsProcessor):
    """Leaves one token possible at each step: the next of the script, whatever the model prefers."""

    def __init__(self, prompt_tokens: int, token_ids: Sequence[int]) -> None:
        self.prompt_tokens = prompt_tokens
        self.token_ids = list(token_ids)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        wanted = self.token_ids[input_ids.shape[1] - self.prompt_tokens]
        forced = torch.full_like(scores, -torch.inf)
        forced[:, wanted] = 0.0
        return forced


class SentenceGrammar(LogitsProcessor):
    """Lets a random model choose words, but only so that sentences come about.

    A sentence is a capitalised word, words, and a full stop after ``shortest`` to ``longest`` words. Between
    sentences the text may end, once there are ``least_sentences`` of them. What is allowed depends on the ids
    behind the last one of the prompt, which the grammar never allows, so rows may be padded on the left.
    """

    def __init__(self, tokenizer, prompt_ids, *, shortest=3, longest=6, least_sentences=2) -> None:
        texts = {i: tokenizer.decode([i]) for i in range(len(tokenizer))}
        self.words = [i for i, text in texts.items() if re.fullmatch(" [a-z]{2,}", text)]
        self.capitals = [i for i, text in texts.items() if re.fullmatch(" [A-Z][a-z]+", text)]
        (self.stop,) = (i for i, text in texts.items() if text == ".")
        self.end = tokenizer.eos_token_id
        self.border = prompt_ids[-1]
        assert self.border not in {*self.words, *self.capitals, self.stop, self.end}
        self.lengths = (shortest, longest)
        self.least_sentences = least_sentences

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        allowed = torch.full_like(scores, -torch.inf)
        for row, ids in enumerate(input_ids.tolist()):
            columns = self._allowed(ids[len(ids) - ids[::-1].index(self.border) :])
            allowed[row, columns] = scores[row, columns]
        return allowed

    def _allowed(self, response: list[int]) -> list[int]:
        sentences = response.count(self.stop)
        words = len(response) if not sentences else response[::-1].index(self.stop)
        if words == 0:
            return [*self.capitals, *([self.end] if sentences >= self.least_sentences else [])]
        if words < self.lengths[0]:
            return self.words
        return [self.stop] if words >= self.lengths[1] else [*self.words, self.stop]


@dataclass(frozen=True)
class FormulaAggregator:
    """P(faithful) by a formula of the features' values by name; not saved."""

    schema: FeatureSchema
    formula: Callable[[dict[str, float]], float]
    kind: str = "lr"

    def score(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self.formula(dict(zip(self.schema.names, row, strict=True))) for row in np.asarray(rows)])

    def attribution(self, row: np.ndarray) -> dict[str, float]:
        return {name: 0.0 for name in self.schema.names}


def wavy(values: dict[str, float]) -> float:
    """Differs much from sentence to sentence and little by rounding, in [0, 1]."""
    return 0.5 + 0.5 * float(np.sin(20 * values["mean_entropy"]))


class WordAligner:
    """Support is the share of the claim's words that the passages hold."""

    name = "words"

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        known = set(re.findall(r"\w+", " ".join(passages).lower()))
        found = [[word in known for word in re.findall(r"\w+", claim.lower())] for claim in claims]
        return [Support(sum(f) / len(f), Evidence(0, passages[0], sum(f) / len(f))) for f in found]


class BrokenAligner:
    """Raises whenever it is asked."""

    name = "broken"

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        raise RuntimeError("out of order")


def rewrite(path: Path, change: Mapping[str, Any], *, without: Collection[str] = ()) -> None:
    """Change fields of a JSON file, and keep its folder's digests, if it has any, those of the files."""
    config = {name: value for name, value in json.loads(path.read_text()).items() if name not in without}
    path.write_text(json.dumps(config | dict(change)))
    reseal(path.parent)


def reseal(folder: Path) -> None:
    """Make the digests of a saved monitor those of its files as they are."""
    if (folder / "digests.json").exists():
        write_digests(folder, json.loads((folder / "digests.json").read_text())["sha256"])
