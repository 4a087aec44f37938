"""Articles of Wikipedia in paragraphs of sentences, and names and numbers in place of theirs."""

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


_NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")
_TOKEN = re.compile(r"[a-z]+|\d+")
_NUMBER = re.compile(r"\d+")
_YEAR = re.compile(r"\b1[5-9]\d\d\b|\b20[0-2]\d\b")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Z]|St|Dr|Mr|Mrs|Ms|Jr|Sr|vs|Inc|Ltd|Co|No|Vol|approx|ca|c|Prof|Gen|Col|Rev|Mt|Ft))\.$"
)
_CALENDAR = frozenset(
    "January February March April May June July August September October November December "
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
)


@dataclass(frozen=True, slots=True)
class Article:
    """An article as paragraphs of sentences, each paragraph with its heading."""

    title: str
    paragraphs: tuple[tuple[str, tuple[str, ...]], ...]


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
