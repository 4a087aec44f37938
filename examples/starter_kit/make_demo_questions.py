r"""Draw questions over held-out Wikipedia articles for ``syncheck demo``.

python examples/starter_kit/make_demo_questions.py --articles articles.jsonl.xz \
    --output syncheck/assets/demo --keep 29 9 44 13 2 16
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from wikipedia_qa import ExampleMaker, QAExample, load_articles

SEED = 5
LENGTH = 1400
"""Characters of passages, question and true answer."""
DRAWN = 60

NOTICE = """# Demo questions

Passages of English Wikipedia, spring 2024, from articles that the kit's model was not trained on; the questions were
made from them by `examples/starter_kit/make_demo_questions.py`. Text: Wikipedia contributors, CC BY-SA 4.0
(<https://creativecommons.org/licenses/by-sa/4.0/>). Articles:

"""


def main() -> None:
    """Draw questions, list them, and write those that were chosen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=Path, required=True)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--keep", type=int, nargs="*", default=[])
    args = parser.parse_args()
    articles = load_articles(args.articles, "heldout")
    maker, rng = ExampleMaker(articles, None), random.Random(SEED)
    drawn = [e for e in (maker.draw(rng, LENGTH) for _ in range(DRAWN)) if len(e.passages) > 1]
    if args.output is None:
        for index, example in enumerate(drawn):
            print(index, example.question, "|", " ".join(example.answer), sep="  ")
        return
    kept = [drawn[i] for i in args.keep]
    sources = {e.question: _titles(e, articles) for e in kept}
    entries = [{"question": e.question, "passages": e.passages, "titles": sources[e.question]} for e in kept]
    args.output.mkdir(parents=True, exist_ok=True)
    text = json.dumps(entries, ensure_ascii=False, indent=2)
    (args.output / "questions.json").write_text(text + "\n", encoding="utf-8")
    titles = sorted({title for entry in entries for title in entry["titles"]})
    (args.output / "README.md").write_text(NOTICE + "\n".join(f"- {t}" for t in titles) + "\n", encoding="utf-8")


def _titles(example: QAExample, articles: list) -> list[str]:
    """Name the article of each passage by its beginning; a passage may leave sentences of its article out."""
    texts = {a.title: " ".join(s for _, sentences in a.paragraphs for s in sentences) for a in articles}
    return [next(title for title, text in texts.items() if passage[:40] in text) for passage in example.passages]


if __name__ == "__main__":
    main()
