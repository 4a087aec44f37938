"""Answers in JSON, right ones and wrong ones about the same passage: the mean score of each.

    python benchmarks/json_answers.py --monitor generic-reader

Nothing was chosen on these. Some values of a wrong answer are right.
"""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from syncheck import Verifier, load_kit

ANSWERS: list[tuple[str, Any, Any]] = [
    (
        "The Avon bridge opened in 1967. It has two lanes and a toll of 3 euros. It is open at night.",
        {"name": "Avon bridge", "opened": 1967, "lanes": 2, "toll_in_euros": 3, "open_at_night": True},
        {"name": "Avon bridge", "opened": 1976, "lanes": 6, "toll_in_euros": 8, "open_at_night": False},
    ),
    (
        "The Basic plan costs 9 euros a month and has 10 GB of storage. The Pro plan costs 29 euros a month and has "
        "200 GB of storage.",
        {"plans": [{"name": "Basic", "price": "9 euros a month"}, {"name": "Pro", "storage": "200 GB"}]},
        {"plans": [{"name": "Basic", "price": "19 euros a month"}, {"name": "Pro", "storage": "2 TB"}]},
    ),
    (
        "Maria Silva was born in Porto in 1961. She studied chemistry and has led the institute since 2015.",
        {"person": {"name": "Maria Silva", "born": 1961, "birthplace": "Porto"}, "leads_institute_since": 2015},
        {"person": {"name": "Maria Silva", "born": 1971, "birthplace": "Lisbon"}, "leads_institute_since": 2005},
    ),
    (
        "The lamp weighs 1.2 kg and is in stock. It comes in white and in black, and has a warranty of two years.",
        {"weight": "1.2 kg", "inStock": True, "colours": ["white", "black"], "warranty": "two years"},
        {"weight": "2.1 kg", "inStock": False, "colours": ["red", "green"], "warranty": "five years"},
    ),
    (
        "The mill is open from April to October, except on Mondays. Tickets cost 5 euros, and children enter for free.",
        {"opens": "April", "closes": "October", "closed_on": ["Monday"], "ticket": "5 euros", "children": "free"},
        {"opens": "May", "closes": "December", "closed_on": ["Sunday"], "ticket": "15 euros", "children": "2 euros"},
    ),
]


def scores(verifier: Verifier) -> Iterator[tuple[float, float]]:
    """Yield the mean scores of the right and of the wrong answer about each passage."""
    for passage, right, wrong in ANSWERS:
        asked = {"question": "What does the text say?", "passages": [passage]}
        yield tuple(verifier.check(json.dumps(answer), **asked).faithfulness for answer in (right, wrong))


def main() -> None:
    """Print the mean scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--monitor", default="generic-reader")
    for right, wrong in scores(load_kit(parser.parse_args().monitor)):
        print(f"right {right:.2f}, wrong {wrong:.2f}")


if __name__ == "__main__":
    main()
