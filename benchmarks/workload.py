"""The workload of the cost benchmarks: models, prompts of a given length, and answers that are the same in every way.

Random weights never end a sentence and two ways of decoding must not differ in what they decode, so the tokens are
scripted: a logits processor of each run puts all scores on the next token of a given text, and greedy decoding takes
it. The text is whole sentences of the bundled passages, about 26 tokens each.
"""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from nltk.tokenize.punkt import PunktSentenceTokenizer
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerBase
from transformers.generation import LogitsProcessor

from syncheck import Monitor, Passage, RagPrompt
from syncheck.kit import KIT_MODEL, demo_questions, load_kit
from syncheck.signals import LidReferences

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from copying import copying_monitor as copying_monitor  # noqa: E402 - the tests are not a package

SubjectName = Literal["kit", "copying", "random"]
"""The kit's model; a Llama of 8.9 M parameters that the tests keep; a random one."""

SHAPES: dict[str, dict[str, int]] = {
    "tiny": {"hidden_size": 64, "intermediate_size": 176, "num_hidden_layers": 6, "num_attention_heads": 4},
    "100m": {"hidden_size": 640, "intermediate_size": 1728, "num_hidden_layers": 12, "num_attention_heads": 10},
    "7b": {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32},
}
"""Random Llamas; the last has the sizes of Llama-2-7B."""

VOCABULARY, WINDOW = 32_000, 4096
REFERENCES = 2000
"""LID references of a random model; the published code keeps as many."""

SHORTEST_SENTENCE, LONGEST_SENTENCE = 12, 40
"""Tokens of the sentences that answers are made of; their mean is about 26."""

ROW_STEP, ROW_STEPS = 20, 4
"""The prompts of a batch are 0, 20, 40 or 60 tokens shorter, so that rows are padded."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A model with its two monitors: signals only, and with aligner and aggregator."""

    name: str
    full: Monitor
    signals: Monitor

    @property
    def model(self) -> PreTrainedModel:
        """The model that both monitor."""
        return self.full.model

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Its tokenizer."""
        return self.full.tokenizer

    def twin(self) -> Subject:
        """Copy the modules, not the weights, so that the hooks of one way do not see the runs of another."""
        shared = {id(tensor): tensor for tensor in (*self.model.parameters(), *self.model.buffers())}
        return _subject(self.name, copy.deepcopy(self.model, shared), self.full, self.full.lid_references)


@dataclass(frozen=True, slots=True)
class Job:
    """Prompts of one batch and the answer scripted for each.

    Attributes
    ----------
    prompts : tuple of RagPrompt
    answers : tuple of tuple of int
        One for each prompt, all of the same number of tokens.
    sentences : tuple of tuple of int
        For each answer the number of tokens before the end of each of its sentences; the last is the whole answer.
    """

    prompts: tuple[RagPrompt, ...]
    answers: tuple[tuple[int, ...], ...]
    sentences: tuple[tuple[int, ...], ...]

    @property
    def tokens(self) -> int:
        """Tokens of each answer."""
        return len(self.answers[0])

    def first_sentences(self, count: int) -> Job:
        """Return the same job with at most so many sentences of each answer; the answers then differ in length."""
        ends = tuple(row[:count] for row in self.sentences)
        return Job(self.prompts, tuple(a[: row[-1]] for a, row in zip(self.answers, ends, strict=True)), ends)


class Script(LogitsProcessor):  # type: ignore[misc]
    """Makes greedy decoding choose given tokens, and reports when each one is needed.

    Parameters
    ----------
    answers
        One row of tokens for each sequence; a row that is shorter than the others goes on with its last token.
    before
        Called with the number of the token that is needed, before it is given.
    """

    def __init__(self, answers: Sequence[Sequence[int]], before: Callable[[int], None] | None = None) -> None:
        longest = max(map(len, answers))
        self._tokens = torch.tensor([[*answer, *answer[-1:] * (longest - len(answer))] for answer in answers])
        self._before = before
        self._next = 0
        self._scores: Tensor | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return scores of 0 with 1 at the scripted token of each row; the given scores stay as they are."""
        if self._before is not None:
            self._before(self._next)
        if self._scores is None:
            self._scores = torch.zeros_like(scores)
            self._tokens = self._tokens.to(scores.device)
        self._scores.zero_().scatter_(1, self._tokens[:, self._next, None], 1.0)
        self._next += 1
        return self._scores


def subject_of(name: SubjectName, *, shape: str, device: str, dtype: torch.dtype) -> Subject:
    """Load a model with its monitors, or build a random one of that shape and dtype."""
    if name == "random":
        return random_subject(shape, device=device, dtype=dtype)
    if name == "kit":
        kit = load_kit("generation", device=device)
        return _subject(KIT_MODEL, kit.model, kit, kit.lid_references)
    copying = copying_monitor(device)
    return _subject("copying model, 8.9 M", copying.model, copying, copying.lid_references)


