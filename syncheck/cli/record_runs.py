"""Runs over records: each is answered once, a run resumes after the rows of its output, and a summary ends it."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import syncheck
from syncheck.base.errors import InputError
from syncheck.base.files import file_sha256
from syncheck.base.printable import counted, printable, progress, shortened
from syncheck.base.records import JsonDict, RefusedRecord
from syncheck.cli.monitors import Scorer
from syncheck.cli.options import flag
from syncheck.corpus import Line, Store, Worker, answer, answer_corpus, corpus_lines, count_lines
from syncheck.corpus.records import Work, answer_of, opened
from syncheck.corpus.store import PART_SIZE
from syncheck.report import wants_colour
from syncheck.report.labels import citation_facts
from syncheck.report.terminal import render_sentences
from syncheck.results.report import CitationCounts
from syncheck.results.types import WITHOUT_CLAIM

if TYPE_CHECKING:
    import pyarrow as pa

_WORST = 3  # sentences in a summary
_SHOWN = 100  # characters of each
_FAILED = ("record", "with an error")
_CUT = ("record", "with text after an end-of-text token")


class Summary:
    """Counter of the lines of output, which it summarises in words, with the lowest scores below the threshold."""

    def __init__(self, threshold: float, fails: Callable[[Sequence[float]], bool] | None = None) -> None:
        self.threshold = threshold
        self._fails = fails  # whether an answer with these scores counts as failed
        self.answers = self.sentences = self.scored = self.below = self.failed = self.degenerate = self.reasoned = 0
        self.unscored: Counter[tuple[str, str]] = Counter()
        """What could not be checked, such as ``("sentence", "with status failed")``. An empty response is among it."""
        self.without_claim: Counter[str] = Counter()
        """Sentences that claim nothing, such as a bullet or a label, and so cannot be wrong, by status."""
        self.citations = CitationCounts()
        self._worst: list[tuple[float, int, str]] = []
        self._monitors: dict[str, None] = {}

    def add(self, row: JsonDict) -> None:
        """Count a line of output."""
        if "error" in row:
            self.unscored[_FAILED] += 1
            return
        self.answers += 1
        self.reasoned += "reasoning" in row
        if row.get("monitor"):
            self._monitors[row["monitor"]] = None
        self.citations += CitationCounts.of(answer_of(row).sentences)
        before = self.scored, self.degenerate, self.unscored.total()
        for sentence in row["sentences"]:
            self._add_sentence(row, sentence)
        scores = [s["score"] for s in row["sentences"] if s["score"] is not None]
        self.failed += bool(scores) and self._fails is not None and self._fails(scores)
        if row.get("after_end"):
            self.unscored[_CUT] += 1
        elif before == (self.scored, self.degenerate, self.unscored.total()):
            self.unscored["record", "without a sentence to check"] += 1

    def _add_sentence(self, row: JsonDict, sentence: JsonDict) -> None:
        self.sentences += 1
        score, status = sentence["score"], sentence["status"]
        self.degenerate += status == "degenerate"
        if score is not None:
            self.scored += 1
            if not score >= self.threshold:
                self.below += 1
                text = shortened(" ".join(sentence["text"].split()), _SHOWN)
                shown = (score, self.scored, f"{score:.2f}  {_name(row)}  {text}")
                self._worst = sorted([*self._worst, shown])[:_WORST]
        elif status in WITHOUT_CLAIM:
            self.without_claim[status] += 1
        elif status != "degenerate":
            self.unscored["sentence", f"with status {status}"] += 1

    def __str__(self) -> str:
        counts = [counted(self.answers, "answer"), counted(self.sentences, "sentence")]
        if self.scored:
            counts.append(f"{self.below / self.scored:.1%} of {self.scored} scored below {_rounded(self.threshold)}")
        if self.sentences > self.scored:
            counts.append(f"{self.sentences - self.scored} without a score")
        counts += citation_facts(self.citations)
        if cut := self.unscored[_CUT]:
            counts.append(f"{counted(cut, 'answer')} with text after an end-of-text token, which was not read")
        if self.reasoned:
            counts.append(f"{counted(self.reasoned, 'answer')} after reasoning, which was not scored")
        if errors := self.unscored[_FAILED]:
            counts.append(f"{counted(errors, 'record')} with an error")
        if self._monitors:
            counts.append(f"monitor {' and '.join(self._monitors)}")
        worst = ["lowest scores:", *(f"  {text}" for *_, text in self._worst)] if self._worst else []
        return printable("\n".join([", ".join(counts), *worst]) + "\n")


def _rounded(threshold: float) -> str:
    """Round a threshold to three digits; to more where it would be 1 otherwise."""
    shown = f"{threshold:.3g}"
    return f"{threshold:g}" if float(shown) == 1 else shown


def _name(row: Mapping[str, Any]) -> str:
    return "-" if row.get("id") is None else " ".join(str(row["id"]).split())


def _human(row: JsonDict, stream: IO[str]) -> str:
    """Write an answer as a block, each sentence with score and verdict, in colour if the stream is a terminal."""
    if "error" in row:
        return printable(f"{_name(row)}\n  error  {row['error']}\n")
    answer, title, colour = answer_of(row), _name(row), wants_colour(stream)
    stop, message = row.get("stop"), row.get("trace", {}).get("message")
    return render_sentences(answer.sentences, title=title, stop=stop, message=message, colour=colour)


def _json(row: JsonDict, stream: IO[str]) -> str:
    text = json.dumps(row, ensure_ascii=False)
    return printable(text) if stream.isatty() else text


FORMATS: Mapping[str, Callable[[JsonDict, IO[str]], str]] = {"human": _human, "jsonl": _json}
"""Functions that write a line of output for a stream, by the value of ``--format``."""


_IDLE = """
    input output html resume format fail_under fail_answers_under fail_under_citations answer_prior allow_unscored model
    aligner part_size
    """.split()
"""Options that change no line of the output, and those that :func:`instrument_of` identifies by weights."""
_FILES = ("monitor", "lid_reference", "passages", "spans")


def facts_of_run(args: argparse.Namespace, monitor: syncheck.Monitor | syncheck.Verifier) -> dict[str, str]:
    """Collect everything, besides the record, that determines a line of output, by name.

    Files are identified by their contents, not their paths; the model and its aligner by their weights.
    """
    from syncheck.training.provenance import run_facts

    options = {name: value for name, value in vars(args).items() if name not in _IDLE}
    for name in _FILES:
        if options.get(name) is not None and Path(options[name]).exists():
            options[name] = _content(Path(options[name]))
    identified = {flag(name): json.dumps(value, sort_keys=True) for name, value in options.items()}
    return identified | run_facts(monitor)


def _content(place: Path) -> str:
    """Compute a digest of a file, or of the files in a folder with their names."""
    files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    told = "\n".join(f"{file.relative_to(place)} {file_sha256(file)}" for file in files)
    return hashlib.sha256(told.encode()).hexdigest()


def is_store(output: str) -> bool:
    """Tell whether an output is a folder: an existing one, or a name that ends with a slash."""
    return output.endswith(("/", os.sep)) or Path(output).is_dir()


def answer_records(
    args: argparse.Namespace, monitor: Scorer, work: Work, worker: Worker, *, summary: Summary | None = None
) -> list[RefusedRecord]:
    """Answer the records of ``--input`` into ``--output``, as :func:`process`.

    ``work`` answers a record, for JSON Lines, and ``worker`` the records of a part of a store. The ``summary`` counts
    the rows, including those of an earlier run.
    """
    summary = summary or Summary(monitor.config.backtrack_threshold)
    facts = facts_of_run(args, monitor)
    if is_store(args.output):
        refused = _into_store(args, facts, worker, summary.add)
    else:
        for name in ("part_size", "batch_tokens"):
            if getattr(args, name, None) is not None:
                raise InputError(f"{flag(name)} needs a store as --output; name a folder, with a slash at the end")
        if args.resume and args.format != "jsonl":
            raise InputError(f"--resume needs JSON Lines output; leave out --resume or --format {args.format}")
        run, form = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest(), FORMATS[args.format]
        refused = process(args.input, args.output, work, run=run, resume=args.resume, seen=summary.add, form=form)
    sys.stderr.write(f"syncheck {args.command}: {summary}")
    return refused


def _into_store(
    args: argparse.Namespace, facts: dict[str, str], worker: Worker, seen: Callable[[JsonDict], None]
) -> list[RefusedRecord]:
    if args.format != "jsonl":
        raise InputError(f"--format {args.format} is for lines of text, but a store keeps Parquet; leave it out")
    if args.resume:
        raise InputError("a store always continues by itself; leave --resume out")
    refused: list[RefusedRecord] = []

    def write_refused(table: pa.Table) -> None:
        for column in table.filter(table["error"].is_valid()).to_pylist():
            sys.stderr.write(f"{column['source']}:{column['line']}: {column['error']}\n")

    store = Store(args.output, facts)
    lines, total, part_size = corpus_lines(args.input), count_lines(args.input), args.part_size or PART_SIZE
    asked = answer_corpus(lines, store, worker, part_size=part_size, total=total, on_part=write_refused)
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
    made again. ``seen`` is called with each line of output, whose text ``form`` gives, and the result has the records
    that failed, in order; both include those of an earlier run.
    """
    if source != "-" and Path(target).exists() and Path(source).exists() and Path(target).samefile(source):
        raise InputError(f"the output {target!r} is the input, and would overwrite it; write to another file")
    refused: list[RefusedRecord] = []
    lines = corpus_lines(source)
    for line, row in _answered(lines, target, run) if resume else ():
        seen(row)
        if "error" in row:
            refused.append(RefusedRecord.of(line.source, line.number, row, str(row["error"])))
    first = list(islice(lines, 1))  # unreadable input is reported before an earlier output is overwritten
    with _writable(target, "a" if resume else "w") as output:
        for line in progress(chain(first, lines), desc="records", unit=" records"):
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
    with opened(name, mode, encoding="utf-8", errors="backslashreplace") as stream:
        yield stream
