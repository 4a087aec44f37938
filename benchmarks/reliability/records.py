"""Hostile records through a command: no traceback, exit code 0 or 2, every record answered once, good ones as alone.

``python benchmarks/reliability/records.py --count 10000 --seed 0 --command score``

``score``, ``generate`` and ``spans`` read all records in one run. Labelled records end the command that reads them, so
that the other commands get each hostile record in a file of its own, between good ones, in one process.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers

from syncheck import __version__
from syncheck.base import pretrained
from syncheck.cli import main as syncheck

MODEL = Path(__file__).parents[2] / "tests" / "golden" / "signals" / "llama"
"""A small random model: records are tried here, not scores."""
BY_RECORD = ("score", "generate", "spans")
LABELLED = ("features", "train", "evaluate", "ablate", "calibrate")
COMMANDS = (*BY_RECORD, *LABELLED, "spans-score")
HOSTILE_SHARE = 0.7
MARK = b"\xef\xbb\xbf"

Make = Callable[[int, random.Random], dict[str, Any]]


def answered(number: int, rng: random.Random) -> dict[str, Any]:
    """Return a good record of ``score`` and ``generate``."""
    name, year = rng.choice(("Anna Kovac", "Peter Bell", "Olu Ade")), rng.randint(1800, 1999)
    return {
        "id": number,
        "question": f"What did {name} do in {year}?",
        "context": [f"{name} moved to Lisbon in {year}.", "Bern lies on a river."],
        "response": f"{name} moved to Lisbon in {year}. She taught music.",
    }


def labelled(number: int, rng: random.Random) -> dict[str, Any]:
    """Return a good labelled response."""
    record = answered(number, rng)
    start = record["response"].index(" She") + 1
    return record | {"id": f"r{number}", "spans": [{"start": start, "end": len(record["response"])}]}


def spanned(number: int, rng: random.Random) -> dict[str, Any]:
    """Return a good record of ``spans``, with labels."""
    record = answered(number, rng)
    names = {"question": "model_input", "response": "model_output_text", "context": "retrieved_context"}
    labels = {"hard_labels": [[0, 4]], "soft_labels": [{"start": 0, "end": 4, "prob": 0.5}]}
    return {names.get(k, k): v for k, v in record.items()} | labels | {"id": f"s{number}", "lang": "EN"}


VALUES: tuple[Callable[[random.Random], Any], ...] = (
    lambda rng: None,
    lambda rng: True,
    lambda rng: rng.choice((0, -1, 3.5, 10**400, -(2**63), 1e308)),
    lambda rng: rng.choice(
        ("", " ", "\n\n", "\0", "\x1b[31mred\x1b[0m", "\u202egnirts", "\ufeff", "\u0085\u2028", "a" * 50)
    ),
    lambda rng: rng.choice(([], [[]], [None], [""], [1], {}, {"text": "x"}, [{"start": -1, "end": 10**9}])),
    lambda rng: rng.choice((float("nan"), float("inf"), [float("-inf")])),
    lambda rng: rng.choice(("\ud800", "a\udfffb", ["\udc80"])),
    lambda rng: "word " * rng.choice((500, 5000)),
    lambda rng: "".join(
        chr(rng.choice((rng.randint(1, 0x2FF), rng.randint(0x4E00, 0x4EFF), 0x1F600))) for _ in range(60)
    ),
    lambda rng: nested(rng.choice((10, 200, 900, 5000))),
    lambda rng: "<s></s><pad>{{ 1 / 0 }}{% for %}<|im_end|>",
)


def nested(depth: int) -> str:
    """Return a mark for lists in lists, which :func:`line_of` writes: json.dumps would not go so deep."""
    return f"@nested {depth}@"


def line_of(record: dict[str, Any]) -> bytes:
    """Return a record as a line of JSON, with what JSON should not hold as it is."""
    text = json.dumps(record)
    for depth in (10, 200, 900, 5000):
        text = text.replace(f'"{nested(depth)}"', "[" * depth + "]" * depth)
    return text.encode("ascii")


def hostile(record: dict[str, Any], rng: random.Random) -> bytes:
    """Return a record damaged in one of many ways; some are still good records."""
    name = rng.choice(list(record))
    how = rng.randrange(12)
    if how < 6:
        return line_of(record | {name: rng.choice(VALUES)(rng)})
    if how == 6:
        return line_of({k: v for k, v in record.items() if k != name})
    if how == 7:
        return line_of(record)[:-1] + b", " + line_of({name: rng.choice(VALUES)(rng)})[1:]  # a duplicate key
    if how == 8:
        return rng.choice((b"nonsense", b"[1]", b"null", b"{", b'"text"', b"{}", b"\0\0", b"1e999", b"NaN"))
    if how == 9:
        line = bytearray(line_of(record))
        line[rng.randrange(len(line))] = rng.choice((0x00, 0x22, 0x5C, 0x80, 0xC0, 0xFF))
        return bytes(line)
    if how == 10:
        return MARK + line_of(record)
    return line_of(
        record
        | {rng.choice(("system", "sentences", "response_token_ids", "lang", "labels", "x")): rng.choice(VALUES)(rng)}
    )


@contextlib.contextmanager
def models_loaded_once() -> Iterator[None]:
    """Let commands share one model, since loading it is not under test."""
    load = pretrained.load_model
    pretrained.load_model = cache(load)
    try:
        yield
    finally:
        pretrained.load_model = load


def run(*options: str) -> tuple[int | str, str]:
    """Run the command line; return its exit code, or the exception that escaped, and its output."""
    shown = io.StringIO()
    with contextlib.redirect_stderr(shown), contextlib.redirect_stdout(io.StringIO()):
        try:
            code: int | str = syncheck(options)
        except SystemExit as stopped:
            code = f"SystemExit {stopped.code}"
        except BaseException as error:
            code = f"{type(error).__name__}: {error}"
            if isinstance(error, KeyboardInterrupt):
                raise
    return code, shown.getvalue()


def faults(code: int | str, shown: str) -> list[str]:
    """Return what breaks the guarantee of every command."""
    found = [] if code in (0, 2) else [f"exit code {code}"]
    return found + (["traceback"] if "Traceback" in shown else [])


def by_record(command: str, count: int, rng: random.Random, folder: Path) -> tuple[Counter[str], list[str]]:
    """Run all records at once."""
    make = spanned if command == "spans" else answered
    lines, goods = [], {}
    for number in range(count):
        record = make(number, rng)
        if rng.random() < HOSTILE_SHARE:
            lines.append(hostile(record, rng))
        else:
            goods[len(lines)] = record
            lines.append(line_of(record))
    options = ["--method", "refind"] if command == "spans" else ["--aligner", "none"]
    options += ["--max-new-tokens", "8"] if command == "generate" else []

    def rows_of(name: str, given: list[bytes]) -> tuple[list[dict[str, Any]], list[str]]:
        source, target = folder / f"{name}.jsonl", folder / f"{name}.out"
        source.write_bytes(b"".join(line + b"\n" for line in given))
        code, shown = run(command, "--model", str(MODEL), *options, "--input", str(source), "--output", str(target))
        written = target.read_text(encoding="utf-8").split("\n") if target.exists() else []  # U+2028 ends no line
        return [json.loads(row, parse_constant=no_constant) for row in written if row], faults(code, shown)

    rows, broken = rows_of("all", lines)
    if len(rows) != len(lines):
        broken.append(f"{len(lines)} records, {len(rows)} answers")
    for index, row in enumerate(rows):
        if "error" in row and row["line"] != index + 1:
            broken.append(f"record {index + 1} answered as {row['line']}")
    for index in list(goods)[:: max(1, len(goods) // 20)]:
        alone, more = rows_of("alone", [lines[index]])
        broken += more + ([] if alone == rows[index : index + 1] else [f"record {index + 1} differs from itself alone"])
    refused = sum("error" in row for row in rows)
    broken += [f"good record {i + 1}: {rows[i]['error']}" for i in goods if i < len(rows) and "error" in rows[i]]
    return Counter(answered=len(rows) - refused, refused=refused), broken


def no_constant(name: str) -> float:
    """Refuse NaN and infinities in an output."""
    raise ValueError(f"{name} in the output")


def one_by_one(command: str, count: int, rng: random.Random, folder: Path) -> tuple[Counter[str], list[str]]:
    """Run each hostile record in a file of good ones."""
    make: Make = spanned if command == "spans-score" else labelled
    goods = [line_of(make(number, rng)) for number in range(8)]
    data, model = folder / "data.jsonl", ["--model", str(MODEL), "--aligner", "none"]
    options = {
        "features": [*model, "--output", str(folder / "x.parquet")],
        "train": [*model, "--aggregator", "lr", "--overwrite", "--output", str(folder / "trained")],
        "evaluate": [*model, "--cv", "2", "--repeats", "1", "--aggregator", "lr", "--set", "strict"],
        "ablate": [*model, "--cv", "2", "--repeats", "1", "--aggregator", "lr"],
        "calibrate": ["--model", str(MODEL), "--monitor", str(folder / "monitor"), "--risk", "none"],
        "spans-score": ["--reference", str(data), "--draws", "10"],
    }[command]
    if command == "calibrate":
        known = [labelled(i, rng) | {"question": f"Which of {i}?"} for i in range(12)]
        data.write_bytes(b"\n".join(map(line_of, known)))
        code, shown = run(
            "train", *model, "--data", str(data), "--aggregator", "lr", "--output", str(folder / "monitor")
        )
        if code != 0:
            raise SystemExit(f"no monitor to calibrate: {shown}")
    outcomes: Counter[str] = Counter()
    broken: list[str] = []
    for number in range(count):
        line = hostile(make(1000 + number, rng), rng)
        place = rng.randrange(len(goods) + 1)
        data.write_bytes(b"\n".join([*goods[:place], line, *goods[place:]]))
        given = "--predictions" if command == "spans-score" else "--data"
        code, shown = run(command, given, str(data), *options)
        outcomes["used" if code == 0 else "refused"] += 1
        broken += [f"{fault} of {line[:200]!r}: {shown[-300:]}" for fault in faults(code, shown)]
        (folder / "x.parquet").unlink(missing_ok=True)
    return outcomes, broken


def fuzz(command: str, count: int, seed: int) -> tuple[Counter[str], list[str], float]:
    """Return the outcomes, the failures, and the seconds taken."""
    rng = random.Random(seed)
    transformers.logging.set_verbosity_error()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, models_loaded_once():
        trial = by_record if command in BY_RECORD else one_by_one
        outcomes, broken = trial(command, count, rng, Path(folder))
    return outcomes, broken, time.perf_counter() - started


def main(argv: list[str] | None = None) -> int:
    """Print the runs and their outcomes; return 1 if something broke."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", choices=COMMANDS, default="score")
    parser.add_argument("--count", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    outcomes, broken, seconds = fuzz(args.command, args.count, args.seed)
    versions = f"syncheck {__version__}, torch {torch.__version__}, transformers {transformers.__version__}"
    print(
        f"records: {args.command}, count {args.count}, seed {args.seed}; {versions}, Python {platform.python_version()}"
    )
    print(", ".join(f"{what} {number}" for what, number in sorted(outcomes.items())))
    print(f"broken {len(broken)}; {seconds:.1f} s, {1000 * seconds / args.count:.1f} s per 1,000")
    for fault in broken[:20]:
        print(f"  {fault}")
    return int(bool(broken))


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    sys.exit(main())
