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
import sys
from collections.abc import Sequence
from pathlib import Path

from syncheck.base.errors import SyncheckError
from syncheck.base.records import read_records
from syncheck.labelling import F100_ENTITIES, f100_anti_requests, f100_requests, load_passages, write_requests


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
