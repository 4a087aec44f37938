"""Continuations of one prompt as a tree of tokens: shared tokens are held and read once.

The cache has one row. Each of its columns is a token of one continuation or of several, and a mask says which tokens
see it (the tree attention of speculative decoding: Miao et al., SpecInfer, 2024, section 4.2). A fork copies nothing,
and S samples of a sentence read the prompt's keys and values once where a batch of S rows reads them S times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from syncheck.signals.cache import WHOLE_ATTENTION, RewindableCache, is_rewindable
from syncheck.signals.forward import ForwardArguments

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_PROBE_START, _PROBE_PROMPT, _PROBE_TOKENS = 10, 6, 4
"""First id of a probe, tokens of its prompt, and of each of its two rows."""
_NEARER = {torch.float32: 0.01}
_NEARER_ROUNDED = 0.25
"""How near a probe's logits must be to those of each row alone, in distances to those of a row that sees the other;
rounding decides in narrower types."""

_found: WeakKeyDictionary[PreTrainedModel, dict[str, bool]] = WeakKeyDictionary()


class TokenTree:
    """Continuations that grow from the one row of a cache, of ``length`` tokens; see :func:`takes_token_tree`."""

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
        """The rows that continue, in the order in which they are fed."""
        return list(self._fed)

    @property
    def lengths(self) -> list[int]:
        """Tokens of each row that continues."""
        return [self._lengths[row] for row in self._fed]

    @property
    def width(self) -> int:
        """Tokens of the longest row that continues."""
        return max(self.lengths)

    def place(self, token_ids: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """Make room for tokens (B, n) after the rows that are fed.

        Returns the tokens (1, B * n), row by row, their mask (1, 1, B * n, columns with the new ones), None if there is
        one row and no column of another, and positions (1, B * n).
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
        """Take the last tokens of every row back; all of them continue."""
        self._keep(range(self.rows), [tokens] * self.rows)

    def narrow(self, rows: Sequence[int]) -> None:
        """Continue with these rows only."""
        going_on = [row for row in self._fed if row in rows]
        if going_on != self._fed:
            self._go_on_with(going_on)

    def select(self, rows: Sequence[int], dropped: Sequence[int]) -> None:
        """Continue with copies of some rows, each without its last tokens; what it missed counts among them."""
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


def reads_less(model: PreTrainedModel, rows: int) -> bool:
    """Return True if a tree of so many rows reads fewer keys and values than a batch of them.

    Only grouped-query attention may read more: with a mask and several queries transformers' ``sdpa`` writes the keys
    and values again for each query head, and reads those; a batch, with one query a row, does not.
    """
    config = model.config.get_text_config()
    heads: int = config.num_attention_heads
    groups = heads // (getattr(config, "num_key_value_heads", None) or heads)
    is_eager: bool = config._attn_implementation == "eager"  # noqa: SLF001 - there is no public name
    return groups == 1 or is_eager or rows > 1 + 2 * groups


def takes_token_tree(model: PreTrainedModel) -> bool:
    """Return True if a model can run over a tree: its attention is PyTorch's and heeds a mask of any shape.

    This is tried once for each model by a few forwards, which hooks on the model see. Models whose attention slides, is
    cut into chunks or keeps its own mask do not qualify: a mask for them would have to say more than who sees
    whom.
    """
    attention = model.config.get_text_config()._attn_implementation  # noqa: SLF001 - there is no public name
    found = _found.setdefault(model, {})
    if attention not in found:
        found[attention] = attention in ("eager", "sdpa") and _sees_all(model) and _heeds_masks(model)
    return found[attention]


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
        found: Tensor = model(input_ids=ids, **given).logits
        return found.float()

    rows = torch.cat([torch.cat([prompt, row], dim=1) for row in (first, second)])
    alone = logits(rows, None, whole[:, : rows.shape[1]])[:, -_PROBE_TOKENS:]
    unmasked = logits(every, None, whole)[0, -_PROBE_TOKENS:]
    cache = RewindableCache()
    logits(prompt, None, whole[:, :_PROBE_PROMPT], cache)
    tree = TokenTree(model, cache, _PROBE_PROMPT)
    tree.select([0, 0], [0, 0])
    try:
        found = logits(*tree.place(torch.cat([first, second])), cache).reshape(alone.shape)
    except (IndexError, RuntimeError, TypeError, ValueError):  # it reads something else from the mask, as ALiBi does
        return False
    nearer = _NEARER.get(model.dtype, _NEARER_ROUNDED)
    return bool((found - alone).norm() < nearer * (unmasked - alone[1]).norm())
