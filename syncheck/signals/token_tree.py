"""Token trees: continuations of one prompt that store and read the tokens they share only once.

Each column of the cache's one row is a token of one or more continuations, and a mask says which tokens see it (tree
attention: Miao et al., SpecInfer, 2024, section 4.2). A fork copies nothing, and S samples of a sentence read the
prompt's keys and values once, not S times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn.functional import pad

from syncheck.signals.cache import WHOLE_ATTENTION, RewindableCache, is_rewindable
from syncheck.signals.forward import ForwardArguments

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_PROBE_START, _PROBE_PROMPT, _PROBE_TOKENS = 10, 6, 4
"""First token id of a probe, length of its prompt, and length of each of its two rows."""
_NEARER, _NEARER_ROUNDED = 0.01, 0.25
"""Largest distance of a probe's logits from those of each row alone, relative to that from the logits of a row that
sees the other row: in float32, and in narrower types, where rounding decides."""

_found: WeakKeyDictionary[PreTrainedModel, dict[str, bool]] = WeakKeyDictionary()


class Forest:
    """A cache with one row, in whose columns ``trees`` grow, one for each prompt; see :func:`takes_token_tree`.

    No row sees a column of another tree.
    """

    def __init__(self, model: PreTrainedModel, cache: RewindableCache) -> None:
        self.cache = cache
        self.trees: list[TokenTree] = []
        self._adds = model.config.get_text_config()._attn_implementation == "eager"  # noqa: SLF001 - it has no other
        self._dtype, self._device = model.dtype, model.device

    def plant(self, length: int) -> TokenTree:
        """Make the first tree, of the prompt in the cache, which has ``length`` tokens."""
        self.trees.append(TokenTree(self, torch.ones((1, length), dtype=torch.bool, device=self._device)))
        return self.trees[0]

    def take_in(self, other: Forest) -> None:
        """Append the columns of another forest to the cache; its trees continue here."""
        with torch.inference_mode():
            for layer, added in zip(self.cache.layers, other.cache.layers, strict=True):
                if added.is_initialized:
                    layer.update(added.keys, added.values)
        own, others = self.trees[0].seen.shape[1], other.trees[0].seen.shape[1]
        for tree in self.trees:
            tree.seen = pad(tree.seen, (0, others))
        for tree in other.trees:
            tree.seen = pad(tree.seen, (own, 0))
            tree.forest = self
        self.trees += other.trees

    def place(self, parts: Sequence[tuple[TokenTree, Tensor]]) -> tuple[Tensor, Tensor | None, Tensor]:
        """Make room for tokens (B, n) of some trees in one forward pass; see :meth:`TokenTree.place`."""
        rows = [tree.fed_index.repeat_interleave(ids.shape[1]) for tree, ids in parts]  # row of each new token
        order = torch.cat([torch.arange(ids.shape[1], device=ids.device).repeat(len(ids)) for _, ids in parts])
        seen = torch.cat([tree.seen[index] for (tree, _), index in zip(parts, rows, strict=True)])
        positions = seen.sum(1) + order
        mask = None
        most = max(tree.rows for tree, _ in parts)
        if len(parts) > 1 or not parts[0][0].is_alone:
            owner = torch.cat([index + most * place for place, index in enumerate(rows)])
            among = (owner[:, None] == owner) & (order[:, None] >= order)
            mask = torch.cat([seen, among], dim=1)[None, None]
            if self._adds:
                mask = torch.zeros_like(mask, dtype=self._dtype).masked_fill_(~mask, torch.finfo(self._dtype).min)
        width, count = seen.shape[1], len(seen)
        for tree in self.trees:
            tree.seen = pad(tree.seen, (0, count))
        for (tree, ids), index in zip(parts, rows, strict=True):
            tree.seen[index, torch.arange(width, width + len(index), device=index.device)] = True
            tree.was_fed(ids.shape[1])
            width += len(index)
        return torch.cat([ids.reshape(1, -1) for _, ids in parts], dim=1), mask, positions[None]

    def clear(self) -> None:
        """Drop the columns that no row sees any more."""
        kept = torch.cat([tree.seen for tree in self.trees]).any(0).nonzero()[:, 0]
        columns = kept.tolist()
        unmoved = next((i for i, column in enumerate(columns) if column != i), len(columns))
        for layer in self.cache.layers:
            layer.keep(unmoved, kept[unmoved:])
        for tree in self.trees:
            tree.seen = tree.seen[:, kept]


class TokenTree:
    """Continuations of one prompt, in the columns of a forest.

    ``seen``, (rows, columns) bool, has the columns that each row sees; ``fed_index`` the rows that are fed, in order.
    """

    def __init__(self, forest: Forest, seen: Tensor) -> None:
        self.forest = forest
        self.seen = seen
        self._lengths = [seen.shape[1]]
        self._missed = [0]  # tokens that others were fed while the row was left out
        self._go_on_with([0])

    @property
    def rows(self) -> int:
        """Number of continuations."""
        return len(self._lengths)

    @property
    def fed(self) -> list[int]:
        """Rows that continue, in the order in which they are fed."""
        return list(self._fed)

    @property
    def lengths(self) -> list[int]:
        """Number of tokens in each row that continues."""
        return [self._lengths[row] for row in self._fed]

    @property
    def width(self) -> int:
        """Number of tokens in the longest row that continues."""
        return max(self.lengths)

    @property
    def is_alone(self) -> bool:
        """True if only one row continues and all columns are its own."""
        return len(self._fed) == 1 and self.width == self.seen.shape[1]

    def place(self, token_ids: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """Make room for tokens (B, n) after the rows that are fed.

        Returns the tokens (1, B * n), row by row, their mask (1, 1, B * n, all columns), None if the tree is alone, and
        their positions (1, B * n).
        """
        return self.forest.place([(self, token_ids)])

    def was_fed(self, n: int) -> None:
        """Add n to the length of every row that continues."""
        for row in range(self.rows):
            (self._lengths if row in self._fed else self._missed)[row] += n

    def rewind(self, tokens: int) -> None:
        """Take back the last tokens of every row; all rows continue."""
        self._keep(range(self.rows), [tokens] * self.rows)

    def take_back(self, tokens: int) -> None:
        """Take back the last tokens of the rows that are fed, which were fed since :meth:`narrow`."""
        own = self.seen[self.fed_index]
        self.seen[self.fed_index] = own & (own.flip(1).cumsum(1).flip(1) > tokens)
        self.forest.clear()
        self.was_fed(-tokens)

    def narrow(self, rows: Sequence[int]) -> None:
        """Continue with only these rows."""
        going_on = [row for row in self._fed if row in rows]
        if going_on != self._fed:
            self._go_on_with(going_on)

    def select(self, rows: Sequence[int], dropped: Sequence[int]) -> None:
        """Continue with copies of some rows, each without its last tokens, which include those that it was not fed."""
        self._keep(rows, [drop - self._missed[row] for row, drop in zip(rows, dropped, strict=True)])

    def _keep(self, rows: Sequence[int], dropped: Sequence[int]) -> None:
        seen = self.seen[list(rows)]
        from_the_end = seen.flip(1).cumsum(1).flip(1)  # of a row's own columns, the last is 1
        self.seen = seen & (from_the_end > torch.tensor(dropped, device=seen.device)[:, None])
        self.forest.clear()
        self._lengths = [self._lengths[row] - drop for row, drop in zip(rows, dropped, strict=True)]
        self._missed = [0] * len(rows)
        self._go_on_with(range(len(rows)))

    def _go_on_with(self, rows: Sequence[int]) -> None:
        self._fed = list(rows)
        self.fed_index = torch.tensor(self._fed, device=self.seen.device)


def reads_less(model: PreTrainedModel, rows: int) -> bool:
    """Tell whether a tree of so many rows reads fewer keys and values than a batch of them.

    Only grouped-query attention may read more: with a mask and several queries, transformers' ``sdpa`` writes and reads
    a copy of keys and values for each query head; with one query per row, as in a batch, it does not.
    """
    groups = _copies_for_mask(model)
    return not groups or rows > 1 + 2 * groups


def reads_weights_for_less(model: PreTrainedModel, cache: RewindableCache) -> bool:
    """Tell whether a mask over a prompt's keys and values costs less than the weights again; see :func:`reads_less`."""
    weights: int = sum(tensor.nbytes for tensor in model.parameters())
    return 2 * _copies_for_mask(model) * cache.nbytes < weights


