"""FLARE: retrieves again before a sentence that the model is unsure of."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from fod.config import check_count, check_share
from fod.draft import Draft, continued
from fod.drop_in import AnswerGenerator, GeneratorOutput, event_of, ids_of, plan_within
from syncheck import Event, Monitor, RagPrompt, SentenceScore
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.decoding import (
    GenerationSetup,
    ScoredAnswer,
    ScoredSession,
    Transcript,
    check_reach,
    seeded_generator,
)
from syncheck.results.types import SentenceSignals

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class PassageIndex:
    """Finds passages by shared words (TF-IDF); a retriever for :class:`fod.FLAREGenerator`.

    Parameters
    ----------
    count
        Largest number of passages that are returned.

    Raises
    ------
    InputError
        If there is no passage with a word in it, or ``count`` is below 1.
    """

    def __init__(self, passages: Sequence[str], *, count: int = 3) -> None:
        check_count(count, "count")
        self._passages = list(passages)
        self._count = count
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._vectorizer = TfidfVectorizer(sublinear_tf=True)
        try:
            self._matrix = self._vectorizer.fit_transform(self._passages)
        except ValueError as error:  # an empty vocabulary
            raise InputError(f"expected passages with words in them; found {len(self._passages)}: {error}") from error

    def __call__(self, query: FLAREQuery) -> list[str]:
        """Find the passages that best match question and query, best first; those that share no word are left out."""
        wanted = self._vectorizer.transform([f"{query.question} {query.text}"])
        similarity = np.asarray((self._matrix @ wanted.T).todense())[:, 0]
        best = np.argsort(-similarity, kind="stable")[: self._count]
        return [self._passages[i] for i in best if similarity[i] > 0]


@dataclass(frozen=True, slots=True)
class FLAREQuery:
    """Request to a retriever."""

    question: str
    written: str
    """The answer before the sentence."""
    sentence: SentenceScore
    """The sentence that is taken back."""
    tokens: tuple[tuple[str, float], ...]
    """Texts of its tokens with their probabilities."""
    text: str
    """The sentence without the tokens whose probability is below the threshold: the part that the model is sure of."""


Retriever = Callable[[FLAREQuery], Sequence[str]]
"""Function that returns passages, best first; the sentence is kept if there are none."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """One retrieval: the query and the passages that were found."""

    query: FLAREQuery
    passages: tuple[str, ...]


@dataclass(repr=False)
class FLAREOutput(GeneratorOutput):
    """The result of ``generate(return_dict_in_generate=True)``; see :class:`fod.GeneratorOutput`.

    The report's passages are those of the prompt and of all retrievals, each once.

    Attributes
    ----------
    retrievals : tuple of Retrieval
        In order.
    """

    retrievals: tuple[Retrieval, ...] = field(default=None)  # type: ignore[arg-type]


class FLAREGenerator(AnswerGenerator[FLAREOutput]):
    """Retrieves again whenever a sentence has a token with a probability below the threshold (Jiang et al., 2023).

    The sentence is removed, the passages that are found replace those of the prompt, and the sentence is written again
    after the text so far; the new one stays as it is. The monitor scores the sentences and changes nothing.

    Parameters
    ----------
    model, tokenizer, monitor
        The monitor that scores the sentences, with its model and tokenizer.
    retriever
        Function that takes a :class:`fod.FLAREQuery` and returns passages, best first; for a list of passages,
        :class:`fod.PassageIndex`.
    threshold
        Smallest probability, in [0, 1], that a sentence's tokens may have; it depends on the model, so there is
        no default.
    build_prompt
        Function of question and passages that builds the prompt with the new passages. None builds it as
        ``monitor.prompt`` built the first one, with its system prompt, and refuses a prompt that was made in another
        way, for example by ``prompt_from_texts``.

    Raises
    ------
    InputError
        If a parameter is outside its range, or model and monitor do not belong together. In ``generate`` also, before
        decoding begins, if the prompt does not come from ``monitor.prompt`` and there is no ``build_prompt``.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        monitor: Monitor,
        *,
        retriever: Retriever,
        threshold: float,
        max_retrievals: int = 8,
        build_prompt: PromptBuilder | None = None,
    ) -> None:
        super().__init__(model, tokenizer, monitor)
        if not callable(retriever):
            raise WrongTypeError(
                f"retriever must be a function of a FLAREQuery that returns passages; found {type(retriever).__name__}"
            )
        check_share(threshold, "threshold")
        check_count(max_retrievals, "max_retrievals")
        self.retriever = retriever
        self.threshold = threshold
        self.max_retrievals = max_retrievals
        self.build_prompt = build_prompt

    def _told(self, prompt: RagPrompt, plan: GenerationSetup, seed: int) -> Generator[Event, None, FLAREOutput]:
        started = time.perf_counter()
        build = self.build_prompt or builder_of(self.monitor, prompt)
        generator = seeded_generator(self.monitor.model, seed)
        room = plan.config.max_length - len(prompt.with_context_ids)
        answer = _Answer(Draft(prompt))
        current = prompt
        while True:
            part = continued(current, answer.draft.token_ids, answer.draft.text)
            limited = plan_within(plan, len(current.with_context_ids) + room)
            check_reach(self.monitor.model, [current], limited.config.max_length)
            with self.monitor.session(part) as watched:
                retrieval = yield from self._part(watched, limited, generator, answer)
            if retrieval is None:
                break
            current = rebuilt(build, prompt.question, retrieval.passages)
        report = answer.draft.report(stop=answer.stop, seconds=time.perf_counter() - started)
        return FLAREOutput(
            sequences=self._sequences(prompt, answer.response_ids),
            report=report,
            sampled_tokens=answer.sampled_tokens,
            dropped=tuple(r.query.sentence for r in answer.retrievals),
            retrievals=tuple(answer.retrievals),
        )

    def _part(
        self, watched: ScoredSession, plan: GenerationSetup, generator: torch.Generator, answer: _Answer
    ) -> Generator[Event, None, Retrieval | None]:
        """Write under one prompt until a retrieval finds passages for another, which is returned, or to the end."""
        (row,), (judged,) = watched.decoding.rows, watched.answers
        seen = 0
        for _ in watched.decode(plan, generator=generator):
            while seen < len(judged.sentences):
                retrieval = self._retrieval(watched, seen, answer)
                if retrieval is not None:
                    answer.retrievals.append(retrieval)
                    answer.take(watched, seen, stop=None)
                    return retrieval
                event = event_of(judged.sentences[seen], row)
                yield answer.draft.placed_event(event, judged.scorer.prompt)
                seen += 1
        (stop,) = watched.stops
        answer.take(watched, len(judged.sentences), stop=stop)
        return None

    def _retrieval(self, watched: ScoredSession, index: int, answer: _Answer) -> Retrieval | None:
        """Retrieve passages if a sentence has a token that is too unlikely."""
        (judged,), (row,) = watched.answers, watched.decoding.rows
        signals, is_rewritten = judged.signals[index], bool(answer.retrievals) and index == 0
        probabilities = [math.exp(value) for value in signals.log_prob.tolist()]
        if is_rewritten or len(answer.retrievals) >= self.max_retrievals:
            return None
        if all(probability >= self.threshold for probability in probabilities):  # NaN is not
            return None
        spans = row.char_spans[signals.span.token_start : signals.span.token_end]
        texts = [row.text[start:stop] for start, stop in spans]
        tokens = tuple(zip(texts, probabilities, strict=True))
        query = FLAREQuery(
            question=judged.scorer.prompt.question,
            written=answer.draft.text + _cut(watched, index).text,
            sentence=answer.draft.placed(judged.sentences[index], judged.scorer.prompt),
            tokens=tokens,
            text="".join(text for text, probability in tokens if probability >= self.threshold).strip(),
        )
        passages = self.retriever(query)
        is_list = isinstance(passages, Sequence) and not isinstance(passages, str)
        if not is_list or not all(isinstance(passage, str) for passage in passages):
            raise WrongTypeError(
                "a retriever must return a list of strings, the passages, and an empty one if it finds none; found "
                f"{type(passages).__name__}"
            )
        return Retrieval(query, tuple(passages)) if any(passage.strip() for passage in passages) else None


