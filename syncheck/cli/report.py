"""``syncheck report``: a page of many scored answers."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from syncheck.base.errors import InputError, SyncheckError
from syncheck.base.printable import counted
from syncheck.base.records import JsonDict, Record, RefusedRecord, parsed_record
from syncheck.cli.options import Options
from syncheck.corpus import corpus_lines
from syncheck.corpus.records import ScoredAnswer, answer_of
from syncheck.corpus.store import is_stored, stored_rows
from syncheck.labelling.datasets import response_of
from syncheck.labelling.responses import LabelledResponse
from syncheck.report.overview import KINDS, LabelCurves, Overview

_POINTS = 200  # of a curve on the page
_SHOWN = 3  # errors that are printed


def report_options(add: Options) -> None:
    """Add the options of ``report``."""
    add("input SCORES", "output of score or generate: a JSON Lines file, a store, or - for standard input")
    add("--html FILE = report.html", "file for the page")
    add(
        "--records FILE",
        "the scored records, to show their questions and, if they have labels, ROC, reliability and "
        "risk-coverage curves",
    )
    add("--title TITLE = Scored answers", "heading of the page")


def report(args: argparse.Namespace) -> int:
    """Draw the page of a file or store; returns the exit code."""
    if args.input != "-" and not Path(args.input).exists():
        raise InputError(f"{args.input!r} does not exist; pass the output of `syncheck score` or `generate`")
    if args.input == args.records == "-":
        raise InputError("scores and --records cannot both come from standard input; pass one of them as a file")
    records, unread = ({}, []) if args.records is None else _records(args.records)
    refused: list[RefusedRecord] = []
    unknown: list[str] = []
    overview = Overview(_answers(args.input, records, refused, unknown))
    without_answer = {(one.line, one.id) for one in refused}
    refused += [one for one in unread if (one.line, one.id) not in without_answer]
    named = {one.id for one in unread}
    unknown = [name for name in unknown if name not in named]
    scores, labels = overview.labelled()
    curves = label_curves(scores, labels) if len(set(labels.tolist())) == 2 else None
    page = overview.to_html(title=args.title, curves=curves, refused=refused)
    Path(args.html).write_text(page, encoding="utf-8", errors="backslashreplace")
    counts = ", ".join(f"{overview.kinds[kind]} {kind}" for kind in KINDS if overview.kinds[kind])
    answers, sentences = counted(overview.answers, "answer"), counted(overview.sentences, "sentence")
    sys.stdout.write(f"{answers}, {sentences}: {counts or 'none'}\n")
    if unknown:
        are = "1 answer is" if len(unknown) == 1 else f"{len(unknown)} answers are"
        sys.stderr.write(f"syncheck report: {are} not in --records, {unknown[0]!r} first\n")
    if len(labels) and curves is None:
        sys.stderr.write("syncheck report: all labels are alike, so that there are no curves to draw\n")
    for one in refused[:_SHOWN]:
        sys.stderr.write(f"{one.source}:{one.line}: {one.reason}\n")
    if len(refused) > _SHOWN:
        sys.stderr.write(f"syncheck report: {len(refused) - _SHOWN:,} more errors, see the page\n")
    sys.stdout.write(f"Page: {Path(args.html).resolve()}\n")
    return 2 if refused else 0


def label_curves(scores: NDArray[np.float64], labels: NDArray[np.int64]) -> LabelCurves:
    """Compute the agreement of scores (N,) with labels (N,), 1 faithful and 0 unfaithful, which must both occur."""
    from syncheck.evaluation.metrics import auroc, reliability_bins

    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # equal scores pass together
    faithful, passed = np.cumsum(labels[order])[ends], ends + 1
    unfaithful = passed - faithful
    curve = [(0.0, 0.0), *zip(unfaithful / unfaithful[-1], faithful / faithful[-1], strict=True)]
    return LabelCurves(
        sentences=len(scores),
        auroc=auroc(scores, labels),
        roc=_thinned(curve),
        reliability=[(bucket.mean_score, bucket.faithful) for bucket in reliability_bins(scores, labels)],
        risk=_thinned(list(zip(passed / len(scores), unfaithful / passed, strict=True))),
    )


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    kept = np.unique(np.linspace(0, len(points) - 1, min(len(points), _POINTS)).round().astype(int))
    return [(float(points[i][0]), float(points[i][1])) for i in kept]


def _records(source: str) -> tuple[dict[str, LabelledResponse], list[RefusedRecord]]:
    """Read the records that were scored, by id, and those that cannot be used."""
    records, unread = dict[str, LabelledResponse](), list[RefusedRecord]()
    for line in corpus_lines(source):
        row: JsonDict = {}
        try:
            row = parsed_record(line.content, line.source, line.number)
            named = {} if row.get("id") is None else {"id": str(row["id"])}
            record = Record(row | named, line.source, line.number)
            response = response_of(record)
            if records.setdefault(response.id, response) is not response:
                raise record.error(f"another record has the id {response.id!r}; give each its own", "id")
        except SyncheckError as error:
            why = f"{error}. Its answer, if it has one, is shown without question and labels"
            unread.append(RefusedRecord.of(line.source, line.number, row, why))
    return records, unread


def _answers(
    source: str, records: dict[str, LabelledResponse], refused: list[RefusedRecord], unknown: list[str]
) -> Iterator[ScoredAnswer]:
    """Yield the answers of a file or store with questions and labels of their records; add the rest to the lists."""
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
        if (record := records.get(answer.id)) is not None:
            yield replace(answer, question=record.question, labels=_labels(answer, record))
            continue
        if records:
            unknown.append(answer.id)
        yield answer


def _lines(source: str) -> Iterator[tuple[str, int, bytes]]:
    if source != "-" and is_stored(source):
        for number, row in enumerate(stored_rows(source), 1):
            yield source, number, json.dumps(row).encode()
    else:
        for line in corpus_lines(source):
            yield line.source, line.number, line.content


def _labels(answer: ScoredAnswer, record: LabelledResponse) -> tuple[bool | None, ...]:
    """Find the label of each sentence that the record has; it may be that of another response to the question."""
    if record.spans is None and record.sentences is None:
        return ()
    return tuple(
        _label(record, s.start, s.end) if record.response[s.start : s.end].strip() == s.text.strip() else None
        for s in answer.sentences
    )


def _label(record: LabelledResponse, start: int, end: int) -> bool | None:
    if record.spans is not None:
        return not any(span.start < end and start < span.end for span in record.spans)
    shared = {s.faithful for s in record.sentences or () if s.start < end and start < s.end}
    return False if False in shared else None if None in shared or not shared else True