def _copies_for_mask(model: PreTrainedModel) -> int:
    """Count the copies of each key that attention with a mask writes and reads; 0 if it reads keys in place."""
    config = model.config.get_text_config()
    heads: int = config.num_attention_heads
    groups = heads // (getattr(config, "num_key_value_heads", None) or heads)
    is_eager: bool = config._attn_implementation == "eager"  # noqa: SLF001 - there is no public name
    return 0 if groups == 1 or is_eager else groups


def takes_token_tree(model: PreTrainedModel) -> bool:
    """Tell whether a model can run over a tree: its attention is PyTorch's and heeds a mask of any shape.

    This is tried once for each model with a few forward passes, which its hooks see. Attention that slides, is cut into
    chunks or makes its own mask needs to know more than which tokens see which.
    """
    attention = model.config.get_text_config()._attn_implementation  # noqa: SLF001 - there is no public name
    tested = _found.setdefault(model, {})
    if attention not in tested:
        tested[attention] = attention in ("eager", "sdpa") and _sees_all(model) and _heeds_masks(model)
    return tested[attention]


def _sees_all(model: PreTrainedModel) -> bool:
    # GPT-Neo, GPT-J and others mask by the column, from a table as wide as their window.
    if any(table.ndim == 4 and table.dtype == torch.bool for table in model.buffers()):
        return False
    config = model.config.get_text_config()
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        return set(kinds) <= WHOLE_ATTENTION
    return getattr(config, "sliding_window", None) is None and getattr(config, "attention_chunk_size", None) is None


