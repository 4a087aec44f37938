"""Questions about Wikipedia passages, made afresh on every pass over the articles.

Each example is a handful of passages, a question whose words point at one place in them, and an answer
taken from that place. Names and numbers are replaced consistently within an example, so that a model
cannot answer from memory and has to read.
"""

from __future__ import annotations

import json
import lzma
import random
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nltk.tokenize.punkt import PunktSentenceTokenizer
from tqdm import tqdm

Split = Literal["train", "aggregator", "heldout"]

NO_PASSAGES_SHARE = 1 / 8
UNSUPPORTED_SHARE = 0.12
SUBSTITUTION_SHARE = 0.8
OPENING_SHARE = 0.3
"""At most this share of the answers starts with the opening sentence of an article."""

_NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")
_WORD = re.compile(r"[A-Za-z][a-z]+")
_TOKEN = re.compile(r"[a-z]+|\d+")
_NUMBER = re.compile(r"\d+")
_PARENTHESIS = re.compile(r" \([^()]*\)")
_YEAR = re.compile(r"\b1[5-9]\d\d\b|\b20[0-2]\d\b")
_TITLE_PHRASE = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+)*")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Z]|St|Dr|Mr|Mrs|Ms|Jr|Sr|vs|Inc|Ltd|Co|No|Vol|approx|ca|c|Prof|Gen|Col|Rev|Mt|Ft))\.$"
)
_CALENDAR = frozenset(
    "January February March April May June July August September October November December "
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
)
_OPENERS = ("Based on the given passages, ", "According to the passages, ")
_LINKERS = ("Additionally, ", "Furthermore, ", "Also, ", "In addition, ", "However, ")


@dataclass(frozen=True, slots=True)
class Article:
    """An article as paragraphs of sentences, each paragraph with its heading."""

    title: str
    paragraphs: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class QAExample:
    """One question. ``supported[i]`` says whether the passages hold answer sentence ``i``."""

    question: str
    passages: tuple[str, ...]
    answer: tuple[str, ...]
    supported: tuple[bool, ...]
    title: str


def split_of(title: str) -> Split:
    """Assign an article to a split by a checksum of its title, so that every script agrees."""
    bucket = zlib.crc32(title.encode()) % 100
    if bucket < 4:
        return "heldout"
    return "aggregator" if bucket < 10 else "train"


def load_articles(path: Path, split: Split) -> list[Article]:
    """Read ``articles.jsonl.xz`` and keep the articles of one split with at least three sentences."""
    punkt = PunktSentenceTokenizer()
    articles = []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in tqdm(lines, desc=f"articles ({split})", unit=" articles", mininterval=2):
            record = json.loads(line)
            if split_of(record["title"]) != split:
                continue
            paragraphs = tuple(_paragraphs(record["text"], punkt))
            if sum(len(sentences) for _, sentences in paragraphs) >= 3:
                articles.append(Article(record["title"].removeprefix("Draft:"), paragraphs))
    return articles


def _paragraphs(text: str, punkt: PunktSentenceTokenizer) -> Iterator[tuple[str, tuple[str, ...]]]:
    heading = ""
    for line in text.split("\n"):
        line = line.strip()
        if line.startswith("="):
            heading = line.strip("= ")
            if heading in {"References", "External links", "See also", "Notes", "Further reading"}:
                return
        elif len(line) > 60:
            sentences = tuple(_clean_sentences(punkt.tokenize(line)))
            if sentences:
                yield heading, sentences


def _clean_sentences(pieces: Sequence[str]) -> Iterator[str]:
    pending = ""
    for piece in pieces:
        pending = f"{pending} {piece}" if pending else piece
        if _ABBREVIATION.search(pending):
            continue
        if 30 <= len(pending) <= 260 and pending[0].isupper() and pending[-1] in ".!?":
            yield pending
        pending = ""


class Substitution:
    """Replaces names by other names of the corpus and numbers by numbers of the same length."""

    def __init__(self, articles: Sequence[Article]) -> None:
        capitalised: Counter[str] = Counter()
        lower: Counter[str] = Counter()
        for article in articles:
            for _, sentences in article.paragraphs:
                for sentence in sentences:
                    words = sentence.split()[1:]
                    capitalised.update(m.group() for w in words if (m := _NAME.match(w)))
                    lower.update(w.strip(".,;") for w in words if w.islower())
        self.names = sorted(
            n for n, k in capitalised.items() if k >= 3 and k > 5 * lower[n.lower()] and n not in _CALENDAR
        )
        self.known = frozenset(self.names)

    def draw(self, rng: random.Random, texts: Sequence[str]) -> dict[str, str]:
        """Draw one replacement for each name and number that occurs in ``texts``."""
        joined = " ".join(texts)
        names = sorted(set(_NAME.findall(joined)) & self.known)
        table = {name: rng.choice(self.names) for name in names if rng.random() < 0.8}
        for number in sorted(set(_NUMBER.findall(joined))):
            table[number] = _other_number(rng, number)
        return table

    def apply(self, table: dict[str, str], text: str) -> str:
        """Replace whole names and whole numbers of ``text`` by ``table``; a lower-case text stays so."""
        if text == text.lower():
            table = {old.lower(): new.lower() for old, new in table.items()}
            return _TOKEN.sub(lambda m: table.get(m.group(), m.group()), text)
        text = _NAME.sub(lambda m: table.get(m.group(), m.group()), text)
        return _NUMBER.sub(lambda m: table.get(m.group(), m.group()), text)


def _other_number(rng: random.Random, number: str) -> str:
    if _YEAR.fullmatch(number):
        return str(rng.randint(1600, 2024))
    first = rng.choice("123456789")
    return first + "".join(rng.choice("0123456789") for _ in number[1:])


