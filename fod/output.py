"""What the generators return: ids as ``model.generate`` has them, with the scored answer beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers.utils import ModelOutput

from fod.thresholds import Thresholds
from syncheck import Report, SentenceScore

__all__ = ["GeneratorOutput", "padded"]


@dataclass
class GeneratorOutput(ModelOutput):  # type: ignore[misc]
    """What ``generate(return_dict_in_generate=True)`` returns.

    Attributes
    ----------
    sequences : Tensor of shape (1, prompt + response), int64
    report : Report
        What the model wrote, with its scores; ``report.stop`` says why it ended.
    sampled_tokens : int
        Tokens decoded, thrown away or not.
    dropped : tuple of SentenceScore
        Sentences that were written and taken back, where they began.
    message : str or None
        Text behind the report's in ``sequences`` that the model has not written.
    thresholds : Thresholds or None
        The scores that the report's sentences reach; None of a decoder without any.
    """

    # ModelOutput allows one field without a default; all but the last two are always set.
    sequences: Tensor
    report: Report = field(default=None)  # type: ignore[assignment]
    sampled_tokens: int = field(default=None)  # type: ignore[assignment]
    dropped: tuple[SentenceScore, ...] = field(default=None)  # type: ignore[arg-type]
    message: str | None = None
    thresholds: Thresholds | None = None

    @property
    def response_ids(self) -> list[int]:
        """The ids behind the prompt's."""
        ids: list[int] = self.sequences[0, len(self.report.prompt.with_context_ids) :].tolist()
        return ids


def padded(outputs: Sequence[GeneratorOutput], *, pad_token: int, prompts: Tensor | None = None) -> Tensor:
    """Return the ids of several answers as ``generate`` does of a batch.

    Parameters
    ----------
    outputs
        One for each row.
    pad_token
        Fills short prompts on the left and short responses on the right.
    prompts
        (B, W) the prompts as they were given; None pads them.

    Returns
    -------
    Tensor of shape (B, W + response), int64
    """
    device = outputs[0].sequences.device
    if prompts is None:
        known = [out.report.prompt.with_context_ids for out in outputs]
        width = max(map(len, known))
        prompts = torch.tensor([[*[pad_token] * (width - len(ids)), *ids] for ids in known], device=device)
    responses = [out.response_ids for out in outputs]
    longest = max(map(len, responses))
    filled = [[*ids, *[pad_token] * (longest - len(ids))] for ids in responses]
    return torch.cat([prompts, torch.tensor(filled, dtype=torch.long, device=prompts.device)], dim=1)