class _Answer:
    """An answer that is being written under one prompt after another."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.retrievals: list[Retrieval] = []
        self.response_ids: list[int] = []
        self.sampled_tokens = 0
        self.stop: str | None = None

    def take(self, watched: ScoredSession, sentences: int, *, stop: str | None) -> None:
        """Keep the first sentences of a session, or all that it wrote if it has come to its end."""
        (judged,), (row,) = watched.answers, watched.decoding.rows
        self.sampled_tokens += len(row.token_ids)
        self.response_ids = [*self.draft.token_ids, *ids_of(row)]
        self.stop = stop
        if stop is None:
            kept = ScoredAnswer(judged.scorer)
            signals: list[SentenceSignals] = judged.signals[:sentences]
            kept.keep(signals, judged.sentences[:sentences])
            self.draft.add(kept.report(_cut(watched, sentences), stop=None, seconds=None))
        else:
            self.draft.add(watched.reports(stops=[stop], seconds=None)[0])


def _cut(watched: ScoredSession, sentences: int) -> Transcript:
    """Cut out the text and tokens that the session wrote before one of its sentences."""
    (judged,), (row,) = watched.answers, watched.decoding.rows
    tokens = judged.sentences[sentences - 1].token_end if sentences else 0
    spans = row.char_spans[:tokens]
    return Transcript(row.text[: spans[-1][1]] if spans else "", spans)


PromptBuilder = Callable[[str, Sequence[str]], RagPrompt]
"""Function that builds a prompt from a question and passages."""

_MARK = "syncheck-system-prompt"
"""Stand-in for a system prompt, to see what a template writes around it."""


def builder_of(monitor: Monitor, prompt: RagPrompt) -> PromptBuilder:
    """Find the function that builds this prompt, system prompt included, from its question and passages."""
    for system in (None, _system_of(monitor, prompt)):
        try:
            is_same = _built(monitor, system, prompt.question, prompt.passages) == prompt
        except InputError:  # the chat template refuses what only looks like a system prompt
            is_same = False
        if is_same:
            return partial(_built, monitor, system)
    raise InputError(
        "expected a prompt of monitor.prompt(question=..., context=..., system=...), which can be built again with the "
        "retrieved passages; found one with its own texts or another template. Pass "
        "build_prompt=callable, which takes a question and passages and returns a prompt"
    )


def rebuilt(build: PromptBuilder, question: str, passages: Sequence[str]) -> RagPrompt:
    """Build a prompt with retrieved passages, and check it."""
    prompt = build(question, passages)
    if not isinstance(prompt, RagPrompt):
        raise WrongTypeError(f"build_prompt must return a RagPrompt; found {type(prompt).__name__}")
    if not prompt.has_context:
        raise InputError("build_prompt returned a prompt without passages; it must use the passages that it is given")
    return prompt


def _built(monitor: Monitor, system: str | None, question: str, passages: Sequence[str]) -> RagPrompt:
    return monitor.prompt(question=question, context=passages, system=system)


def _system_of(monitor: Monitor, prompt: RagPrompt) -> str | None:
    """Find the system prompt in a prompt; None if the template has no place for one."""
    try:
        marked = _built(monitor, _MARK, prompt.question, prompt.passages).with_context
    except InputError:  # the chat template takes no system prompt
        return None
    before, _, after = marked.partition(_MARK)
    text = prompt.with_context
    if len(text) <= len(before) + len(after) or not (text.startswith(before) and text.endswith(after)):
        return None
    return text[len(before) : len(text) - len(after)]
