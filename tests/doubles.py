"""Stand-ins with exact behaviour: texts a random model would never write, scores and support by formula."""

import copy
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike, NDArray
from tokenizers import normalizers
from torch import Tensor
from transformers import PreTrainedTokenizerBase
from transformers.generation import LogitsProcessor

from syncheck.base.files import write_digests
from syncheck.results.types import FeatureSchema, Support

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


class Script(LogitsProcessor):
    """Logits processor that allows one token at each step: the next of ``token_ids``, after a prompt of given length.

    ``prompt_tokens`` is the length of the prompt in tokens, padding included, and ``token_ids`` the text to write.
    """

    def __init__(self, prompt_tokens: int, token_ids: Sequence[int]) -> None:
        self.prompt_tokens = prompt_tokens
        self.token_ids = list(token_ids)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Compute scores (B, V): 0 for the wanted token and -inf for all others."""
        wanted = self.token_ids[input_ids.shape[1] - self.prompt_tokens]
        forced = torch.full_like(scores, -torch.inf)
        forced[:, wanted] = 0.0
        return forced


_FEWEST_WORDS = 3


class SentenceGrammar(LogitsProcessor):
    """Logits processor that lets a model with random weights write sentences.

    A sentence is a capitalised word, further words, and a full stop after three to ``longest`` words. The text may
    end between sentences, once there are ``least_sentences`` of them. The grammar reads the ids after the last id
    of the prompt, which it never allows, so rows may be padded on the left.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        prompt_ids: Sequence[int],
        *,
        longest: int = 6,
        least_sentences: int = 2,
    ) -> None:
        texts = {i: tokenizer.decode([i]) for i in range(len(tokenizer))}
        self.words = [i for i, text in texts.items() if re.fullmatch(" [a-z]{2,}", text)]
        self.capitals = [i for i, text in texts.items() if re.fullmatch(" [A-Z][a-z]+", text)]
        (self.stop,) = (i for i, text in texts.items() if text == ".")
        self.end = tokenizer.eos_token_id
        self.border = prompt_ids[-1]
        assert self.border not in {*self.words, *self.capitals, self.stop, self.end}
        self.longest = longest
        self.least_sentences = least_sentences

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Compute the scores (B, V), with -inf for tokens that the grammar excludes."""
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
        if words < _FEWEST_WORDS:
            return self.words
        return [self.stop] if words >= self.longest else [*self.words, self.stop]


@dataclass(frozen=True)
class FormulaAggregator:
    """Aggregator whose score is a formula of the features; cannot be saved."""

    schema: FeatureSchema
    formula: Callable[[dict[str, float]], float]
    """Computes P(faithful) in [0, 1] from the features' values by name; NaN means not measured."""
    kind: str = "lr"
    """Kind of aggregator that it stands for in reports."""

    def score(self, rows: ArrayLike) -> NDArray[np.float64]:
        """Compute the formula's value for each row of features (N, F), (N,) float64."""
        return np.array([self.formula(dict(zip(self.schema.names, row, strict=True))) for row in np.asarray(rows)])

    def attribution(self, row: ArrayLike) -> dict[str, float]:
        """Attribute 0 to every feature."""
        return dict.fromkeys(self.schema.names, 0.0)


class BrokenAligner:
    """Aligner that raises RuntimeError whenever it is called, for tests of failures."""

    name = "broken"

    def align(self, passages: Sequence[str], claims: Sequence[str]) -> list[Support]:
        """Raise RuntimeError."""
        raise RuntimeError("out of order")
