r"""Count the articles in which each stem occurs, and write the table that weighs words by their rarity; list names.

    python examples/starter_kit/make_rarity.py --articles articles.jsonl.xz --output syncheck/assets/rarity

Stems in a single article are left out, which halves the table; they weigh as much as unknown ones. Names are the words
that are written with a capital within a sentence in at least ``--least-name`` of all articles, and that in three times
as many articles as in lower case.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from syncheck.text.words import NAMES, TABLE, stem, words

_WITHIN = re.compile(r"(?<=[a-z,] )[^\W\d_]{2,}(?=[ ,.;:)])")
"""Word within a sentence."""
OFTENER = 3


def main() -> None:
    """Write the table and the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--count", type=int, default=4000, help="articles to draw (%(default)s)")
    parser.add_argument(
        "--least", type=int, default=2, help="articles that a stem of the table stands in (%(default)s)"
    )
    parser.add_argument("--least-name", type=int, default=5, help="articles that have a name (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    texts = _texts(args.articles)
    articles = random.Random(args.seed).sample(texts, args.count)
    found = Counter(known for text in articles for known in {stem(word) for word in words(text)})
    kept = sorted((count, known) for known, count in found.items() if count >= args.least)
    lines = [f"{args.count} articles", *(_line(count, rows) for count, rows in groupby(kept, key=lambda row: row[0]))]
    args.output.mkdir(parents=True, exist_ok=True)
    path = args.output / TABLE
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(found)} stems, {len(kept)} kept; {path.stat().st_size} bytes in {path}")
    names = _names(texts, args.least_name)
    (args.output / NAMES).write_text("\n".join(names) + "\n", encoding="utf-8")
    print(f"{len(names)} names in {args.output / NAMES}")


def _names(texts: Iterable[str], least: int) -> list[str]:
    capitalised: Counter[str] = Counter()
    lower: Counter[str] = Counter()
    for text in texts:
        found = set(_WITHIN.findall(text))
        lower.update(word for word in found if word.islower())
        capitalised.update(word.lower() for word in found if word.istitle())
    return sorted(w for w, count in capitalised.items() if count >= max(least, OFTENER * lower[w]))


def _texts(path: Path) -> list[str]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def _line(count: int, rows: Iterable[tuple[int, str]]) -> str:
    return " ".join([str(count), *(known for _, known in rows)])


if __name__ == "__main__":
    main()
