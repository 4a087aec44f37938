"""The measured sentences that a command's ``--data`` asks for, and the files it writes about them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from syncheck.alignment import Aligner
from syncheck.cli.labelling_models import kept_labels, proposition_models
from syncheck.cli.monitors import monitor_for
from syncheck.errors import InputError
from syncheck.labelling import LabelledResponse, Selection, carried_line, load_records
from syncheck.monitor import Monitor
from syncheck.printable import printable
from syncheck.report.plots import IntervalPanel, check_plot
from syncheck.training import (
    LabelledSet,
    MeasuredSentences,
    SetName,
    check_measured_by,
    left_out_lines,
    measure,
    read_parquet,
    select_sentences,
)

if TYPE_CHECKING:
    from syncheck.evaluation import EvaluationTable

__all__ = [
    "check_folder",
    "check_outputs",
    "chosen_responses",
    "chosen_sentences",
    "chosen_sets",
    "folds_of",
    "measured_by",
    "measured_files",
    "panels_of",
    "parts_of",
    "refuse_measuring_options",
    "report_left_out",
    "runs_of",
    "write_json",
]


_MEASURING: Mapping[str, object] = {
    "model": None,
    "monitor": None,
    "aligner": None,
    "aligner_backbone": None,
    "aligner_mode": None,
    "aligner_overflow": None,
    "aligner_entailment": None,
    "schema": None,
    "device": "cpu",
    "abbreviations": None,
    "line_breaks": None,
    "cjk_stops": False,
    "clauses": False,
    "sentences_together": None,
}
"""Options that say how labelled responses are measured, and what each is where it was not given."""


def chosen_responses(
    args: argparse.Namespace, path: Path, *, measured: Callable[[], Aligner | None], output: Path | None = None
) -> list[LabelledResponse]:
    """Return the labelled responses at a path that the options ask for; of a file of features, those in it.

    ``measured`` returns the aligner that will measure them, which may not be the judge that labels them. Labels that a
    propositioner or a judge makes are kept beside ``output``, where there is one, as they are made.
    """
    if path.suffix == ".parquet":
        return list(chosen_sentences(args, path).records)
    selection = _selection(args)
    if output is None or (args.propositioner, args.judge) == (None, None) or not path.is_file():
        propositioner, judge = proposition_models(args, measured=measured)
        return load_records(
            path,
            selection,
            prompts=args.prompts,
            propositioner=propositioner,
            judge=judge,
            carry_labels=args.carry_labels,
        )
    # All of the file is labelled either way, so that another selection finds the labels too.
    return selection.of_responses(kept_labels(args, path, output, measured=measured), source=path)


def chosen_sentences(args: argparse.Namespace, path: Path) -> MeasuredSentences:
    """Read the sentences of a file of features that the options ask for.

    Raises
    ------
    InputError
        If none is left, or prompts, a propositioner or a judge are asked for: it was measured with some already.
    """
    if args.prompts != "monitor":
        raise InputError(f"{path} is measured already; pass --prompts {args.prompts} to `syncheck features`")
    if args.propositioner is not None or args.judge is not None:
        raise InputError(f"{path} is labelled already; pass --propositioner and --judge to `syncheck features`")
    measured = select_sentences(read_parquet(path), _selection(args), source=path)
    if not args.carry_labels:
        return measured
    return replace(measured, records=tuple(replace(record, carry_labels=True) for record in measured.records))


def _selection(args: argparse.Namespace) -> Selection:
    return Selection(
        tasks=args.task,
        split=args.split,
        quality=args.quality,
        generators=args.generator,
        implicit_true=args.implicit_true,
        due_to_null=args.due_to_null,
    )


def measured_by(
    monitor: Monitor,
    args: argparse.Namespace,
    path: Path,
    *,
    check: Callable[[Sequence[LabelledResponse]], None] = lambda records: None,
) -> MeasuredSentences:
    """Measure the labelled responses that the options ask for, or read what ``syncheck features`` measured of them.

    ``check`` is given the records before the work of measuring, and may refuse them.

    Raises
    ------
    MismatchError
        If a file was measured by another model or aligner, holds other features than the monitor reads, or sentences
        that were cut otherwise.
    """
    if path.suffix != ".parquet":
        records = chosen_responses(args, path, measured=lambda: monitor.aligner)
        check(records)
        measured = measure(monitor, records)
    else:
        measured = chosen_sentences(args, path)
        check(measured.records)
        check_measured_by(measured, monitor, source=path)
    report_left_out(measured, path)
    return measured


def report_left_out(measured: MeasuredSentences, path: Path) -> None:
    """Say on standard error which responses of a file do not count, and why, and whose labels were carried over."""
    carried = carried_line((record, measured.bounds_of(i)) for i, record in enumerate(measured.records))
    for line in [*left_out_lines(measured), *([] if carried is None else [carried])]:
        sys.stderr.write(f"{path}: {printable(line)}\n")


def refuse_measuring_options(args: argparse.Namespace, paths: Sequence[str]) -> None:
    """Refuse options that say how to measure where nothing is measured.

    Raises
    ------
    InputError
        If one was given.
    """
    given = [name for name, default in _MEASURING.items() if getattr(args, name, default) != default]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise InputError(
            f"{options} would have no effect: {', '.join(paths)} was measured already, by the model and with "
            "the options of its `syncheck features`. Leave them out, or pass the labelled responses themselves"
        )


def measured_files(args: argparse.Namespace, paths: Sequence[str]) -> dict[str, MeasuredSentences]:
    """Read or measure several files; names are those of the files without their ending.

    Files of features stand for themselves; a model is loaded only where there is something to measure.

    Raises
    ------
    InputError
        If two files have the same name, or an option says how to measure and there is nothing to measure.
    """
    names = [Path(path).stem for path in paths]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"files are told apart by their names; found {', '.join(twice)} more than once in --data")
    if all(Path(path).suffix == ".parquet" for path in paths):
        refuse_measuring_options(args, paths)
        found = {name: chosen_sentences(args, Path(path)) for name, path in zip(names, paths, strict=True)}
        for path, measured in zip(paths, found.values(), strict=True):
            report_left_out(measured, Path(path))
        return found
    monitor = monitor_for(args, "surrogate")
    return {name: measured_by(monitor, args, Path(path)) for name, path in zip(names, paths, strict=True)}


def chosen_sets(chosen: str) -> tuple[SetName, ...]:
    """Return the benchmark sets that ``--set`` asks for."""
    return tuple(name for name in get_args(SetName) if chosen in (name, "both"))


def parts_of(chosen: LabelledSet) -> dict[str, list[str]]:
    """Return what a table is divided by: generators, and tasks where there are several."""
    tasks, generators = chosen.tasks.tolist(), chosen.generators.tolist()
    return ({"task": tasks} if len(set(tasks)) > 1 else {}) | {"generator": generators}


def runs_of(args: argparse.Namespace) -> tuple[int, bool]:
    """Return how often everything is repeated, and whether on the same folds, which ``--seeds`` asks for."""
    if args.repeats is not None:
        return args.repeats, False
    if args.seeds is not None:
        return args.seeds, True
    repeats, same_folds = args.default_runs
    return repeats, same_folds


def folds_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the folds that are asked for, as the functions of :mod:`syncheck.evaluation` take them."""
    repeats, same_folds = runs_of(args)
    return {"folds": args.cv, "repeats": repeats, "seed": args.seed, "same_folds": same_folds}


