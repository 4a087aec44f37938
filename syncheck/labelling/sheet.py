"""Label sheets: sentences for people to label, the most informative first, in a file that is complete at any time."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from syncheck.base.errors import InputError, PromptError
from syncheck.base.files import replaced
from syncheck.base.printable import progress
from syncheck.labelling.datasets import labelled_record
from syncheck.labelling.responses import Label, LabelledResponse, LabelledSentence, prompt_of, query_of
from syncheck.replay import read_response, replay
from syncheck.results.types import Evidence, SentenceScore
from syncheck.text.sentences import is_checkable
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    from syncheck.monitor_base import MonitorParts

LabelOrder = Literal["nearest", "random"]
"""``nearest``: sentences in order of the distance of their scores from the monitor's threshold, to gain the most from
few labels. ``random``: whole answers in random order, as a threshold with a guarantee needs them."""


@dataclass(frozen=True, slots=True)
class OpenSentence:
    """A sentence to label: indices of its response and of itself, and the evidence that the monitor's aligner found."""

    response: int
    sentence: int
    evidence: Evidence | None


class LabelSheet:
    """Answers whose sentences are being labelled."""

    def __init__(self, responses: Sequence[LabelledResponse], open: Sequence[OpenSentence], order: LabelOrder) -> None:
        self.responses = list(responses)
        """The responses with the labels so far; None for a sentence without a label."""
        self.open = list(open)
        """Sentences without a label, in the order to ask for them."""
        self.left_out: dict[str, str] = {}
        """Reasons why responses cannot be scored, by id."""
        self._order = order

    @classmethod
    def of_responses(
        cls,
        monitor: MonitorParts | Verifier,
        responses: Sequence[LabelledResponse],
        *,
        order: LabelOrder = "nearest",
        kept: Sequence[LabelledResponse] = (),
        most: int | None = None,
        seed: int = 0,
    ) -> LabelSheet:
        """Score responses, from :func:`~syncheck.labelling.load_unlabelled`, and order their sentences.

        ``nearest`` refers to the monitor's lower threshold. The responses in ``kept`` have earlier labels. ``most``
        responses are drawn at random, including those with labels; None takes all. A response that was labelled earlier
        with another text, passages or segmentation, and a sheet without sentences, raise InputError.
        """
        known = {response.id: response for response in kept}
        rng = random.Random(seed)
        drawn = [response for response in responses if response.id not in known]
        again = [response for response in responses if response.id in known]
        rng.shuffle(drawn)
        if most is not None:
            drawn = drawn[: max(most - len(again), 0)]
        answered: list[LabelledResponse] = []
        scored: list[Sequence[SentenceScore]] = []
        left_out: dict[str, str] = {}
        for response, sentences in _scored(monitor, [*again, *drawn], left_out):
            answered.append(_with_labels(response, sentences, known.pop(response.id, None)))
            scored.append(sentences)
        answered += known.values()
        sheet = cls(answered, _ordered(answered, scored, order, monitor.config.backtrack_threshold), order)
        sheet.left_out = left_out
        if not sheet.open and not kept:
            raise InputError(f"found no sentence that could be labelled; left out: {left_out}")
        return sheet

    def text(self, place: OpenSentence) -> tuple[str, str, str]:
        """Split the response into what comes before a sentence, the sentence, and what comes after it."""
        response = self.responses[place.response]
        sentence = self._sentences(place)[place.sentence]
        whole = response.response
        return whole[: sentence.start], whole[sentence.start : sentence.end], whole[sentence.end :]

    def label(self, place: OpenSentence, label: Label) -> None:
        """Set the label of a sentence: faithful or not, or :data:`NO_CLAIM`; None removes it."""
        sentences = list(self._sentences(place))
        sentences[place.sentence] = sentences[place.sentence].labelled(label)
        self.responses[place.response] = replace(self.responses[place.response], sentences=tuple(sentences))

    def records(self) -> list[dict[str, Any]]:
        """List the records in the documented format: all, or in random order only those with a label."""
        kept = [r for r in self.responses if self._order == "nearest" or any(_labels(r))]
        return [labelled_record(response) for response in kept]

    def whole_records(self) -> list[dict[str, Any]]:
        """List the records of all responses, with and without labels."""
        return [labelled_record(response) for response in self.responses]

    def labelled(self) -> int:
        """Count the sentences with a label."""
        return sum(sum(_labels(response)) for response in self.responses)

    def save(self, path: str | Path) -> None:
        """Write the records; at any time the file is complete, the old one or the new one."""
        with replaced(Path(path)) as (file, _):
            for record in self.records():
                file.write(f"{json.dumps(record, ensure_ascii=False)}\n".encode())

    def _sentences(self, place: OpenSentence) -> Sequence[LabelledSentence]:
        return self.responses[place.response].sentences or ()


def _labels(response: LabelledResponse) -> list[bool]:
    return [sentence.label is not None for sentence in response.sentences or ()]


def _scored(
    monitor: MonitorParts | Verifier, responses: Sequence[LabelledResponse], left_out: dict[str, str]
) -> Iterator[tuple[LabelledResponse, Sequence[SentenceScore]]]:
    """Cut and score the responses; those that do not fit the model's window are left out."""
    for response in progress(responses, desc="responses", unit=" responses"):
        try:
            if isinstance(monitor, Verifier):
                sentences = monitor.answer(query_of(response), response.response).sentences
            else:
                prompt = prompt_of(monitor, response)
                (answer,) = replay(monitor, [prompt], [read_response(monitor, prompt, response.response)])
                sentences = tuple(answer.sentences)
        except PromptError as error:
            left_out[response.id] = str(error)
        else:
            yield response, sentences


def _with_labels(
    response: LabelledResponse, scored: Sequence[SentenceScore], before: LabelledResponse | None
) -> LabelledResponse:
    bounds = [(s.start, s.end) for s in scored]
    if bounds and is_checkable(response.response[bounds[-1][1] :]):  # text behind an end-of-text token is not read
        response = replace(response, response=response.response[: bounds[-1][1]])
    known = {} if before is None else {(s.start, s.end): s for s in before.sentences or ()}
    if before is not None and (
        (before.response, before.passages) != (response.response, response.passages) or not set(known) <= set(bounds)
    ):
        raise InputError(
            f"response {response.id!r} was labelled before with another text, passages or sentences; pass the same "
            "input and options, or another output"
        )
    sentences = tuple(known.get(place, LabelledSentence(*place, None)) for place in bounds)
    return replace(response, sentences=sentences)


def _ordered(
    responses: Sequence[LabelledResponse], scored: Sequence[Sequence[SentenceScore]], order: LabelOrder, near: float
) -> list[OpenSentence]:
    places = []
    for index, (response, scores) in enumerate(zip(responses, scored, strict=False)):
        for number, (sentence, score) in enumerate(zip(response.sentences or (), scores, strict=True)):
            asked = score.score is not None if order == "nearest" else is_checkable(score.text) and response.has_context
            if asked and sentence.label is None:
                distance = 0.0 if score.score is None else abs(score.score - near)
                places.append((distance, OpenSentence(index, number, score.evidence)))
    if order == "nearest":
        places.sort(key=lambda pair: pair[0])
    return [place for _, place in places]
