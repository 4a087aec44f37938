"""Accuracy of the language check: English sentences that it accepts, and sentences in other languages that it names.

    python benchmarks/languages.py ragtruth-qa mushroom/test_unlabelled

The check is told apart by sentence: of an English answer none should be foreign to an aligner that reads English, of an
answer in another language as many as possible.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from nltk.tokenize.punkt import PunktSentenceTokenizer

from syncheck.base.records import read_records
from syncheck.text.words import foreign_language


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield language and text of RAGTruth's responses or Mu-SHROOM's answers."""
    for path in sorted(folder.glob("*.jsonl")):
        for record in (read.values for read in read_records(path)):
            if "model_output_text" in record:
                yield record["lang"].lower(), record["model_output_text"]
            elif "response" in record:
                yield "en", record["response"]


def main() -> None:
    """Print a row for each language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    counts: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for folder in parser.parse_args().folders:
        for language, text in texts(folder):
            for sentence in PunktSentenceTokenizer().tokenize(text):
                if sum(map(str.isalpha, sentence)) >= 2:
                    counts[folder.name, language].append(foreign_language(sentence, {"en"}) is not None)
    print(f"{'set':<20}{'language':>9}{'sentences':>11}{'foreign':>9}")
    for (name, language), foreign in sorted(counts.items()):
        print(f"{name:<20}{language:>9}{len(foreign):>11}{sum(foreign) / len(foreign):>9.3f}")


if __name__ == "__main__":
    main()
