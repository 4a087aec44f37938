"""The prompts that decoders are compared on: held-out Wikipedia questions, or those of a file."""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from syncheck.base.errors import InputError
from syncheck.base.records import Record, read_records

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "starter_kit"))
from wikipedia_qa import Article, ExampleMaker, load_articles  # noqa: E402 - the training scripts are not a package

SEED = 23
LENGTH = 1400
"""Characters of passages, question and true answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its passages. ``task`` is the column of the table in which it counts."""

    id: str
    question: str
    passages: tuple[str, ...]
    task: str

    @property
    def fingerprint(self) -> str:
        """Digest that distinguishes prompts with the same id and different texts."""
        text = json.dumps([self.question, *self.passages])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def wikipedia_questions(
    articles: Path, count: int, *, seed: int = SEED, apart_from: tuple[int, int] | None = None
) -> list[Question]:
    """Draw questions about articles that nothing in the kit was trained on; the same seed gives the same questions.

    With ``apart_from``, a seed and a count, no article is used of which those questions hold a sentence.
    """
    found = load_articles(articles, "heldout")
    if apart_from is not None:
        other = "\n".join(p for question in _drawn(found, apart_from[1], apart_from[0]) for p in question.passages)
        found = [a for a in found if not any(s in other for _, sentences in a.paragraphs for s in sentences)]
    return _drawn(found, count, seed)


def _drawn(articles: Sequence[Article], count: int, seed: int) -> list[Question]:
    maker, rng = ExampleMaker(articles, None), random.Random(seed)
    name = "" if seed == SEED else f"{seed}:"
    found: list[Question] = []
    with tqdm(total=count, desc="questions", mininterval=5) as bar:
        while len(found) < count:
            example = maker.draw(rng, LENGTH)
            if example.passages:
                found.append(Question(f"wikipedia:{name}{len(found)}", example.question, example.passages, "Wikipedia"))
                bar.update()
    return found


def questions_of(path: Path, count: int) -> list[Question]:
    """Read the first ``count`` questions of a JSON Lines file.

    Each line has ``question`` and ``context``, a string or a list of strings; ``id`` and ``task`` are optional.

    Raises
    ------
    InputError
        If the file is missing or empty.
    RecordError
        At the first record that cannot be used, also one whose context is blank or whose id has come before.
    """
    found: dict[str, Question] = {}
    for record in read_records(path):
        if len(found) == count:
            break
        name = record.optional("id", str) or f"{path.stem}:{record.line}"
        if name in found:
            raise record.error(f"expected a unique id; {name!r} has come before", "id")
        task = record.optional("task", str) or path.stem
        found[name] = Question(name, record.get("question", str), _passages(record), task)
    if not found:
        raise InputError(f"{path} holds no record; give one question a line")
    return list(found.values())


def _passages(record: Record) -> tuple[str, ...]:
    passages = record.texts("context")
    if not any(passage.strip() for passage in passages):
        raise record.error("expected at least one passage with text; faithfulness is to a context", "context")
    return passages
