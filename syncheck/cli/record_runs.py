"""Runs over records: each is answered once, and a run resumes after the rows that its output has."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

from syncheck.base.errors import InputError
from syncheck.base.files import JsonDict, RefusedRecord
from syncheck.base.progress import progress
from syncheck.cli.outputs import check_file, write_json
from syncheck.cli.summaries import FORMATS, Summary
from syncheck.corpus import Line, Store, Worker, answer, answer_corpus, corpus_lines, count_lines, run_locally
from syncheck.corpus.engines import PART_SIZE, Engine
from syncheck.corpus.plan import BUNDLED_RATES, estimate, load_rates
from syncheck.corpus.records import Work
from syncheck.training.provenance import instrument_of
from syncheck.verifier import Verifier

if TYPE_CHECKING:
    import pyarrow as pa

    from syncheck.monitor import Monitor

_IDLE = frozenset(
    """
    input output html resume format fail_under allow_unscored model aligner engine workers part_size
    """.split()
)
"""Options that change no line of the output, and those that :func:`instrument_of` identifies by weights."""
_FILES = ("monitor", "lid_reference", "passages", "spans")


def facts_of_run(args: argparse.Namespace, monitor: Monitor | Verifier) -> dict[str, str]:
    """Return everything, besides the record, that determines a line of output, by name.

    Files are identified by their contents, not their paths; the model and its aligner by their weights.
    """
    options = {name: value for name, value in vars(args).items() if name not in _IDLE}
    for name in _FILES:
        value = options.get(name)
        if value is not None and Path(value).exists():
            options[name] = _content(Path(value))
    named = {f"--{name.replace('_', '-')}": json.dumps(value, sort_keys=True) for name, value in options.items()}
    dtype = {} if isinstance(monitor, Verifier) else {"dtype": str(monitor.model.dtype)}
    return named | instrument_of(monitor) | dtype | {"version": version("syncheck")}


def _content(place: Path) -> str:
    """Return a digest of a file, or of the files in a folder with their names."""
    digest = hashlib.sha256()
    for file in [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(place)}\n{file.stat().st_size}\n".encode())
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def is_store(output: str) -> bool:
    """Return True if an output is a folder: an existing one, or a name that ends with a slash."""
    return output.endswith(("/", os.sep)) or Path(output).is_dir()


def answer_records(
    args: argparse.Namespace,
    monitor: Monitor | Verifier,
    work: Work,
    make_worker: Callable[[], Worker],
    *,
    seen: Callable[[JsonDict], None] = lambda row: None,
) -> list[RefusedRecord]:
    """Answer the records of ``--input`` into ``--output``: JSON Lines as they come, or a store; as :func:`process`.

    ``work`` answers a record, for JSON Lines; ``make_worker`` builds the worker that answers records of a corpus, in
    this process, with ``monitor``, or in another. ``seen`` is called with each line of output or row of the store,
    including those of an earlier run.
    """
    threshold = getattr(args, "fail_under", None)
    summary = Summary(monitor.config.backtrack_threshold if threshold is None else threshold)

    def counted(row: JsonDict) -> None:
        summary.add(row)
        seen(row)

    facts = facts_of_run(args, monitor)
    into = (
        _into_store(args, facts, make_worker, counted)
        if is_store(args.output)
        else _into_lines(args, facts, work, counted)
    )
    sys.stderr.write(f"syncheck {args.command}: {summary}")
    return into


def _into_lines(
    args: argparse.Namespace, facts: dict[str, str], work: Work, seen: Callable[[JsonDict], None]
) -> list[RefusedRecord]:
    for name in ("engine", "workers", "part_size", "batch_tokens"):
        if getattr(args, name, None) is not None:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} needs a store as --output; name a folder, with a slash at the end")
    if args.resume and args.format != "jsonl":
        raise InputError(f"--resume needs JSON Lines output; leave out --resume or --format {args.format}")
    run = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    form = FORMATS[args.format]
    return process(args.input, args.output, work, run=run, resume=args.resume, seen=seen, form=form)


def _into_store(
    args: argparse.Namespace, facts: dict[str, str], make_worker: Callable[[], Worker], seen: Callable[[JsonDict], None]
) -> list[RefusedRecord]:
    if args.format != "jsonl":
        raise InputError(f"--format {args.format} is for lines of text, but a store keeps Parquet; leave it out")
    if args.resume:
        raise InputError("a store always continues by itself; leave --resume out")
    refused: list[RefusedRecord] = []

    def told(table: pa.Table) -> None:
        for column in table.filter(table["error"].is_valid()).to_pylist():
            sys.stderr.write(f"{column['source']}:{column['line']}: {column['error']}\n")

    with Store(args.output, facts) as store:
        asked = answer_corpus(
            corpus_lines(args.input),
            store,
            make_worker,
            engine=engine_of(args),
            part_size=args.part_size or PART_SIZE,
            total=count_lines(args.input),
            on_part=told,
        )
        for key, row in store.rows():
            if key in asked:
                seen(row)
                if "error" in row:
                    refused.append(RefusedRecord(args.input, row["line"], str(row["id"] or ""), row["error"]))
        others = len(store) - len(asked)
    sys.stderr.write(
        f"{args.output}: {len(asked)} records, {len(refused)} with an error"
        f"{f'; {others} rows of records that are not in {args.input}' if others else ''}\n"
    )
    return refused


def engine_of(args: argparse.Namespace) -> Engine:
    """Return the engine that ``--engine`` and ``--workers`` name."""
    if args.engine != "ray":
        if args.workers is not None:
            raise InputError("--workers needs --engine ray; add that, or leave --workers out")
        return run_locally
    os.environ.setdefault("RAY_DATA_LOG_LEVEL", "WARNING")  # read when Ray is imported
    from syncheck.corpus.on_ray import run_on_ray

    return partial(run_on_ray, workers=args.workers or 1, gpus=int(args.device == "cuda"))


def plan(args: argparse.Namespace) -> int:
    """Print the estimated time and memory for a corpus; return the exit code."""
    check_file("--output", args.output)
    rates = load_rates(args.rates or BUNDLED_RATES)
    found = estimate(
        rates,
        answers=args.answers,
        context_tokens=args.context_tokens,
        answer_tokens=args.answer_tokens,
        workers=args.workers,
        batch_tokens=args.batch_tokens,
    )
    price = args.price_per_hour
    sys.stdout.write(
        f"{args.answers:,.0f} answers of {args.answer_tokens:g} tokens over {args.context_tokens:g}; measured with "
        f"{', '.join(rates.machine.values())}\n{'workers':>8} {'hours':>12} {'memory, GB':>12}"
        f"{'' if price is None else f'{chr(32):>8}cost'}\n"
    )
    for row in found:
        hours = f"{_hours(row.hours)}{'*' if row.hours_extrapolated else ' '}"
        memory = f"{row.memory_gb:,.1f}{'*' if row.memory_extrapolated else ' '}"
        cost = "" if price is None else f" {row.hours * row.workers * price:>11,.2f}"
        sys.stdout.write(f"{row.workers:>8} {hours:>12} {memory:>12}{cost}\n")
    if any(row.hours_extrapolated or row.memory_extrapolated for row in found):
        sys.stdout.write("* extrapolated beyond what was measured\n")
    write_json(args.output, {"machine": dict(rates.machine), "estimates": [asdict(row) for row in found]})
    return 0


def _hours(hours: float) -> str:
    """Return hours with two decimals, or with two digits where they would say nothing."""
    return f"{hours:,.2f}" if hours >= 0.1 else f"{hours:.2g}"


def process(
    source: str,
    target: str,
    work: Callable[[JsonDict], JsonDict],
    *,
    run: str | None = None,
    resume: bool = False,
    seen: Callable[[JsonDict], None] = lambda row: None,
    form: Callable[[JsonDict, IO[str]], str] = FORMATS["jsonl"],
) -> list[RefusedRecord]:
    """Apply ``work`` to each record of a file and write the results; ``-`` is standard input or output.

    Any error that ``work`` raises, and an output that JSON cannot represent, is written as ``{"id", "line", "error"}``.
    ``run`` identifies the options of this run; each line of output then has a ``digest`` of them and its record. With
    ``resume``, the run continues after the lines that ``target`` has of it, and an incomplete last line is dropped and
    made again. ``seen`` is called with each line of output, including those of an earlier run; ``form`` gives its text.

    The result has the records that failed, in order, including those of an earlier run.
    """
    if source != "-" and Path(target).exists() and Path(source).exists() and Path(target).samefile(source):
        raise InputError(f"the output {target!r} is the input, and would overwrite it; write to another file")
    refused: list[RefusedRecord] = []
    lines = corpus_lines(source)
    for line, row in _answered(lines, target, run) if resume else ():
        seen(row)
        if "error" in row:
            refused.append(RefusedRecord.of(line.source, line.number, row, str(row["error"])))
    first = next(lines, None)  # unreadable input is reported before an earlier output is overwritten
    given = lines if first is None else chain([first], lines)
    with _writable(target, "a" if resume else "w") as output:
        for line in progress(given, desc="records", unit=" records"):
            row = answer(line, work) | ({} if run is None else {"digest": line.digest(run)})
            if "error" in row:
                refused.append(RefusedRecord.of(line.source, line.number, row, str(row["error"])))
                sys.stderr.write(f"{line.source}:{line.number}: {refused[-1].reason}\n")
            seen(row)
            output.write(form(row, output) + "\n")
            output.flush()
    return refused


def _answered(lines: Iterator[Line], target: str, run: str | None) -> Iterator[tuple[Line, JsonDict]]:
    """Yield the lines of a file that belong to this run, with their records; an incomplete last line is dropped."""
    if run is None or target == "-":
        raise InputError("--resume needs a file to continue; pass --output FILE")
    if not Path(target).exists():
        return
    with open(target, "r+b") as file:
        whole = 0
        for place, written in enumerate(file, 1):
            if not written.endswith(b"\n"):
                file.truncate(whole)
                return
            line = next(lines, None)
            row: JsonDict = {}
            with suppress(TypeError, ValueError, RecursionError):  # damaged: not an answer of this run
                row = dict(json.loads(written))
            if line is None or row.get("digest") != line.digest(run):
                raise InputError(
                    f"cannot continue {target!r}: expected its line {place} to be the answer to "
                    f"{'a record' if line is None else f'the record of line {line.number}'} with the options of this "
                    f"run; found {'no more records' if line is None else 'another'}. Continue with the records, models "
                    "and options of that run, or write to another file"
                )
            whole += len(written)
            yield line, row


@contextmanager
def _writable(name: str, mode: str) -> Iterator[IO[str]]:
    """Open an output in UTF-8; half a character that a message quotes is written as in JSON."""
    if name == "-":
        if isinstance(sys.stdout, TextIOWrapper):  # UTF-8 whatever the locale is
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        yield sys.stdout
        return
    try:
        stream = open(name, mode, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    except OSError as error:
        raise InputError(f"cannot open {name!r}: {error.strerror}") from error
    with stream:
        yield stream