class ExampleMaker:
    """Draws examples of a given length from articles.

    Parameters
    ----------
    articles
        The articles of one split.
    substitution
        Where replacement names come from; None keeps the real names and numbers.
    """

    def __init__(self, articles: Sequence[Article], substitution: Substitution | None) -> None:
        self.articles = articles
        self.substitution = substitution
        self._places = [(i, j) for i, a in enumerate(articles) for j in range(len(a.paragraphs))]

    def draw(self, rng: random.Random, max_characters: int) -> QAExample:
        """Draw one example whose passages, question and answer hold about ``max_characters`` or fewer."""
        while True:
            example = self._try(rng, max_characters)
            if example is not None:
                return example

    def _try(self, rng: random.Random, max_characters: int) -> QAExample | None:
        opening = rng.random() < OPENING_SHARE
        article_index, paragraph = (rng.randrange(len(self.articles)), 0) if opening else rng.choice(self._places)
        article = self.articles[article_index]
        heading, sentences = article.paragraphs[paragraph]
        start = 0 if opening or len(sentences) == 1 else rng.randrange(len(sentences))
        if not opening and paragraph == 0 and start == 0:
            return None
        wanted = rng.choice((1, 1, 2)) if max_characters < 500 else rng.choice((1, 2, 2, 3, 3, 4))
        answer = list(sentences[start : start + wanted])
        question = _question(rng, article, heading, answer, opening=opening)
        if question is None:
            return None
        support = list(answer)
        unsupported = -1
        if len(answer) > 1 and rng.random() < UNSUPPORTED_SHARE:
            unsupported = rng.randrange(1, len(answer))
            support[unsupported] = ""
        budget = max_characters - sum(map(len, answer)) - len(question)
        if budget < sum(map(len, support)):
            return None
        passages = self._passages(rng, article, sentences, start, support, budget)
        if rng.random() < NO_PASSAGES_SHARE:
            passages = ()
        answer = [_rephrase(rng, s, index=i) for i, s in enumerate(answer)]
        supported = tuple(bool(passages) and i != unsupported for i in range(len(answer)))
        example = QAExample(question, tuple(passages), tuple(answer), supported, article.title)
        return self._substituted(rng, example)

    def _passages(
        self,
        rng: random.Random,
        article: Article,
        sentences: Sequence[str],
        start: int,
        support: Sequence[str],
        budget: int,
    ) -> tuple[str, ...]:
        before, after = list(sentences[:start]), list(sentences[start + len(support) :])
        core = [s for s in support if s]
        room = budget - sum(map(len, core))
        while room > 0 and (before or after) and rng.random() < 0.8:
            piece = before.pop() if before and (not after or rng.random() < 0.5) else after.pop(0)
            if len(piece) > room:
                break
            room -= len(piece)
            core = [piece, *core] if piece in sentences[:start] else [*core, piece]
        passages = [" ".join(core)]
        most = max(6, budget // 300)
        while room > 60 and len(passages) < most and rng.random() < 0.95:
            other = article if rng.random() < 0.35 else rng.choice(self.articles)
            _, pool = rng.choice(other.paragraphs)
            first = rng.randrange(len(pool))
            taken: list[str] = []
            for sentence in pool[first : first + rng.randint(1, 8)]:
                if len(sentence) > room or sentence in support or sentence in passages[0]:
                    break
                taken.append(sentence)
                room -= len(sentence)
            if taken:
                passages.append(" ".join(taken))
        rng.shuffle(passages)
        return tuple(passages)

    def _substituted(self, rng: random.Random, example: QAExample) -> QAExample:
        if self.substitution is None or rng.random() > SUBSTITUTION_SHARE:
            return example
        texts = (example.question, *example.passages, *example.answer)
        table = self.substitution.draw(rng, texts)
        replaced = [self.substitution.apply(table, text) for text in texts]
        n = len(example.passages)
        return QAExample(
            replaced[0], tuple(replaced[1 : n + 1]), tuple(replaced[n + 1 :]), example.supported, example.title
        )


def _question(
    rng: random.Random, article: Article, heading: str, answer: Sequence[str], *, opening: bool
) -> str | None:
    title = article.title.split(" (")[0]
    if opening:
        forms = (f"Tell me about {title}.", f"What is {title}?", f"Who or what is {title}?", f"who is {title.lower()}")
        return rng.choice(forms)
    first = answer[0]
    forms = []
    names = [n for n in _TITLE_PHRASE.findall(first) if n not in title]
    if names:
        name = rng.choice(names)
        forms += [f"What is said about {name}?", f"How is {name} connected to {title}?"]
    years = _YEAR.findall(first)
    if years:
        forms += [f"What happened in {years[0]}?", f"What happened to {title} in {years[0]}?"]
    if heading:
        forms += [f"What is known about the {heading.lower()} of {title}?"]
    words = [w for w in _WORD.findall(first) if len(w) > 5 and w.islower()]
    if len(words) >= 2:
        a, b = rng.sample(range(len(words)), 2)
        one, two = words[min(a, b)], words[max(a, b)]
        forms += [f"Explain the {one} and the {two}.", f"what is the {one} {two}", f"{title.lower()} {one} {two}"]
    return rng.choice(forms) if forms else None


def _rephrase(rng: random.Random, sentence: str, *, index: int) -> str:
    if rng.random() < 0.3:
        sentence = _PARENTHESIS.sub("", sentence)
    if rng.random() < 0.12:
        head, comma, _ = sentence.rpartition(", ")
        if comma and len(head) > 40:
            sentence = head + "."
    if rng.random() < 0.08:
        sentence = rng.choice(_LINKERS if index else _OPENERS) + sentence
    return sentence
