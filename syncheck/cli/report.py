"""``syncheck report``: a page of many scored answers."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from syncheck.base.errors import InputError, SyncheckError
from syncheck.base.printable import counted
from syncheck.base.records import JsonDict, RefusedRecord, parsed_record
from syncheck.cli.options import Options
from syncheck.corpus import corpus_lines
from syncheck.corpus.records import ScoredAnswer, answer_of
from syncheck.corpus.store import is_stored, stored_rows
from syncheck.report.overview import KINDS, Overview

_SHOWN = 3  # errors that are printed


def report_options(add: Options) -> None:
    """Add the options of ``report``."""
    add("input SCORES", "output of score or generate: a JSON Lines file, a store, or - for standard input")
    add("--html FILE = report.html", "file for the page")
    add("--title TITLE = Scored answers", "heading of the page")


def report(args: argparse.Namespace) -> int:
    """Draw the page of a file or store; returns the exit code."""
    if args.input != "-" and not Path(args.input).exists():
        raise InputError(f"{args.input!r} does not exist; pass the output of `syncheck score` or `generate`")
    refused: list[RefusedRecord] = []
    overview = Overview(_answers(args.input, refused))
    page = overview.to_html(title=args.title, refused=refused)
    Path(args.html).write_text(page, encoding="utf-8", errors="backslashreplace")
    counts = ", ".join(f"{overview.kinds[kind]} {kind}" for kind in KINDS if overview.kinds[kind])
    answers, sentences = counted(overview.answers, "answer"), counted(overview.sentences, "sentence")
    sys.stdout.write(f"{answers}, {sentences}: {counts or 'none'}\n")
    for one in refused[:_SHOWN]:
        sys.stderr.write(f"{one.source}:{one.line}: {one.reason}\n")
    if len(refused) > _SHOWN:
        sys.stderr.write(f"syncheck report: {len(refused) - _SHOWN:,} more errors, see the page\n")
    sys.stdout.write(f"Page: {Path(args.html).resolve()}\n")
    return 2 if refused else 0


def _answers(source: str, refused: list[RefusedRecord]) -> Iterator[ScoredAnswer]:
    """Yield the answers of a file or store; add the lines without one to the list."""
    for name, number, content in _lines(source):
        row: JsonDict = {}
        try:
            row = parsed_record(content, name, number)
            if "error" in row:
                line = row["line"] if isinstance(row.get("line"), int) else number
                refused.append(RefusedRecord.of(name, line, row, str(row["error"])))
                continue
            answer = answer_of(row)
        except SyncheckError as error:
            refused.append(RefusedRecord.of(name, number, row, str(error)))
            continue
        yield answer


def _lines(source: str) -> Iterator[tuple[str, int, bytes]]:
    if source != "-" and is_stored(source):
        for number, row in enumerate(stored_rows(source), 1):
            yield source, number, json.dumps(row).encode()
    else:
        for line in corpus_lines(source):
            yield line.source, line.number, line.content
