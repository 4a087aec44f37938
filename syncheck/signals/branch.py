"""One conditional distribution that is fed tokens: the model with the context, or the model without it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from syncheck.errors import NotReadyError, PromptError
from syncheck.signals.cache import RewindableCache

__all__ = ["Branch", "check_window"]


class Branch:
    """B continuations of one prompt, each with its own cache row; never encodes a token twice.

    Rows may differ in length: shorter ones are padded on the left and masked.

    Parameters
    ----------
    model
        A causal language model in evaluation mode.
    prompt_ids
        Token ids of the prompt, fed at once.

    Attributes
    ----------
    next_logits : Tensor of shape (B, V)
        Raw logits, in the model's dtype, of the token that comes next.
    """

    def __init__(self, model: PreTrainedModel, prompt_ids: Sequence[int]) -> None:
        check_window(model, len(prompt_ids))
        self._model = model
        self._cache = RewindableCache(model)
        self._lengths = [0]
        ids = torch.tensor([list(prompt_ids)], device=model.device)
        self.next_logits = self._forward(ids, keep=1)[:, -1]

    @property
    def rows(self) -> int:
        """Number of continuations."""
        return len(self._lengths)

    @property
    def width(self) -> int:
        """Columns in the cache: tokens of the longest row."""
        return max(self._lengths)

    def feed(self, token_ids: Tensor) -> Tensor:
        """Append tokens to every row and return their logits.

        Parameters
        ----------
        token_ids
            (B, n) int64. The model runs once over all of them.

        Returns
        -------
        Tensor of shape (B, n, V)
            Row j holds the logits that follow token j; the last one is also ``next_logits``.
        """
        check_window(self._model, self.width + token_ids.shape[1])
        logits = self._forward(token_ids, keep=token_ids.shape[1])
        self.next_logits = logits[:, -1]
        return logits

    def teacher_forced(self, token_ids: Tensor) -> Tensor:
        """Append given tokens; return (B, n + 1, V): the logits that predicted each, then those that come next."""
        before = self.next_logits[:, None]
        return torch.cat([before, self.feed(token_ids)], dim=1)

    def rewind(self, tokens: int, next_logits: Tensor) -> None:
        """Take the last ``tokens`` tokens of every row back; ``next_logits`` (B, V) are those saved there."""
        if tokens > min(self._lengths):
            raise NotReadyError(f"cannot take back {tokens} tokens of rows that hold {self._lengths}")
        self._cache.rewind(tokens)
        self._lengths = [length - tokens for length in self._lengths]
        self.next_logits = next_logits

    def select(self, rows: Sequence[int], dropped: Sequence[int], next_logits: Tensor) -> None:
        """Continue with copies of some rows, each without its last tokens.

        Parameters
        ----------
        rows
            Row to copy for each new row; a row may come several times or not at all.
        dropped
            Tokens to take back of each new row.
        next_logits
            (len(rows), V), the logits saved where each new row now ends.
        """
        width = self.width
        starts = [width - self._lengths[row] for row in rows]
        lengths = [self._lengths[row] - drop for row, drop in zip(rows, dropped, strict=True)]
        self._cache.gather(rows, starts, lengths)
        self._lengths = lengths
        self.next_logits = next_logits

    def _forward(self, token_ids: Tensor, *, keep: int) -> Tensor:
        n = token_ids.shape[1]
        width = self.width
        lengths = torch.tensor(self._lengths, device=token_ids.device)
        positions = lengths[:, None] + torch.arange(n, device=token_ids.device)  # (B, n)
        mask = None
        if min(self._lengths) < width:
            columns = torch.arange(width + n, device=token_ids.device)
            mask = (columns >= (width - lengths)[:, None]).long()  # (B, width + n)
        with torch.inference_mode():
            output = self._model(
                input_ids=token_ids,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=keep,
            )
        self._lengths = [length + n for length in self._lengths]
        logits: Tensor = output.logits
        return logits


def check_window(model: PreTrainedModel, tokens: int) -> None:
    """Refuse to go past the model's window.

    Raises
    ------
    PromptError
        If ``tokens`` exceeds ``max_position_embeddings``.
    """
    window = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if window is not None and tokens > window:
        raise PromptError(
            f"the prompt with its response needs {tokens} tokens, but the model's window is {window}; "
            "pass fewer or shorter passages, or a smaller max_new_tokens"
        )
