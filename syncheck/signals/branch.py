"""Branches: continuations of prompts in one conditional distribution, with the context or without it."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import commonprefix
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from syncheck.base.errors import NotReadyError, PromptError, UnsupportedModelError
from syncheck.signals.cache import RewindableCache, new_cache
from syncheck.signals.forward import ForwardArguments, check_one_encoding, check_same_encoding, switches_of
from syncheck.signals.token_tree import Forest, TokenTree, reads_less, reads_weights_for_less, takes_token_tree

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.cache_utils import Cache


class Branch:
    """B continuations of prompts; never encodes a token twice.

    They are rows of a batch (:class:`PaddedRows`). A single one that is forked becomes a :class:`TokenTree` if the
    model accepts one and reads less that way. Results are the same, except that a row that is left out can fill the
    window only in a batch. Rows that need no more tokens can be left out (:meth:`narrow`) until :meth:`select`.

    A prompt of several rows is encoded once, and so is a beginning that prompts share, as those about the same passages
    do, if it is at least half of the longest. ``next_logits`` (B, V) are the raw logits, in the model's dtype, of the
    next token of the rows :attr:`fed`. Two branches that have joined (:meth:`join`) can be fed in one forward pass.
    """

    def __init__(self, model: PreTrainedModel, prompts: Sequence[Sequence[int]]) -> None:
        unique = list(dict.fromkeys(map(tuple, prompts)))
        lengths = list(map(len, unique))
        width = max(lengths)
        self._window = window_of(model)
        _require_room(self._window, width)
        check_same_encoding(model, lengths)
        self._model = model
        self._switches = switches_of(model)
        self._arguments = ForwardArguments(model)
        self._cache = new_cache(model)
        self._layout: PaddedRows | TokenTree
        beginning = self._shared_beginning(unique)
        if beginning:
            self._encode_after(beginning, unique)
        else:
            self._layout = PaddedRows(self._cache, lengths)
            ids = [[*[prompt[0]] * (width - len(prompt)), *prompt] for prompt in unique]
            self.next_logits = self._forward(torch.tensor(ids, device=model.device), keep=1, is_first=True)[:, -1]
        if len(unique) < len(prompts):  # whole answers follow, and a tree would keep all of them for each row
            rows = [unique.index(tuple(prompt)) for prompt in prompts]
            self._layout.select(rows, [0] * len(rows))
            self.next_logits = self.next_logits[rows]

    @property
    def rows(self) -> int:
        """Number of continuations."""
        return self._layout.rows

    @property
    def fed(self) -> list[int]:
        """The rows for which :meth:`feed` takes tokens, in its order: all, unless :meth:`narrow` left some out."""
        return self._layout.fed

    @property
    def width(self) -> int:
        """Number of tokens in the longest row that is fed."""
        return self._layout.width

    def feed(self, token_ids: Tensor) -> Tensor:
        """Append tokens (B, n) to every row that is fed and return the logits (B, n, V) that follow them.

        The model runs once, or token by token if its state is recurrent, which gives other numbers for a run of tokens.
        """
        n = token_ids.shape[1]
        self._require_room(n)
        at_once = n if isinstance(self._cache, RewindableCache) else 1
        parts = [self._forward(chunk, keep=chunk.shape[1]) for chunk in torch.split(token_ids, at_once, dim=1)]
        logits = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        self.next_logits = logits[:, -1]
        return logits

    def fitting(self, draft: list[int], *, after: int) -> list[int]:
        """Cut a draft to what can be fed ``after`` so many tokens, encoded alike, and taken back."""
        if not isinstance(self._cache, RewindableCache):
            return []
        start = self.width + after
        ends = [end for end in (self._window, *self._switches) if end is not None and end >= start]
        return draft[: min(ends) - start] if ends else draft

    def join(self, other: Branch) -> bool:
        """Move another branch of the model into this one's cache and return True, if one forward pass can feed both.

        It can if the model takes a token tree and encodes texts of all lengths alike, no branch is a batch, and it
        :func:`reads_weights_for_less`.
        """
        are_trees = all(isinstance(branch._layout, TokenTree) or branch.rows == 1 for branch in (self, other))
        if not are_trees or self._switches or not takes_token_tree(self._model):
            return False
        assert isinstance(self._cache, RewindableCache)
        if not reads_weights_for_less(self._model, self._cache):
            return False
        self._as_tree().forest.take_in(other._as_tree().forest)
        other._cache = self._cache
        return True

    def feed_with(self, other: Branch, token_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Feed tokens (B, n) to this branch and another that has joined it, in one forward pass; see :meth:`feed`."""
        branches = (self, other)
        for branch in branches:
            branch._require_room(token_ids.shape[1])
        trees = [branch._as_tree() for branch in branches]
        placed, mask, positions = trees[0].forest.place([(tree, token_ids) for tree in trees])
        logits = self._run(placed, mask, positions, keep=placed.shape[1])
        own, others = logits.reshape(2, *token_ids.shape, -1)
        self.next_logits, other.next_logits = own[:, -1], others[:, -1]
        return own, others

    def stack(self, other: Branch) -> bool:
        """Take in the rows of another branch of the model after the own ones, and return True, if they can be a batch.

        The other branch must not be used any more. Rows are not stacked if the model takes no padding or encodes texts
        again at some length, or if the padding weighs more than half the model, so that reading it costs more.
        """
        own, added = self._layout, other._layout
        if not (isinstance(own, PaddedRows) and isinstance(added, PaddedRows) and self._arguments.takes_padding):
            return False
        if self._switches or not (isinstance(own.cache, RewindableCache) and isinstance(added.cache, RewindableCache)):
            return False
        width = max(own.width, added.width)
        padding = sum(rows.cache.nbytes * (width / rows.width - 1) for rows in (own, added))
        if 2 * padding > sum(tensor.nbytes for tensor in self._model.parameters()):
            return False
        own.stack(added)
        self.next_logits = torch.cat([self.next_logits, other.next_logits])
        return True

    def rewind(self, tokens: int, next_logits: Tensor) -> None:
        """Take back the last ``tokens`` of every row; ``next_logits`` (B, V) are the logits saved at that point."""
        if tokens:
            self._require_rewindable()
        if tokens > min(self._layout.lengths):
            raise NotReadyError(f"cannot remove {tokens} tokens from rows that hold {self._layout.lengths}")
        if len(self.fed) < self.rows:
            raise NotReadyError("some rows are left out and hold fewer tokens; call select()")
        self._layout.rewind(tokens)
        self.next_logits = next_logits

    def take_back(self, tokens: int, next_logits: Tensor) -> None:
        """Take back the last ``tokens`` of the rows that are fed, for which ``next_logits`` (B, V) were saved."""
        self._layout.take_back(tokens)
        self.next_logits = next_logits

    def narrow(self, rows: Sequence[int]) -> None:
        """Continue with only these of the rows that are fed, or with all if the state cannot be rewound."""
        self._layout.narrow(rows)

    def select(self, rows: Sequence[int], dropped: Sequence[int], next_logits: Tensor) -> None:
        """Continue with copies of some rows, each without its last tokens; any of them several times or not at all.

        A row that was left out drops at least the tokens that it was not fed. ``next_logits`` (len(rows), V) are the
        logits saved where each new row now ends.
        """
        if any(dropped):
            self._require_rewindable()
        is_forked = isinstance(self._layout, PaddedRows) and self.rows == 1 < len(rows)
        if is_forked and reads_less(self._model, len(rows)) and takes_token_tree(self._model):
            self._as_tree()
        self._layout.select(rows, dropped)
        self.next_logits = next_logits

    def _shared_beginning(self, prompts: Sequence[tuple[int, ...]]) -> int:
        """Count the tokens with which several prompts begin alike if encoding them once saves much, else 0."""
        if len(prompts) == 1 or self._switches or not self._arguments.takes_padding:
            return 0
        shared = min(len(commonprefix(prompts)), min(map(len, prompts)) - 1)  # of each, the last token is left
        saves_much = 2 * shared >= max(map(len, prompts))
        return shared if saves_much and isinstance(self._cache, RewindableCache) else 0

    def _encode_after(self, beginning: int, prompts: Sequence[Sequence[int]]) -> None:
        """Encode once the tokens with which the prompts begin alike, then the rest of each."""
        device, rows = self._model.device, len(prompts)
        self._layout = PaddedRows(self._cache, [beginning])
        self._forward(torch.tensor([prompts[0][:beginning]], device=device), keep=1, is_first=True)
        self._layout.select([0] * rows, [0] * rows)
        middles = [list(prompt[beginning:-1]) for prompt in prompts]
        longest = max(map(len, middles))
        padding = [longest - len(middle) for middle in middles]
        if longest:
            ids = [[*middle, *[0] * pads] for middle, pads in zip(middles, padding, strict=True)]
            self._forward(torch.tensor(ids, device=device), keep=1)
            self._layout.select(range(rows), padding)
        self.next_logits = self._forward(torch.tensor([[p[-1]] for p in prompts], device=device), keep=1)[:, -1]

    def _as_tree(self) -> TokenTree:
        if not isinstance(self._layout, TokenTree):
            assert isinstance(self._cache, RewindableCache)
            self._layout = Forest(self._model, self._cache).plant(self.width)
        return self._layout

    def _require_room(self, n: int) -> None:
        """Refuse n more tokens that do not fit the window, or that the model would encode in another way."""
        _require_room(self._window, self.width + n)
        if self._switches:
            longest = max(self._layout.lengths)
            check_one_encoding(self._model, longest, longest + n)

    def _require_rewindable(self) -> None:
        if not isinstance(self._cache, RewindableCache):
            raise UnsupportedModelError(f"{type(self._model).__name__} keeps a state that cannot be rewound")

    def _forward(self, token_ids: Tensor, *, keep: int, is_first: bool = False) -> Tensor:
        """Run the model over tokens (B, n) and return the logits (B, keep, V) of the last ones of each row."""
        placed, mask, positions = self._layout.place(token_ids)
        last = keep * (len(token_ids) // len(placed))
        return self._run(placed, mask, positions, keep=last, is_first=is_first).reshape(len(token_ids), keep, -1)

    def _run(
        self, placed: Tensor, mask: Tensor | None, positions: Tensor, *, keep: int, is_first: bool = False
    ) -> Tensor:
        with torch.inference_mode():
            arguments = self._arguments.of(mask, positions, self._cache, keep, is_first=is_first)
            logits: Tensor = self._model(input_ids=placed, **arguments).logits
            return logits[:, -keep:]


class PaddedRows:
    """B continuations as rows of a batch, padded on the left; begins with an empty cache and the prompts' lengths."""

    def __init__(self, cache: Cache, lengths: Sequence[int]) -> None:
        self.cache = cache
        self.width = 0
        self._hold(lengths, max(lengths))

    def _hold(self, lengths: Sequence[int], width: int) -> None:
        self._starts = [width - length for length in lengths]  # columns of padding before each row
        self._order = list(range(len(lengths)))  # row in each place of the cache
        self._fed = len(lengths)  # places that continue

    @property
    def rows(self) -> int:
        """Number of continuations."""
        return len(self._starts)

    @property
    def fed(self) -> list[int]:
        """The rows that continue, in the order of their places."""
        return self._order[: self._fed]

    @property
    def lengths(self) -> list[int]:
        """Tokens of each row that continues."""
        return [self.width - self._starts[row] for row in self.fed]

    def place(self, token_ids: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """Make room for tokens (B, n) after the rows that are fed.

        Returns the tokens, their mask (B, all columns) or None if nothing is padded, and their positions (1 or B, n).
        """
        before, self.width = self.width, self.width + token_ids.shape[1]
        columns = torch.arange(self.width, device=token_ids.device)
        mask, positions = None, columns[None, before:]
        starts = [self._starts[row] for row in self.fed]
        if any(starts):
            pads = torch.tensor(starts, device=token_ids.device)[:, None]  # (B, 1)
            mask = (columns >= pads).long()
            positions = (positions - pads).clamp_min(0)
        return token_ids, mask, positions

    def stack(self, other: PaddedRows) -> None:
        """Append the rows of another batch to its own; all rows continue."""
        assert isinstance(self.cache, RewindableCache) and isinstance(other.cache, RewindableCache)
        lengths = [*self.lengths, *other.lengths]
        for layer, added in zip(self.cache.layers, other.cache.layers, strict=True):
            layer.stack(added)
        self.width = max(lengths)
        self._hold(lengths, self.width)

    def rewind(self, tokens: int) -> None:
        """Take back the last tokens of every row; all rows continue."""
        if isinstance(self.cache, RewindableCache):
            self.cache.crop(-tokens)
        self.width -= tokens

    def take_back(self, tokens: int) -> None:
        """Take back the last tokens of the rows that are fed, which were fed since :meth:`narrow`."""
        self.rewind(tokens)

    def narrow(self, rows: Sequence[int]) -> None:
        """Continue with only these rows, copying those that change places; all rows if the state cannot be rewound."""
        if not isinstance(self.cache, RewindableCache) or set(rows) == set(self.fed):
            return
        going_on = set(rows)
        left = [place for place in range(len(rows)) if self._order[place] not in going_on]
        come = [place for place in range(len(rows), self._fed) if self._order[place] in going_on]
        swaps = list(zip(left, come, strict=True))
        for one, other in swaps:
            self._order[one], self._order[other] = self._order[other], self._order[one]
        self._fed = len(rows)
        for layer in self.cache.layers:
            layer.narrow(self._fed, swaps)

    def select(self, rows: Sequence[int], dropped: Sequence[int]) -> None:
        """Continue with copies of some rows, each without its last columns."""
        starts = [self._starts[row] for row in rows]
        lengths = [self.width - start - drop for start, drop in zip(starts, dropped, strict=True)]
        if isinstance(self.cache, RewindableCache):
            places = [self._order.index(row) for row in rows]
            for layer in self.cache.layers:
                layer.gather(places, starts, lengths)
            self.width = max(lengths)
        else:
            self.cache.reorder_cache(torch.tensor(list(rows)))
        self._hold(lengths, self.width)


def window_of(model: PreTrainedModel) -> int | None:
    """Look up the model's window in tokens, ``max_position_embeddings``; None if it states no limit."""
    window: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return window


def check_window(model: PreTrainedModel, tokens: int) -> None:
    """Refuse, with a PromptError, more tokens than the model's window has."""
    _require_room(window_of(model), tokens)


def _require_room(window: int | None, tokens: int) -> None:
    if window is not None and tokens > window:
        raise PromptError(
            f"the prompt with its response needs {tokens} tokens, but the model's window is {window}; "
            "pass fewer or shorter passages, or a smaller max_new_tokens"
        )
