"""Which labelled responses count, and which of their spans: by task, split, remark and generator."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from syncheck.errors import InputError
from syncheck.labelling.labels import UnfaithfulSpan
from syncheck.labelling.responses import LabelledResponse

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

    def check_names(self, found: Iterable[Mapping[str, Any]], *, source: object) -> None:
        """Refuse names that no response has, and names that none has together.

        Parameters
        ----------
        found
            Of each response, what :meth:`wants` takes of it.
        source
            Where they are from, for the message.

        Raises
        ------
        InputError
            If a task, split or generator that is asked for is not there, or no response is left.
        """
        responses = list(found)
        there = {name: {response[of] for response in responses} for name, of in _FIELDS.items()}
        asked = {name: _names(getattr(self, name)) for name in _FIELDS}
        unknown = {
            name: [value for value in values if value not in there[name]]
            for name, values in asked.items()
            if name != "quality"  # remarks are rare, and to allow one asks for none
        }
        if not any(unknown.values()) and any(self.wants(**response) for response in responses):
            return
        missing = unknown if any(unknown.values()) else asked
        wanted = "; ".join(f"{name} {_listed(values)}" for name, values in missing.items() if values)
        raise InputError(
            f"{source} has no response of {wanted}. It has "
            f"{'; '.join(f'{name} {_listed(values)}' for name, values in there.items())}"
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
            If none is left, or a name that is asked for is not there.
        """
        return [self.counted(responses[index]) for index in self.kept(responses, source)]

    def kept(self, responses: Sequence[LabelledResponse], source: object) -> list[int]:
        """Return the indices of the responses that are taken."""
        found = [{of: getattr(response, of) for of in _FIELDS.values()} for response in responses]
        self.check_names(found, source=source)
        return [index for index, response in enumerate(found) if self.wants(**response)]

    def counted(self, response: LabelledResponse) -> LabelledResponse:
        """Return a response with the spans that count."""
        if response.spans is None:
            return response
        return replace(response, spans=tuple(filter(self.counts, response.spans)))


def _names(asked: str | Collection[str] | None) -> list[str]:
    return [asked] if isinstance(asked, str) else list(asked or ())


def _listed(values: Collection[str | None]) -> str:
    return ", ".join(sorted("none" if value is None else repr(value) for value in values)) or "none"