def random_subject(shape: str, *, device: str, dtype: torch.dtype) -> Subject:
    """Build a Llama of random weights, made on its device in its dtype, with the copying model's tokenizer and monitor.

    Its ids stay below the tokenizer's 4,096; the other entries of its vocabulary are padding that costs as usual.
    """
    sizes = SHAPES[shape]
    config = LlamaConfig(vocab_size=VOCABULARY, max_position_embeddings=WINDOW, **sizes)
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    model.generation_config.pad_token_id = 0
    copying = copying_monitor(device)
    copying.tokenizer.model_max_length = WINDOW  # it would warn of that model's own window
    generator = torch.Generator().manual_seed(0)
    shape_of_bank = (REFERENCES, sizes["hidden_size"])
    lid_references = LidReferences(
        {layer: torch.randn(shape_of_bank, generator=generator).numpy() for layer in copying.config.layers},
        device=device,
    )
    millions = sum(p.numel() for p in model.parameters()) / 1e6
    return _subject(f"random Llama, {millions:,.0f} M", model.eval(), copying, lid_references)


def _subject(name: str, model: PreTrainedModel, monitor: Monitor, lid_references: LidReferences | None) -> Subject:
    full = Monitor(
        model,
        monitor.tokenizer,
        config=monitor.config,
        aggregator=monitor.aggregator,
        lid_references=lid_references,
        aligner=monitor.aligner,
    )
    return Subject(name, full, Monitor(model, monitor.tokenizer, config=monitor.config, lid_references=lid_references))


def make_job(subject: Subject, *, context: int, tokens: int, batch: int, seed: int) -> Job:
    """Make prompts of ``context`` tokens or slightly fewer, with another text for every seed.

    The seed changes the passages too: what a way keeps of a prompt (an index of its passages) must not serve twice.
    """
    order = random.Random(seed)
    questions = list(demo_questions())
    passages = [passage for question in questions for passage in question.passages]
    sentences = [s for passage in passages for s in PunktSentenceTokenizer().tokenize(passage)]
    ids = [subject.tokenizer(" " + s, add_special_tokens=False)["input_ids"] for s in sentences]
    ids = [i for i in ids if SHORTEST_SENTENCE <= len(i) <= LONGEST_SENTENCE]
    prompts, answers, ends = [], [], []
    for row in range(batch):
        question = order.choice(questions).question
        prompts.append(_prompt(subject.full, question, passages, context - ROW_STEP * (row % ROW_STEPS), order))
        answer, stops = _answer(ids, tokens, order)
        answers.append(answer)
        ends.append(stops)
    return Job(tuple(prompts), tuple(answers), tuple(ends))


def question_prompts(subject: Subject, *, context: int, count: int) -> list[RagPrompt]:
    """Ask blind questions of the kit's model (``kit_answers``) about the documents that were written for them.

    Prompts have ``context`` tokens, of bundled passages after the document's if it is shorter, and a tenth more if it
    is longer; a question whose document is longer still is left out. ValueError if fewer than ``count`` are left.
    """
    with (Path(__file__).parent / "kit_answers" / "questions.jsonl").open(encoding="utf-8") as lines:
        sets = [one for one in map(json.loads, lines) if one["part"] == "blind" and one["source"] == "written"]
    asked = [(question, one["passages"]) for one in sets for question in one["questions"]]
    order = random.Random(0)
    order.shuffle(asked)
    others = [passage for question in demo_questions() for passage in question.passages]
    prompts: list[RagPrompt] = []
    for question, passages in asked:
        prompt = subject.full.prompt(question=question, context=passages)
        if len(prompt.with_context_ids) < context:
            prompt = _prompt(subject.full, question, others, context, order, taken=passages)
        if len(prompt.with_context_ids) <= 1.1 * context:
            prompts.append(prompt)
        if len(prompts) == count:
            return prompts
    raise ValueError(f"expected {count} questions about documents of up to {context} tokens; found {len(prompts)}")


def _prompt(
    monitor: Monitor,
    question: str,
    passages: Sequence[str],
    tokens: int,
    order: random.Random,
    *,
    taken: Sequence[Passage] = (),
) -> RagPrompt:
    """Add passages to those taken, cutting the last one to the most words that fit."""
    taken = list(taken)
    while True:
        passage = order.choice(passages)
        prompt = monitor.prompt(question=question, context=[*taken, passage])
        if len(prompt.with_context_ids) > tokens:
            break
        taken.append(passage)
    words = passage.split()
    fitting, too_many = 0, len(words)
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        prompt = monitor.prompt(question=question, context=[*taken, " ".join(words[:middle])])
        fitting, too_many = (middle, too_many) if len(prompt.with_context_ids) <= tokens else (fitting, middle)
    return monitor.prompt(question=question, context=[*taken, " ".join(words[:fitting])])


def _answer(
    sentences: Sequence[Sequence[int]], tokens: int, order: random.Random
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Join sentences in random order until there are enough tokens; the excess is cut off."""
    answer: list[int] = []
    ends: list[int] = []
    while len(answer) < tokens:
        answer += order.choice(sentences)
        ends.append(min(len(answer), tokens))
    return tuple(answer[:tokens]), tuple(ends)
