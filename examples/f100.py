"""Build F-100 or F-100-anti from your own passages, and put a model's answers next to its requests.

    python examples/f100.py --passages passages.jsonl --output f100.jsonl
    syncheck generate --model my-model --input f100.jsonl --output answers.jsonl
    python examples/f100.py --passages passages.jsonl --answers answers.jsonl --output biographies.jsonl
    syncheck features --model my-model --data biographies.jsonl --output f100.parquet \
        --propositioner chentong00/propositionizer-wiki-flan-t5-large --judge autoais:google/t5_xxl_true_nli_mixture

Passages are JSON Lines with ``text`` and, where there is one, ``title``; the paper's are paragraphs of Wikipedia. The
same passages and seed give the same requests.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from syncheck.base.checks import check_choice
from syncheck.base.errors import InputError, SyncheckError
from syncheck.base.records import read_records
from syncheck.labelling.biographies import BIOGRAPHY_PASSAGES, BIOGRAPHY_QUESTION
from syncheck.labelling.passages import Bm25, Passage, load_passages, words_of
from syncheck.labelling.responses import PromptSource
from syncheck.prompts import biography_prompt

# fmt: off
F100_ENTITIES = (
    "Nikita Khrushchev", "Malcolm X", "John F. Kennedy", "Bill Gates", "Queen Elizabeth II", "Napoleon Bonaparte",
    "Mohandas Gandhi", "Albert Einstein", "Cleopatra", "Adolf Hitler", "Freddie Mercury", "Plato", "J.K. Rowling",
    "Karl Marx", "Margaret Thatcher", "Angela Merkel", "Vincent Van Gogh", "John Lennon", "Che Guevara",
    "Cristiano Ronaldo", "Rosa Parks", "Rihanna", "Alexander the Great", "Isaac Newton", "Julius Caesar",
    "Amelia Earhart", "Simone Biles", "Michael Jordan", "Elton John", "Sigmund Freud", "Joseph Stalin", "Jane Goodall",
    "Beyoncé", "Adele", "Charles Dickens", "Thomas Edison", "Eminem", "Virginia Woolf", "Taylor Swift", "Tupac Shakur",
    "Justin Bieber", "Tim Berners-Lee", "Kanye West", "Marie Curie", "Ludwig van Beethoven", "Pablo Neruda",
    "Steve Jobs", "Usain Bolt", "Bruce Lee", "Marilyn Monroe", "Michael Jackson", "Shakira", "Mozart", "Lady Gaga",
    "Vladimir Putin", "Charles Darwin", "Harriet Tubman", "Benjamin Franklin", "Oprah Winfrey", "Malala Yousafzai",
    "Socrates", "Mahatma Gandhi", "Pablo Picasso", "Frida Kahlo", "Nelson Mandela", "Whitney Houston",
    "Winston Churchill", "Stephen Hawking", "Fidel Castro", "Margaret Atwood", "Madonna", "Leonardo DiCaprio",
    "Elizabeth I", "Galileo Galilei", "Muhammad Ali", "Mao Zedong", "William Shakespeare", "Joan of Arc",
    "George Washington", "Mikhail Gorbachev", "Abraham Lincoln", "Pele", "Martin Luther King Jr.", "Jane Austen",
    "Ed Sheeran", "Sachin Tendulkar", "Ariana Grande", "Wolfgang Amadeus Mozart", "Mark Zuckerberg", "Vincent van Gogh",
    "Bob Marley", "Ronald Reagan", "Barack Obama", "Britney Spears", "Walt Disney", "Leonardo da Vinci",
    "Elvis Presley", "Lionel Messi", "Anne Frank", "Confucius",
)
# fmt: on
"""The people of the paper's figure 5, in its order and spelling."""

_TRIES = 1000


@dataclass(frozen=True, slots=True)
class BiographyRequest:
    """A biography of ``topic`` to be written from passages, best first."""

    topic: str
    passages: tuple[Passage, ...]
    lent_by: str | None = None
    """Entity whose passages these were before its name was replaced (F-100-anti)."""
    replaced: int = 0
    """How often its name was replaced. 0 in F-100-anti means that the passages do not have the name in the spelling of
    the list, and so say nothing about the topic."""

    @property
    def question(self) -> str:
        """Question for the model."""
        return BIOGRAPHY_QUESTION.format(topic=self.topic)


def f100_requests(
    passages: Sequence[Passage], entities: Sequence[str] = F100_ENTITIES, *, count: int = BIOGRAPHY_PASSAGES
) -> list[BiographyRequest]:
    """Retrieve for each entity the best passages by BM25, with the question for its biography as the query.

    ``passages`` are the corpus, cut into paragraphs (the paper's is the Wikipedia of October 2021), and ``count`` is
    the largest number of passages for each. If entities repeat, there are none, or no passage shares a word with the
    question about one, InputError is raised; without ``bm25s``, MissingExtraError is raised.
    """
    _check_entities(entities)
    index = Bm25(passages)
    requests = []
    for topic in entities:
        request = BiographyRequest(topic, index.best(BIOGRAPHY_QUESTION.format(topic=topic), count))
        if not request.passages:
            raise InputError(f"no passage shares a word with {request.question!r}; add some, or leave the entity out")
        requests.append(request)
    return requests