@torch.inference_mode()
def _heeds_masks(model: PreTrainedModel) -> bool:
    arguments = ForwardArguments(model)
    if not (is_rewindable(model) and arguments.takes_positions):
        return False
    every = _PROBE_START + torch.arange(_PROBE_PROMPT + 2 * _PROBE_TOKENS, device=model.device)[None]
    every = every % model.config.get_text_config().vocab_size
    prompt, first, second = every.split([_PROBE_PROMPT, _PROBE_TOKENS, _PROBE_TOKENS], dim=1)
    whole = torch.arange(every.shape[1], device=model.device)[None]

    def logits(ids: Tensor, mask: Tensor | None, positions: Tensor, cache: RewindableCache | None = None) -> Tensor:
        given = arguments.of(mask, positions, cache, ids.shape[1], is_first=cache is None)
        outputs: Tensor = model(input_ids=ids, **given).logits
        return outputs.float()

    rows = torch.cat([torch.cat([prompt, row], dim=1) for row in (first, second)])
    alone = logits(rows, None, whole[:, : rows.shape[1]])[:, -_PROBE_TOKENS:]
    unmasked = logits(every, None, whole)[0, -_PROBE_TOKENS:]
    cache = RewindableCache()
    logits(prompt, None, whole[:, :_PROBE_PROMPT], cache)
    tree = Forest(model, cache).plant(_PROBE_PROMPT)
    tree.select([0, 0], [0, 0])
    try:
        together = logits(*tree.place(torch.cat([first, second])), cache).reshape(alone.shape)
    except (IndexError, RuntimeError, TypeError, ValueError):  # it reads something else from the mask, as ALiBi does
        return False
    nearer = _NEARER if model.dtype == torch.float32 else _NEARER_ROUNDED
    return bool((together - alone).norm() < nearer * (unmasked - alone[1]).norm())
