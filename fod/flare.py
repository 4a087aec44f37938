"""FLARE: retrieves again before a sentence that the model is unsure of."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace

import numpy as np
import torch

from fod.drop_in import AnswerGenerator, GeneratorOutput, event_of, ids_of, plan_within
from syncheck import Event, Monitor, RagPrompt, Report, SentenceEvent, SentenceScore
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.decoding import (
    GenerationSetup,
    ScoredAnswer,
    ScoredSession,
    check_count,
    check_reach,
    check_share,
    seeded_generator,
)
from syncheck.results.types import Query, TokenSignals


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
    after the text so far; the new one stays as it is. The monitor scores the sentences and changes nothing. A prompt
    that ``monitor.prompt`` cannot build again, with the new passages, raises InputError before decoding begins.
    """

    _: KW_ONLY
    retriever: Retriever
    """Function of a :class:`fod.FLAREQuery` that returns passages, best first, such as a :class:`fod.PassageIndex`."""
    threshold: float
    """Smallest probability, in [0, 1], that a sentence's tokens may have; what is small depends on the model."""
    max_retrievals: int = 8
    """Largest number of retrievals for an answer."""

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
        self._require_own(prompt)
        generator = seeded_generator(self.monitor.model, seed)
        draft, retrievals = _Draft(self.monitor, prompt, plan), list[Retrieval]()
        current = prompt
        while True:
            session, limited = draft.next_session(current)
            with session as watched:
                ended = yield from self._part(watched, limited, generator, draft, retrievals)
            if not isinstance(ended, Retrieval):
                break
            current = self._built(prompt, ended.passages)
        return FLAREOutput(
            sequences=self._sequences(prompt, draft.response_ids),
            report=draft.report(stop=ended, seconds=time.perf_counter() - started),
            sampled_tokens=draft.sampled_tokens,
            dropped=tuple(r.query.sentence for r in retrievals),
            retrievals=tuple(retrievals),
        )

    def _built(self, prompt: RagPrompt, passages: Sequence[str]) -> RagPrompt:
        """Build a prompt again, with these passages."""
        return self.monitor.prompt(question=prompt.question, context=passages, system=prompt.system)

    def _require_own(self, prompt: RagPrompt) -> None:
        """Refuse, with an InputError, a prompt that the monitor has not built from question and passages."""
        with suppress(InputError):  # another chat template may take no system prompt
            if self._built(prompt, prompt.passages) == prompt:
                return
        raise InputError(
            "expected a prompt of monitor.prompt(question=..., context=..., system=...), which can be built again with "
            "the retrieved passages; found one with its own texts or another template"
        )

    def _part(
        self,
        watched: ScoredSession,
        plan: GenerationSetup,
        generator: torch.Generator,
        draft: _Draft,
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
        self, watched: ScoredSession, index: int, draft: _Draft, retrievals: Sequence[Retrieval]
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


def continued(prompt: RagPrompt, token_ids: Sequence[int], text: str) -> RagPrompt:
    """Build a prompt from which an answer continues: the prompt's ids, then those that are written already."""
    return replace(
        prompt,
        with_context=prompt.with_context + text,
        without_context=prompt.without_context + text,
        with_context_ids=(*prompt.with_context_ids, *token_ids),
        without_context_ids=(*prompt.without_context_ids, *token_ids),
    )


class _Draft:
    """Answer as written so far, in parts; its prompt has the passages of all parts, each once.

    The limit on tokens, which ``plan`` has for the first prompt, applies to all parts together.
    """

    def __init__(self, monitor: Monitor, prompt: RagPrompt, plan: GenerationSetup) -> None:
        self.prompt = prompt
        self.token_ids: list[int] = []  # of the response, without an end-of-text token
        self.response_ids: list[int] = []  # with the end-of-text token that ended it
        self.sampled_tokens = 0  # whether discarded or not
        self._room = plan.config.max_length - len(prompt.with_context_ids)
        self._monitor = monitor
        self._plan = plan
        self._parts: list[Report] = []

    def next_session(self, prompt: RagPrompt) -> tuple[ScoredSession, GenerationSetup]:
        """Make the session of the next part, after the text so far, under its own prompt, and the plan for it."""
        limit = len(prompt.with_context_ids) + self._room
        check_reach(self._monitor.model, [prompt], limit)
        return self._monitor.session(continued(prompt, self.token_ids, self.text)), plan_within(self._plan, limit)

    @property
    def text(self) -> str:
        """The response so far."""
        return "".join(part.response for part in self._parts)

    @property
    def sentences(self) -> tuple[SentenceScore, ...]:
        """The sentences so far."""
        return tuple(sentence for part in self._parts for sentence in part.sentences)

    def add(self, part: Report) -> None:
        """Append a part, given as the report under its own prompt, of all tokens that are kept."""
        passages = tuple(dict.fromkeys((*self.prompt.passages, *part.prompt.passages)))
        self.prompt = replace(self.prompt, passages=passages)
        moved = tuple(self.placed(sentence, part.prompt) for sentence in part.sentences)
        tokens = replace(part.tokens, char_spans=part.tokens.char_spans + len(self.text))
        self._parts.append(replace(part, sentences=moved, tokens=tokens))
        self.token_ids += part.tokens.token_ids.tolist()

    def placed(self, sentence: SentenceScore, prompt: Query) -> SentenceScore:
        """Place the characters, tokens and evidence of a sentence of the next part in the whole answer."""
        if not self._parts and prompt.passages == self.prompt.passages:
            return sentence
        known = list(dict.fromkeys((*self.prompt.passages, *prompt.passages)))
        places, evidence = [known.index(passage) for passage in prompt.passages], sentence.evidence
        return replace(
            sentence.moved(characters=len(self.text), tokens=len(self.token_ids)),
            evidence=evidence and replace(evidence, passage=places[evidence.passage]),
            contrasts=tuple(replace(c, passage=places[c.passage]) for c in sentence.contrasts),
        )

    def placed_event(self, event: SentenceEvent, prompt: Query) -> SentenceEvent:
        """Place the event of a sentence of the next part in the whole answer."""
        before = self.text if event.sentence.start == len(event.lead) else ""
        lead = before[len(before.rstrip()) :] + event.lead
        return replace(event, sentence=self.placed(event.sentence, prompt), lead=lead)

    def report(self, *, stop: str | None, seconds: float | None) -> Report:
        """Build the report of all parts as one answer."""
        tokens = [part.tokens for part in self._parts]
        spans = [span for part in tokens for span in part.char_spans]
        return Report(
            prompt=self.prompt,
            response=self.text,
            sentences=self.sentences,
            tokens=TokenSignals.concatenate(tokens, text=self.text, char_spans=spans),
            stop=stop,
            seconds=seconds,
            monitor=self._parts[0].monitor if self._parts else None,
            answer_scale=self._parts[0].answer_scale if self._parts else None,
        )
