"""FOD on scripted sentences: the samples are given, so that every way of searching decodes the same text.

A logits processor leaves one token possible to each row. At the start of a round every row draws a sentence of the
pool; rows of one beam draw sentences that begin differently, so that no two samples are alike and all are judged.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers.generation import LogitsProcessor, LogitsProcessorList
from ways import Between, plain, with_aligner
from workload import Job, Subject, make_job

from fod import FODConfig, FODGenerator, FODOutput
from fod.flare import continued
from syncheck import RagPrompt

POOL_TOKENS = 4000
TOKENS_AT_MOST = 44
"""Tokens that a sentence is given room for."""

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """The samples of one search: the greedy sentence it takes back, each round's samples, and the answer's sentences.

    ``rounds`` holds (tokens of the answer before, the sample's tokens).
    """

    prompt: RagPrompt
    greedy: Ids
    rounds: tuple[tuple[tuple[Ids, Ids], ...], ...]
    answer: Ids
    ends: tuple[int, ...]

    @property
    def sampled_tokens(self) -> int:
        """Tokens of all samples."""
        return sum(len(sample) for step in self.rounds for _, sample in step)

    @property
    def longest_tokens(self) -> int:
        """Tokens of the longest sample of every round together: the steps that a batch needs."""
        return sum(max(len(sample) for _, sample in step) for step in self.rounds)


class Sampled(LogitsProcessor):  # type: ignore[misc]
    """Gives rows the sentences of a pool, the same ones for the same seed.

    Parameters
    ----------
    prompt
        Ids before the rows' answers; rows may be padded with its first one.
    pool
        Sentences to draw from.
    seed
        Of the draws.
    between
        Called before each round with its number, 0 for the greedy sentence.
    """

    def __init__(self, prompt: Sequence[int], pool: Sequence[Ids], seed: int, between: Callable[[int], None]) -> None:
        self._prompt = prompt
        self._pool = pool
        self._random = random.Random(seed)
        self._between = between
        self._rest: dict[Ids, Ids] = {}
        self._is_beginning = False
        self.rounds = 0

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return scores of 0 at each row's token and -inf elsewhere."""
        answers = [self._answer(row) for row in input_ids.tolist()]
        begins = not all(answer in self._rest for answer in answers)
        if begins and not self._is_beginning:  # rows of unlike length come one call after another
            self._between(self.rounds)
            self.rounds += 1
            self._taken: dict[Ids, set[int]] = {}
        self._is_beginning = begins
        drawn = [(answer, self._draw(answer) if begins else self._rest.pop(answer)) for answer in answers]
        self._rest |= {(*answer, rest[0]): rest[1:] for answer, rest in drawn if len(rest) > 1}
        tokens = torch.tensor([rest[0] for _, rest in drawn], device=scores.device)
        return torch.full_like(scores, -torch.inf).scatter_(1, tokens[:, None], 0.0)

    def _draw(self, answer: Ids) -> Ids:
        """Draw a sentence, with the token after it that shows its end."""
        taken = self._taken.setdefault(answer, set())
        while True:
            sentence = self._random.choice(self._pool)
            if sentence[0] not in taken:
                taken.add(sentence[0])
                return (*sentence, self._pool[0][0])

    def _answer(self, row: Sequence[int]) -> Ids:
        padding = next(i for i, token in enumerate(row) if token != self._prompt[0]) - 1
        return tuple(row[padding + len(self._prompt) :])


def pool_of(subject: Subject, *, context: int, seed: int) -> tuple[RagPrompt, list[Ids]]:
    """Return a prompt of so many tokens and the sentences to draw from."""
    job = make_job(subject, context=context, tokens=POOL_TOKENS, batch=1, seed=seed)
    (answer,), (ends,) = job.answers, job.sentences
    starts = (0, *ends[:-1])
    found = [answer[start:end] for start, end in zip(starts, ends, strict=True)][:-1]  # the last one is cut off
    # The first token of a sentence has to show at once that the one before it is over.
    plain = [ids for ids in dict.fromkeys(found) if subject.tokenizer.decode(ids[0]).strip().isalpha()]
    return job.prompts[0], plain


def fod(
    subject: Subject,
    prompt: RagPrompt,
    pool: Sequence[Ids],
    *,
    sentences: int,
    sizes: tuple[int, int],
    between: Between,
) -> FODOutput:
    """Search: the first greedy sentence is taken back and every sample passes."""
    generator = FODGenerator(
        subject.model,
        subject.tokenizer,
        subject.full,
        config=FODConfig(
            backtrack_threshold=1.0,
            prune_threshold=0.0,
            beam_size=sizes[0],
            samples_per_step=sizes[1],
            max_sentences=sentences,
        ),
    )
    script = Sampled(prompt.with_context_ids, pool, 0, between)
    output = generator.generate(
        prompt,
        max_new_tokens=sentences * TOKENS_AT_MOST,
        logits_processor=LogitsProcessorList([script]),
        return_dict_in_generate=True,
    )
    if len(output.dropped) != 1 or len(output.report.sentences) != sentences:
        raise RuntimeError(f"expected {sentences} sentences, all of stage 2; found {len(output.report.sentences)}")
    return output


def search_of(subject: Subject, prompt: RagPrompt, output: FODOutput) -> Search:
    """Return the samples of a search."""
    taken_back = output.dropped[0].text
    parents, rounds = (output.search.greedy,), []
    for step in output.search.rounds:
        rounds.append(tuple((parents[c.parent].token_ids, c.token_ids) for c in step.candidates))
        parents = step.beams
    return Search(
        prompt=prompt,
        greedy=tuple(subject.tokenizer(" " + taken_back, add_special_tokens=False)["input_ids"]),
        rounds=tuple(rounds),
        answer=output.search.beam.token_ids,
        ends=tuple(s.token_end for s in output.report.sentences),
    )


def greedy(subject: Subject, search: Search, between: Between, *, monitored: bool) -> None:
    """Write the search's answer without a search: by plain ``generate``, or monitored."""
    job = Job((search.prompt,), (search.answer,), (search.ends,))
    (with_aligner if monitored else plain)(subject, job, between)


def published(subject: Subject, search: Search, between: Between, *, tokens: int) -> None:
    """Draw the search's samples one by one, each from a new encoding of all the text, as the published code does.

    Each sample is decoded to ``tokens`` tokens, or to its end where that is later, and cut; two passes over all the
    text follow, without the context for the other distribution and with it for the hidden states.
    """
    between(0)
    steps = ((((), search.greedy),), *search.rounds)
    for number, step in enumerate(steps):
        if number:
            between(number)
        for before, sample in step:
            prompt = continued(search.prompt, before, subject.tokenizer.decode(before))
            decoded = (*sample, *sample[-1:] * (tokens - len(sample)))
            plain(subject, Job((prompt,), (decoded,), ((len(decoded),),)), lambda token: None)
            with torch.inference_mode():
                for known, states in ((prompt.without_context_ids, False), (prompt.with_context_ids, True)):
                    ids = torch.tensor([[*known, *sample]], device=subject.model.device)
                    kept = 1 if states else len(sample) + 1
                    subject.model(ids, use_cache=False, logits_to_keep=kept, output_hidden_states=states)