def f100_anti_requests(requests: Sequence[BiographyRequest], *, seed: int = 0) -> list[BiographyRequest]:
    """Give each entity of F-100 the passages of another one, with the other's name replaced by its own.

    Topics and their order stay. Each entity lends its passages once; ``seed`` decides to which. If there are no
    entities, one occurs twice, or they cannot be paired, InputError is raised.

    The paper says neither how entities are paired nor what counts as an occurrence of a name. Here, names that share a
    word are not paired, since they may be the same person ("Mozart", "Wolfgang Amadeus Mozart"). An occurrence is the
    whole name in title or text, in upper or lower case, without a letter or digit directly before or after it.
    """
    topics = [request.topic for request in requests]
    _check_entities(topics)
    lenders = _lenders(topics, np.random.default_rng(seed))
    return [_lent(topic, requests[lender]) for topic, lender in zip(topics, lenders, strict=True)]


def write_requests(
    requests: Sequence[BiographyRequest],
    path: str | Path,
    *,
    outputs: Sequence[str] | None = None,
    generator: str | None = None,
    prompts: PromptSource = "monitor",
) -> None:
    """Write requests as JSON Lines for ``syncheck generate``.

    If there is one output for each, :func:`~syncheck.labelling.load_biographies` reads the file; another number raises
    InputError. ``prompts="task"`` adds the prompts of the published code; load the biographies with the same option.
    """
    check_choice(prompts, "prompts", PromptSource)
    if outputs is not None and len(outputs) != len(requests):
        raise InputError(f"expected one output for each of {len(requests)} requests, found {len(outputs)}")
    lines = []
    for index, request in enumerate(requests):
        context = [str(passage) for passage in request.passages]
        line: dict[str, object] = {
            "id": request.topic,
            "topic": request.topic,
            "question": request.question,
            "context": context,
            "ctxs": [{"title": passage.title, "text": passage.text} for passage in request.passages],
        }
        if prompts == "task":
            line["prompt_with_context"] = biography_prompt(request.question, context)
            line["prompt_without_context"] = biography_prompt(request.question, ())
        if request.lent_by is not None:
            line |= {"lent_by": request.lent_by, "replaced": request.replaced}
        if outputs is not None:
            line["output"] = outputs[index]
        if generator is not None:
            line["generator"] = generator
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    Path(path).write_text("".join(lines), encoding="utf-8")


def _check_entities(entities: Sequence[str]) -> None:
    blank = [entity for entity in entities if not entity.strip()]
    repeated = sorted({entity for entity in entities if entities.count(entity) > 1})
    if not entities or blank or repeated:
        raise InputError(f"expected entities, each once and none blank; found {repeated or blank or 'none'}")


def _lenders(topics: Sequence[str], random: np.random.Generator) -> list[int]:
    """Choose, for each entity, the index of the one that lends to it; the choices form a single cycle."""
    words = [set(words_of(topic)) for topic in topics]
    for _ in range(_TRIES):
        order = random.permutation(len(topics))
        after = dict(zip(order.tolist(), np.roll(order, -1).tolist(), strict=True))
        if all(words[a].isdisjoint(words[b]) for a, b in after.items()):
            return [after[index] for index in range(len(topics))]
    raise InputError(
        f"the {len(topics)} entities cannot swap passages such that no entity gets those of one whose name shares a "
        "word with its own; pass more entities, with other names"
    )


def _lent(topic: str, lender: BiographyRequest) -> BiographyRequest:
    name = re.compile(rf"(?<!\w){re.escape(lender.topic)}(?!\w)", re.IGNORECASE)
    replaced = 0
    passages = []
    for passage in lender.passages:
        title, in_title = name.subn(lambda _: topic, passage.title)
        text, in_text = name.subn(lambda _: topic, passage.text)
        passages.append(Passage(title, text))
        replaced += in_title + in_text
    return BiographyRequest(topic, tuple(passages), lent_by=lender.topic, replaced=replaced)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the requests, each with its output where answers are given."""
    options = argparse.ArgumentParser(description="F-100 and F-100-anti from your own passages.")
    options.add_argument("--passages", required=True, metavar="FILE", help="JSON Lines with text and title")
    options.add_argument("--entities", metavar="FILE", help="one name a line (the paper's hundred)")
    options.add_argument("--anti", action="store_true", help="each name in the passages of another (F-100-anti)")
    options.add_argument("--seed", type=int, default=0, help="of who lends passages to whom (%(default)s)")
    options.add_argument("--answers", metavar="FILE", help="what `syncheck generate` wrote for the requests")
    options.add_argument("--generator", metavar="NAME", help="who wrote the answers")
    options.add_argument("--prompts", choices=("monitor", "task"), default="monitor", help="task: the paper's own")
    options.add_argument("--output", required=True, metavar="FILE")
    args = options.parse_args(argv)
    names = Path(args.entities).read_text(encoding="utf-8").splitlines() if args.entities else F100_ENTITIES
    requests = f100_requests(load_passages(args.passages), [name for name in names if name.strip()])
    if args.anti:
        requests = f100_anti_requests(requests, seed=args.seed)
    outputs = None if args.answers is None else _answers(args.answers, [request.topic for request in requests])
    write_requests(requests, args.output, outputs=outputs, generator=args.generator, prompts=args.prompts)


def _answers(path: str, topics: Sequence[str]) -> list[str]:
    """Return the answer to each request, which has the topic as its id."""
    written = {record.get("id", str): record.optional("response", str) for record in read_records(Path(path))}
    missing = [topic for topic in topics if written.get(topic) is None]
    if missing:
        sys.exit(f"{path} has no answer for {', '.join(missing)}; generate them, or leave them out with --entities")
    return [written[topic] for topic in topics]


if __name__ == "__main__":
    try:
        main()
    except (SyncheckError, OSError) as error:
        sys.exit(str(error))
