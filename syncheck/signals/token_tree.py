"""Continuations of one prompt as a tree of tokens: what they share is held and read once.

The cache has one row. Each of its columns is a token of one continuation or of several, and a mask says which tokens
see it (the tree attention of speculative decoding: Miao et al., SpecInfer, 2024, section 4.2). A fork copies nothing,
and S samples of a sentence read the prompt's keys and values once where a batch of S rows reads them S times.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers import PreTrainedModel

from syncheck.errors import NotReadyError
from syncheck.signals.cache import RewindableCache, is_rewindable
from syncheck.signals.forward import ForwardArguments

__all__ = ["TokenTree", "takes_token_tree"]

_WHOLE = frozenset(("full_attention", "dense", "sparse"))
"""Kinds of layers, in transformers' names, that see every token before; the last two say it of an MLP."""

_PROBE_PROMPT, _PROBE_TOKENS = 6, 4
_NEARER = 0.25
"""How near a probe's logits must be to those of each row alone, in distances to those of a row that sees another."""

_found: WeakKeyDictionary[PreTrainedModel, dict[str, bool]] = WeakKeyDictionary()


class TokenTree:
    """Where the tokens of continuations stand that grow from one row of a cache.

    Parameters
    ----------
    model
        For which :func:`takes_token_tree` holds.
    cache
        With the one row.
    length
        Its tokens.
    """

    def __init__(self, model: PreTrainedModel, cache: RewindableCache, length: int) -> None:
        self.cache = cache
        self._adds = model.config.get_text_config()._attn_implementation == "eager"  # noqa: SLF001 - it has no other
        self._dtype = model.dtype
        self._lengths = [length]
        self._missed = [0]  # tokens that others were fed while the row was left out
        self._seen = torch.ones((1, length), dtype=torch.bool, device=model.device)  # (rows, columns)
        self._go_on_with([0])

    @property
    def rows(self) -> int:
        """Number of continuations."""
        return len(self._lengths)

    @property
    def fed(self) -> list[int]:
        """The rows that go on, in the order in which they are fed."""
        return list(self._fed)

    @property
    def width(self) -> int:
        """Tokens of the longest row."""
        return max(self._lengths)

    def place(self, token_ids: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """Make room for tokens (B, n) behind the rows that are fed.

        Returns
        -------
        token_ids : Tensor of shape (1, B * n)
            Row by row.
        mask : Tensor of shape (1, 1, B * n, columns with the new ones) or None
            None where there is one row and no column of another.
        positions : Tensor of shape (1, B * n)
        """
        rows, n = len(self._fed), token_ids.shape[1]
        owner = self._fed_index.repeat_interleave(n)  # row of each new token
        order = torch.arange(n, device=token_ids.device).repeat(rows)  # how many of its row come with it, before it
        seen = self._seen[owner]
        positions = seen.sum(1) + order
        mask = None
        if rows > 1 or self._lengths[self._fed[0]] < self._seen.shape[1]:
            among = (owner[:, None] == owner) & (order[:, None] >= order)
            mask = self._of_attention(torch.cat([seen, among], dim=1)[None, None])
        every = torch.arange(self.rows, device=token_ids.device)
        self._seen = torch.cat([self._seen, every[:, None] == owner], dim=1)
        for row in range(self.rows):
            (self._lengths if row in self._fed else self._missed)[row] += n
        return token_ids.reshape(1, -1), mask, positions[None]

    def rewind(self, tokens: int) -> None:
        """Take the last tokens of every row back."""
        if tokens > min(self._lengths):
            raise NotReadyError(f"cannot take back {tokens} tokens of rows that hold {self._lengths}")
        if len(self._fed) < self.rows:
            raise NotReadyError("some rows are left out of the batch and hold fewer tokens; call select()")
        self._keep(range(self.rows), [tokens] * self.rows)

    def narrow(self, rows: Sequence[int]) -> None:
        """Go on with these rows only."""
        self._go_on_with([row for row in self._fed if row in rows])

    def select(self, rows: Sequence[int], dropped: Sequence[int]) -> None:
        """Continue with copies of some rows, each without its last tokens.

        What a row was not fed while it was left out is dropped of it already.
        """
        self._keep(rows, [drop - self._missed[row] for row, drop in zip(rows, dropped, strict=True)])

    def _keep(self, rows: Sequence[int], dropped: Sequence[int]) -> None:
        seen = self._seen[list(rows)]
        from_the_end = seen.flip(1).cumsum(1).flip(1)  # of a row's own columns, the last is 1
        seen &= from_the_end > torch.tensor(dropped, device=seen.device)[:, None]
        kept = seen.any(0).nonzero()[:, 0]
        columns = kept.tolist()
        unmoved = next((i for i, column in enumerate(columns) if column != i), len(columns))
        self.cache.keep(unmoved, kept[unmoved:])
        self._seen = seen[:, kept]
        self._lengths = [self._lengths[row] - drop for row, drop in zip(rows, dropped, strict=True)]
        self._missed = [0] * len(rows)
        self._go_on_with(range(len(rows)))

    def _go_on_with(self, rows: Sequence[int]) -> None:
        self._fed = list(rows)
        self._fed_index = torch.tensor(self._fed, device=self._seen.device)

    def _of_attention(self, seen: Tensor) -> Tensor:
        """Return the mask as the model's attention takes it: what is seen, or what is added to the scores."""
        if not self._adds:
            return seen
        return torch.zeros_like(seen, dtype=self._dtype).masked_fill_(~seen, torch.finfo(self._dtype).min)


def takes_token_tree(model: PreTrainedModel) -> bool:
    """Whether a model can be run over a tree: its attention is PyTorch's and heeds a mask of any shape.

    That is tried, once for each model, on a few tokens. Where attention slides or is cut into chunks the answer is no,
    for a mask would have to say how far each layer sees.
    """
    config = model.config.get_text_config()
    attention = config._attn_implementation  # noqa: SLF001 - there is no public name
    found = _found.setdefault(model, {})
    if attention not in found:
        found[attention] = attention in ("eager", "sdpa") and _sees_all(config) and _heeds_masks(model)
    return found[attention]


def _sees_all(config: object) -> bool:
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        return set(kinds) <= _WHOLE
    return getattr(config, "sliding_window", None) is None and getattr(config, "attention_chunk_size", None) is None


@torch.inference_mode()
def _heeds_masks(model: PreTrainedModel) -> bool:
    arguments = ForwardArguments(model)
    if not (is_rewindable(model) and arguments.takes_positions):
        return False
    ids = torch.arange(_PROBE_PROMPT + 2 * _PROBE_TOKENS, device=model.device)[None]
    ids = ids % model.config.get_text_config().vocab_size
    prompt, *after = ids.split([_PROBE_PROMPT, _PROBE_TOKENS, _PROBE_TOKENS], dim=1)

    def logits(token_ids: Tensor, mask: Tensor | None, positions: Tensor, cache: RewindableCache | None) -> Tensor:
        keep = token_ids.shape[1]
        given = arguments.of(mask, positions, cache, keep, is_first=cache is None)
        found: Tensor = model(input_ids=token_ids, **given).logits
        return found[0, -_PROBE_TOKENS:].float()

    def alone(*parts: Tensor) -> Tensor:
        joined = torch.cat(parts, dim=1)
        return logits(joined, None, torch.arange(joined.shape[1], device=model.device)[None], None)

    cache = RewindableCache()
    logits(prompt, None, torch.arange(_PROBE_PROMPT, device=model.device)[None], cache)
    tree = TokenTree(model, cache, _PROBE_PROMPT)
    tree.select([0, 0], [0, 0])
    second = logits(*tree.place(torch.cat(after)), cache)
    expected, seeing_the_first = alone(prompt, after[1]), alone(prompt, *after)
    return bool((second - expected).norm() < _NEARER * (seeing_the_first - expected).norm())
