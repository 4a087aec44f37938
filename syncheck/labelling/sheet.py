"""Label sheets: sentences for people to label, and two readers' labels."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

from syncheck.base.errors import InputError, PromptError
from syncheck.base.printable import progress
from syncheck.labelling.datasets import labelled_record
from syncheck.labelling.responses import (
    NO_CLAIM,
    Label,
    LabelledResponse,
    LabelledSentence,
    prompt_of,
    query_of,
)
from syncheck.results.types import Evidence, SentenceScore
from syncheck.text.sentences import is_checkable
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    from syncheck.model_monitor import ModelMonitor

LabelOrder = Literal["nearest", "random"]
"""``nearest``: sentences in order of the distance of their scores from the monitor's threshold, to gain the most from
few labels. ``random``: whole answers in random order, as a threshold with a guarantee needs them."""


@dataclass(frozen=True, slots=True)
class OpenSentence:
    """A sentence to label: indices of its response and of itself, and the evidence that the monitor's aligner found."""

    response: int
    sentence: int
    evidence: Evidence | None


@dataclass(frozen=True, slots=True)
class LabelSheet:
    """Answers whose sentences are to be labelled."""

    responses: Sequence[LabelledResponse]
    """The responses with earlier labels; None for a sentence without a label."""
    open: Sequence[OpenSentence]
    """Sentences without a label, in the order to ask for them."""
    left_out: Mapping[str, str]
    """Reasons why responses cannot be scored, by id."""

    @classmethod
    def of_responses(
        cls,
        monitor: ModelMonitor | Verifier,
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
        answered, scored, left_out = list[LabelledResponse](), list[Sequence[SentenceScore]](), dict[str, str]()
        for response, sentences in _scored(monitor, [*again, *drawn], left_out):
            answered.append(_with_labels(response, sentences, known.pop(response.id, None)))
            scored.append(sentences)
        answered += known.values()
        asked = _ordered(answered, scored, order, monitor.config.backtrack_threshold)
        if not asked and not kept:
            raise InputError(f"found no sentence that could be labelled; left out: {left_out}")
        return cls(answered, asked, left_out)

    def text(self, place: OpenSentence) -> tuple[str, str, str]:
        """Split the response into what comes before a sentence, the sentence, and what comes after it."""
        response = self.responses[place.response]
        sentence, whole = (response.sentences or ())[place.sentence], response.response
        return whole[: sentence.start], whole[sentence.start : sentence.end], whole[sentence.end :]

    def records(self) -> list[dict[str, Any]]:
        """List the records of all responses in the documented format, with and without labels."""
        return [labelled_record(response) for response in self.responses]


def _scored(
    monitor: ModelMonitor | Verifier, responses: Sequence[LabelledResponse], left_out: dict[str, str]
) -> Iterator[tuple[LabelledResponse, Sequence[SentenceScore]]]:
    """Cut and score the responses; those that do not fit the model's window are left out."""
    for response in progress(responses, desc="responses", unit=" responses"):
        try:
            if isinstance(monitor, Verifier):
                sentences = monitor.answer(query_of(response), response.response).sentences
            else:
                prompt = prompt_of(monitor, response)
                sentences = monitor.score(prompt, response.response, signals=True).sentences
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
            "input and options, or no earlier labels"
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
                distance = abs(score.score - near) if order == "nearest" and score.score is not None else 0.0
                places.append((distance, OpenSentence(index, number, score.evidence)))
    return [place for _, place in sorted(places, key=itemgetter(0))]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two readers agree on one label or, named ``all``, on the labels of the sentences that both labelled."""

    name: str
    first: int
    """Number of sentences with this label by the first reader."""
    second: int
    both: int
    share: float | None
    """Share of the sentences with this label by one reader to which the other gave it too, in [0, 1], as the mean over
    both readers' sentences; None without any."""
    kappa: float | None
    """Cohen's kappa, in [-1, 1], of this label against the others; None if it is the label of all sentences or none."""


_NAMES: dict[Label, str] = {True: "faithful", False: "unfaithful", NO_CLAIM: NO_CLAIM}


def second_reading(
    first: Sequence[LabelledResponse], second: Sequence[LabelledResponse]
) -> tuple[list[LabelledResponse], tuple[Agreement, ...]]:
    """Join the labels that two readers gave the same sentences, and say how far they agree.

    A label that both gave stays, with the words that either marked. Where they differ, the sentence has no label, but
    both :attr:`~syncheck.labelling.LabelledSentence.readings`. A sentence that only one of them labelled has no label,
    and responses that only one of them has are left out. No sentence with two labels, and a response that was labelled
    with different texts, passages or sentences, raise InputError.
    """
    others, joined = {response.id: response for response in second}, []
    read: list[tuple[str, str]] = []
    for response in first:
        if (other := others.get(response.id)) is None:
            continue
        one, two = ((r.response, r.passages, [(s.start, s.end) for s in r.sentences or ()]) for r in (response, other))
        if one != two:
            raise InputError(
                f"expected two readers' labels of the same sentences, found response {response.id!r} with other text, "
                "passages or sentences; let both label the same input with the same options"
            )
        pairs = list(zip(response.sentences or (), other.sentences or (), strict=True))
        read += [(_NAMES[a.label], _NAMES[b.label]) for a, b in pairs if None not in (a.label, b.label)]
        joined.append(replace(response, sentences=tuple(_read_twice(a, b) for a, b in pairs)))
    if not read:
        raise InputError(
            "found no sentence that both readers labelled; let both label the same input, and keep its ids"
        )
    rows = [_agreement(name, [[one == name for one in pair] for pair in read]) for name in _NAMES.values()]
    return joined, (*rows, _agreement("all", read))


def _read_twice(first: LabelledSentence, second: LabelledSentence) -> LabelledSentence:
    if None in (first.label, second.label):
        return first.labelled(None)
    marked = tuple(dict.fromkeys((*first.spans, *second.spans)))
    if first.label == second.label:
        return first.labelled(first.label, marked)
    return replace(first.labelled(None), spans=marked, readings=(first.label, second.label))


def _agreement(name: str, read: Sequence[Sequence[str | bool]]) -> Agreement:
    """Compare pairs of labels, by name, or pairs of whether they have one name."""
    from sklearn.metrics import cohen_kappa_score

    first, second = zip(*read, strict=True)
    of_first, of_second = sum(map(bool, first)), sum(map(bool, second))
    both = sum(bool(a) and a == b for a, b in read)
    share = 2 * both / (of_first + of_second) if of_first + of_second else None
    kappa = float(cohen_kappa_score(first, second)) if len({*first, *second}) > 1 else None
    return Agreement(name, of_first, of_second, both, share, kappa)