def panels_of(name: str, table: EvaluationTable) -> list[IntervalPanel]:
    """Return one panel of AUROC for each subset of a table; ``name`` is that of the set."""
    panels = []
    for subset, grouped in groupby(table.rows, key=lambda row: row.subset):
        rows = list(grouped)
        panels.append(
            IntervalPanel(
                f"{name} set, {subset}",
                tuple(row.system for row in rows),
                tuple(row.auroc for row in rows),
                tuple(row.low for row in rows),
                tuple(row.high for row in rows),
            )
        )
    return panels


def check_outputs(args: argparse.Namespace) -> None:
    """Refuse ``--output`` and ``--plot`` that cannot be written, before the work.

    Raises
    ------
    InputError
        If a folder does not exist or is given for a file, or the plot's format is unknown.
    MissingExtraError
        If a plot is asked for and matplotlib is not installed.
    """
    if args.output is not None and not Path(args.output).parent.is_dir():
        raise InputError(f"--output {args.output!r}: the folder does not exist; make it first")
    if args.output is not None and Path(args.output).is_dir():
        raise InputError(f"--output {args.output!r} is a folder; name a file")
    if args.plot is not None:
        check_plot(args.plot)


def check_folder(path: str) -> None:
    """Refuse an ``--output`` that is no folder and cannot be made one, before the work.

    Raises
    ------
    InputError
        If it, or what it would be made in, is a file or cannot be written.
    """
    place = next(place for place in (Path(path).absolute(), *Path(path).absolute().parents) if place.exists())
    if not place.is_dir():
        raise InputError(
            f"--output {path!r}: expected a folder, or a path where one can be made; found a file at {str(place)!r}. "
            "Move it, or pass another path"
        )
    if not os.access(place, os.W_OK | os.X_OK):
        raise InputError(
            f"--output {path!r}: {str(place)!r} cannot be written; change its permissions, or pass another"
        )


def write_json(path: str | None, values: Mapping[str, object]) -> None:
    """Write what a command found, if a file was named."""
    if path is not None:
        Path(path).write_text(json.dumps(values, indent=2, allow_nan=False) + "\n", encoding="utf-8")
