"""Which labelled responses count, and which of their spans: by task, split, remark and generator."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from syncheck.errors import InputError
from syncheck.training.labels import UnfaithfulSpan
from syncheck.training.measured import MeasuredSentences
from syncheck.training.responses import LabelledResponse

__all__ = ["Selection"]

_FIELDS = {"tasks": "task", "split": "split", "quality": "quality", "generators": "generator"}
"""What is asked for, and the field of a response that answers."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What is taken of labelled responses, of any file.

    Attributes
    ----------
    tasks : collection of str or None
        Only these; None takes all.
    split : str or None
        Only this part of the corpus, ``train`` say.
    quality : collection of str or None
        Only responses with one of these remarks; None takes all, also those without a remark.
    generators : collection of str or None
        Only responses by these models.
    implicit_true : bool
        Whether spans that are true of the world, though not said by the context, count.
    due_to_null : bool
        Whether spans count that come from a null in a business record.
    """

    tasks: Collection[str] | None = None
    split: str | None = None
    quality: Collection[str] | None = None
    generators: Collection[str] | None = None
    implicit_true: bool = True
    due_to_null: bool = True

    def wants(self, *, task: str | None, split: str | None, quality: str | None, generator: str) -> bool:
        """Whether a response of these is taken; what is asked for and unknown, None, is not."""
        return (
            (self.tasks is None or task in self.tasks)
            and (self.split is None or split == self.split)
            and (self.quality is None or quality in self.quality)
            and (self.generators is None or generator in self.generators)
        )

    def counts(self, span: UnfaithfulSpan) -> bool:
        """Whether a span makes a sentence unfaithful."""
        return (self.implicit_true or not span.implicit_true) and (self.due_to_null or not span.due_to_null)

    def of_responses(self, responses: Sequence[LabelledResponse], *, source: object) -> list[LabelledResponse]:
        """Return the responses that are taken, with the spans that count.

        Parameters
        ----------
        responses
        source
            Where they are from, for the message.

        Raises
        ------
        InputError
            If none is left.
        """
        return [self._counted(responses[index]) for index in self._kept(responses, source)]

    def of_sentences(self, measured: MeasuredSentences, *, source: object) -> MeasuredSentences:
        """Return the sentences of the responses that are taken, labelled by the spans that count.

        ``left_out`` stays that of the whole file, which does not say of what task or split those are.

        Raises
        ------
        InputError
            If none is left.
        """
        kept = self._kept(measured.records, source)
        chosen = np.flatnonzero(np.isin(measured.owners, kept))
        return replace(
            measured,
            values=measured.values[chosen],
            activations={layer: states[chosen] for layer, states in measured.activations.items()},
            bounds=measured.bounds[chosen],
            texts=tuple(measured.texts[index] for index in chosen),
            owners=np.searchsorted(kept, measured.owners[chosen]),
            records=tuple(self._counted(measured.records[index]) for index in kept),
        )

    def _kept(self, responses: Sequence[LabelledResponse], source: object) -> list[int]:
        kept = [
            index
            for index, r in enumerate(responses)
            if self.wants(task=r.task, split=r.split, quality=r.quality, generator=r.generator)
        ]
        if not kept:
            asked = {name: getattr(self, name) for name in _FIELDS}
            wanted = [
                f"{name} {_listed([v] if isinstance(v, str) else v)}" for name, v in asked.items() if v is not None
            ]
            there = [f"{name} {_listed({getattr(r, of) for r in responses})}" for name, of in _FIELDS.items()]
            raise InputError(f"{source} has no response of {'; '.join(wanted)}. It has {'; '.join(there)}")
        return kept

    def _counted(self, response: LabelledResponse) -> LabelledResponse:
        if response.spans is None:
            return response
        return replace(response, spans=tuple(filter(self.counts, response.spans)))


def _listed(values: Collection[str | None]) -> str:
    return ", ".join(sorted("none" if value is None else repr(value) for value in values)) or "none"
