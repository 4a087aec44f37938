"""One conditional distribution that is fed tokens: the model with the context, or the model without it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from syncheck.errors import NotReadyError, PromptError, UnsupportedModelError
from syncheck.signals.cache import RewindableCache, new_cache
from syncheck.signals.forward import ForwardArguments

__all__ = ["Branch", "check_window", "window_of"]


class Branch:
    """B continuations, each with its own cache row; never encodes a token twice.

    Rows may differ in length: shorter ones are padded on the left and masked. Rows that need no more tokens can be
    left out of the batch, :meth:`narrow`, until the next :meth:`select`.

    Parameters
    ----------
    model
        A causal language model in evaluation mode.
    prompts
        Token ids of each row's prompt, fed at once; the same prompt of several rows is encoded once.

    Attributes
    ----------
    next_logits : Tensor of shape (B, V)
        Raw logits, in the model's dtype, of the token that comes next; of the rows :attr:`fed`.

    Raises
    ------
    PromptError
        If a prompt does not fit the model's window.
    UnsupportedModelError
        If the model takes no cache.
    """

    def __init__(self, model: PreTrainedModel, prompts: Sequence[Sequence[int]]) -> None:
        unique = list(dict.fromkeys(map(tuple, prompts)))
        lengths = list(map(len, unique))
        width = max(lengths)
        self._window = window_of(model)
        _require_room(self._window, width)
        self._model = model
        self._arguments = ForwardArguments(model)
        self._cache = new_cache(model)
        self._width = width
        self._starts = [width - length for length in lengths]  # columns of padding before each row
        self._order = list(range(len(lengths)))  # row in each place of the cache
        self._fed = len(lengths)  # places that go on
        ids = torch.tensor([[*[prompt[0]] * (width - len(prompt)), *prompt] for prompt in unique], device=model.device)
        self.next_logits = self._forward(ids, before=0, keep=1)[:, -1]
        if len(unique) < len(prompts):
            rows = [unique.index(tuple(prompt)) for prompt in prompts]
            self.select(rows, [0] * len(rows), self.next_logits[rows])

    @property
    def rows(self) -> int:
        """Number of continuations."""
        return len(self._starts)

    @property
    def fed(self) -> list[int]:
        """The rows that :meth:`feed` takes tokens for, in its order: all, until :meth:`narrow`."""
        return self._order[: self._fed]

    @property
    def width(self) -> int:
        """Columns in the cache: tokens of the longest row."""
        return self._width

    def feed(self, token_ids: Tensor) -> Tensor:
        """Append tokens to every row that is fed and return their logits.

        Parameters
        ----------
        token_ids
            (B, n) int64. The model runs once over all of them, or once over each where its state is recurrent:
            a run of tokens on top of such a state is not what it is one by one.

        Returns
        -------
        Tensor of shape (B, n, V)
            Row j holds the logits that follow token j; the last one is also ``next_logits``.
        """
        n = token_ids.shape[1]
        _require_room(self._window, self._width + n)
        at_once = n if isinstance(self._cache, RewindableCache) else 1
        parts = []
        for chunk in torch.split(token_ids, at_once, dim=1):
            before, self._width = self._width, self._width + chunk.shape[1]
            parts.append(self._forward(chunk, before=before, keep=chunk.shape[1]))
        logits = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        self.next_logits = logits[:, -1]
        return logits

    def rewind(self, tokens: int, next_logits: Tensor) -> None:
        """Take the last ``tokens`` tokens of every row back; ``next_logits`` (B, V) are those saved there."""
        lengths = [self._width - start for start in self._starts]
        if tokens > min(lengths):
            raise NotReadyError(f"cannot take back {tokens} tokens of rows that hold {lengths}")
        if self._fed < self.rows:
            raise NotReadyError("some rows are left out of the batch and hold fewer tokens; call select()")
        if tokens:
            self._rewindable().rewind(tokens)
        self._width -= tokens
        self.next_logits = next_logits

    def narrow(self, rows: Sequence[int]) -> None:
        """Go on with these rows only, of those that are fed; the others wait for :meth:`select`.

        Nothing is copied but the rows that change places. Where the state cannot be rewound all rows go on.
        """
        if not isinstance(self._cache, RewindableCache) or set(rows) == set(self.fed):
            return
        going_on = set(rows)
        left = [place for place in range(len(rows)) if self._order[place] not in going_on]
        come = [place for place in range(len(rows), self._fed) if self._order[place] in going_on]
        swaps = list(zip(left, come, strict=True))
        for one, other in swaps:
            self._order[one], self._order[other] = self._order[other], self._order[one]
        self._fed = len(rows)
        self._cache.narrow(self._fed, swaps)

    def select(self, rows: Sequence[int], dropped: Sequence[int], next_logits: Tensor) -> None:
        """Continue with copies of some rows, each without its last tokens.

        Parameters
        ----------
        rows
            Row to copy for each new row; a row may come several times or not at all.
        dropped
            Columns to take back of each new row; of a row that was left out at least those it has not been fed.
        next_logits
            (len(rows), V), the logits saved where each new row now ends.
        """
        starts = [self._starts[row] for row in rows]
        lengths = [self._width - start - drop for start, drop in zip(starts, dropped, strict=True)]
        if any(dropped) or isinstance(self._cache, RewindableCache):
            self._rewindable().gather([self._order.index(row) for row in rows], starts, lengths)
            self._width = max(lengths)
        else:
            self._cache.reorder_cache(torch.tensor(list(rows), device=next_logits.device))
        self._starts = [self._width - length for length in lengths]
        self._order = list(range(len(lengths)))
        self._fed = len(lengths)
        self.next_logits = next_logits

    def _rewindable(self) -> RewindableCache:
        if not isinstance(self._cache, RewindableCache):
            raise UnsupportedModelError(f"{type(self._model).__name__} keeps a state that cannot be rewound")
        return self._cache

    def _forward(self, token_ids: Tensor, *, before: int, keep: int) -> Tensor:
        """Run the model over the last columns, of which there are ``before`` more in the cache."""
        columns = torch.arange(before + token_ids.shape[1], device=token_ids.device)
        mask, positions = None, columns[None, before:]  # (1, n)
        starts = [self._starts[row] for row in self.fed]
        if any(starts):
            pads = torch.tensor(starts, device=token_ids.device)[:, None]  # (B, 1)
            mask = (columns >= pads).long()  # (B, before + n)
            positions = (positions - pads).clamp_min(0)  # (B, n)
        with torch.inference_mode():
            arguments = self._arguments.of(mask, positions, self._cache, keep, is_first=before == 0)
            logits = self._model(input_ids=token_ids, **arguments).logits
        last: Tensor = logits[:, -keep:]
        return last


def window_of(model: PreTrainedModel) -> int | None:
    """Tokens that the model's positions reach; None when it states no limit."""
    window: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return window


def check_window(model: PreTrainedModel, tokens: int) -> None:
    """Refuse to go past the model's window.

    Raises
    ------
    PromptError
        If ``tokens`` exceeds ``max_position_embeddings``.
    """
    window = window_of(model)
    _require_room(window, tokens)


def _require_room(window: int | None, tokens: int) -> None:
    if window is not None and tokens > window:
        raise PromptError(
            f"the prompt with its response needs {tokens} tokens, but the model's window is {window}; "
            "pass fewer or shorter passages, or a smaller max_new_tokens"
        )
