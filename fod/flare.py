"""FLARE: retrieves again before a sentence that the model is unsure of."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field

import numpy as np
import torch

from fod.draft import Draft
from fod.drop_in import AnswerGenerator, GeneratorOutput, event_of, ids_of
from syncheck import Event, Monitor, RagPrompt, SentenceScore
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.decoding import GenerationSetup, ScoredAnswer, ScoredSession, check_count, check_share, seeded_generator


class PassageIndex:
    """Finds at most ``count`` passages by shared words (TF-IDF); a retriever for :class:`fod.FLAREGenerator`.

    A ``count`` below 1, or passages without any word, raise InputError.
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
    """

    retrievals: tuple[Retrieval, ...] = field(default=None)  # type: ignore[arg-type]
    """In order."""


@dataclass(eq=False, repr=False)
class FLAREGenerator(AnswerGenerator[FLAREOutput]):
    """Retrieves again whenever a sentence has a token with a probability below the threshold (Jiang et al., 2023).

    The sentence is removed, the passages that are found replace those of the prompt, and the sentence is written again
    after the text so far; the new one stays as it is. The monitor scores the sentences and changes nothing.
    """

    _: KW_ONLY
    retriever: Retriever
    """Function of a :class:`fod.FLAREQuery` that returns passages, best first, such as a :class:`fod.PassageIndex`."""
    threshold: float
    """Smallest probability, in [0, 1], that a sentence's tokens may have; what is small depends on the model."""
    max_retrievals: int = 8
    """Largest number of retrievals for an answer."""
    build_prompt: PromptBuilder | None = None
    """Function of question and passages that builds the prompt with the new passages. None builds it as
    ``monitor.prompt`` built the first one, with its system prompt, and refuses any other prompt with InputError before
    decoding begins."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.retriever):
            raise WrongTypeError(
                "retriever must be a function of a FLAREQuery that returns passages; found "
                f"{type(self.retriever).__name__}"
            )
        check_share(self.threshold, "threshold")
        check_count(self.max_retrievals, "max_retrievals")

    def _told(self, prompt: RagPrompt, plan: GenerationSetup, seed: int) -> Generator[Event, None, FLAREOutput]:
        started = time.perf_counter()
        build = self.build_prompt or builder_of(self.monitor, prompt)
        generator = seeded_generator(self.monitor.model, seed)
        draft, retrievals = Draft(self.monitor, prompt, plan), list[Retrieval]()
        current = prompt
        while True:
            session, limited = draft.next_session(current)
            with session as watched:
                ended = yield from self._part(watched, limited, generator, draft, retrievals)
            if not isinstance(ended, Retrieval):
                break
            current = rebuilt(build, prompt.question, ended.passages)
        return FLAREOutput(
            sequences=self._sequences(prompt, draft.response_ids),
            report=draft.report(stop=ended, seconds=time.perf_counter() - started),
            sampled_tokens=draft.sampled_tokens,
            dropped=tuple(r.query.sentence for r in retrievals),
            retrievals=tuple(retrievals),
        )

    def _part(
        self,
        watched: ScoredSession,
        plan: GenerationSetup,
        generator: torch.Generator,
        draft: Draft,
        retrievals: list[Retrieval],
    ) -> Generator[Event, None, Retrieval | str | None]:
        """Write under one prompt until a retrieval finds passages for another, or to the end; return which it was."""
        (row,), (judged,) = watched.decoding.rows, watched.answers
        seen = 0
        for _ in watched.decode(plan, generator=generator):
            while seen < len(judged.sentences):
                retrieval = self._retrieval(watched, seen, draft, retrievals)
                if retrieval is not None:
                    retrievals.append(retrieval)
                    draft.sampled_tokens += len(row.token_ids)
                    kept = ScoredAnswer(judged.scorer, judged.sentences[:seen], judged.signals[:seen])
                    tokens = judged.signals[seen].span.token_start
                    draft.add(kept.report(row.transcript(tokens), stop=None, seconds=None))
                    return retrieval
                event = event_of(judged.sentences[seen], row)
                yield draft.placed_event(event, judged.scorer.prompt)
                seen += 1
        draft.sampled_tokens += len(row.token_ids)
        draft.response_ids = [*draft.token_ids, *ids_of(row)]
        draft.add(watched.reports(seconds=None)[0])
        return watched.stops[0]

    def _retrieval(
        self, watched: ScoredSession, index: int, draft: Draft, retrievals: Sequence[Retrieval]
    ) -> Retrieval | None:
        """Retrieve passages if a sentence has a token that is too unlikely."""
        (judged,), (row,) = watched.answers, watched.decoding.rows
        signals, is_rewritten = judged.signals[index], bool(retrievals) and index == 0
        probabilities = [math.exp(value) for value in signals.log_prob.tolist()]
        is_sure = all(probability >= self.threshold for probability in probabilities)  # NaN is not
        if is_sure or is_rewritten or len(retrievals) >= self.max_retrievals:
            return None
        spans = row.char_spans[signals.span.token_start : signals.span.token_end]
        texts = [row.text[start:stop] for start, stop in spans]
        tokens = tuple(zip(texts, probabilities, strict=True))
        query = FLAREQuery(
            question=judged.scorer.prompt.question,
            written=draft.text + row.transcript(signals.span.token_start).text,
            sentence=draft.placed(judged.sentences[index], judged.scorer.prompt),
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


PromptBuilder = Callable[[str, Sequence[str]], RagPrompt]
"""Function that builds a prompt from a question and passages."""


def builder_of(monitor: Monitor, prompt: RagPrompt) -> PromptBuilder:
    """Find the function that builds this prompt, system prompt included, from its question and passages."""

    def build(question: str, passages: Sequence[str]) -> RagPrompt:
        return monitor.prompt(question=question, context=passages, system=prompt.system)

    with suppress(InputError):  # another chat template may take no system prompt
        if build(prompt.question, prompt.passages) == prompt:
            return build
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
