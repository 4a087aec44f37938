"""Labelled responses that ``--data`` names: selected, labelled and measured as the options say."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncheck import aligners, labelling, training
from syncheck.base.errors import CheckpointError, InputError, MismatchError
from syncheck.base.printable import counted, printable
from syncheck.cli.monitors import Scorer, aligner_for, monitor_to_measure, sentence_options
from syncheck.cli.options import Options, aligner_options, flag, named
from syncheck.report.plots import IntervalPanel
from syncheck.text.sentences import ENGLISH_ABBREVIATIONS
from syncheck.text.sentences.boundaries import MAX_SENTENCE_TOKENS

if TYPE_CHECKING:
    from syncheck.evaluation import AurocMatrix, EvaluationTable

NO_MONITOR = "none; --schema says what is measured"

_MEASURING = (
    *("model", "monitor", "device", "schema", "abbreviations", "line_breaks", "cjk_stops", "clauses"),
    *("sentences_together", "aligner", "aligner_backbone", "aligner_mode", "aligner_overflow", "aligner_entailment"),
)
"""Options that say how labelled responses are measured."""


def add_data(add: Options, *, nargs: str | None = None, several: str = "; several are combined") -> None:
    """Add the options for labelled data; ``several`` ends their help where ``nargs`` takes more than one path."""
    about = f"RAGTruth folder, labelled JSON Lines, or the output of features{several if nargs else ''}"
    add("--data PATH", f"{about}", required=True, nargs=nargs)
    add_selection(add)
    add("--seed SEED", default=0)


def add_selection(add: Options) -> None:
    """Add the fields of :class:`~syncheck.labelling.Selection`."""
    group = add.group(
        "labelled data", "by default everything in a file; from a RAGTruth folder, all answers to questions"
    )
    group("--task NAME", "only these tasks; RAGTruth has QA, Summary and Data2txt", nargs="+")
    group("--split NAME", "only this split; RAGTruth has train and test")
    group(
        "--quality QUALITY",
        "only responses of this quality; RAGTruth has good, incorrect_refusal and truncated",
        nargs="+",
    )
    group("--generator NAME", "only responses by these models", nargs="+")
    group(
        "--implicit-true",
        "count spans that are true although the passages do not say so",
        action=argparse.BooleanOptionalAction,
        default=True,
    )
    group(
        "--due-to-null",
        "count spans that read a null in a business record as 'no'",
        action=argparse.BooleanOptionalAction,
        default=True,
    )
    group(
        "--carry-labels",
        "measure the monitor's sentences where labelled ones have other boundaries; a sentence of the monitor is "
        "unfaithful if it overlaps an unfaithful one (labelled sentences are measured as they are)",
    )
    group(
        "--prompts monitor|task",
        "monitor: the monitor's template; task: the paper's own prompts, for RAGTruth (%(default)s)",
        default="monitor",
    )


def chosen_responses(args: argparse.Namespace, path: Path) -> list[labelling.LabelledResponse]:
    """Read the labelled responses at a path that the options select."""
    return labelling.load_records(path, _selection(args), prompts=args.prompts, carry_labels=args.carry_labels)


def _chosen_sentences(args: argparse.Namespace, path: Path) -> training.MeasuredSentences:
    """Read the sentences in a file of features that the options select."""
    if args.prompts != "monitor":
        raise InputError(f"{path} has already been measured; pass --prompts {args.prompts} to `syncheck features`")
    measured = training.select_sentences(training.read_parquet(path), _selection(args), source=path)
    if not args.carry_labels:
        return measured
    return replace(measured, records=tuple(replace(record, carry_labels=True) for record in measured.records))


def _selection(args: argparse.Namespace) -> labelling.Selection:
    return labelling.Selection(
        tasks=args.task, generators=args.generator, **named(args, "split quality implicit_true due_to_null")
    )


def measuring_monitor(args: argparse.Namespace, paths: Sequence[Path]) -> Scorer | None:
    """Load the monitor that the options name; None, without loading a model, if all paths are files of features."""
    if not all(path.suffix == ".parquet" for path in paths):
        return monitor_to_measure(args)
    # The default of each is one of these.
    given = [name for name in _MEASURING if getattr(args, name, None) not in (None, False, "cpu")]
    refuse_idle(
        dict.fromkeys(map(flag, given), True),
        f"{', '.join(map(str, paths))} was measured already, by the model and with the options of its `syncheck "
        "features`. Leave them out, or pass the labelled responses themselves",
    )
    return None


def measured_by(
    monitor: Scorer | None,
    args: argparse.Namespace,
    path: Path,
    *,
    check: Callable[[Sequence[labelling.LabelledResponse]], None] = lambda records: None,
) -> training.MeasuredSentences:
    """Measure the labelled responses that the options select, or read them from a file of ``syncheck features``.

    Without a monitor, a file of features is taken as it is, otherwise without those that the monitor does not have.
    ``check`` may refuse the records before measuring.
    """
    if path.suffix == ".parquet":
        measured = _chosen_sentences(args, path)
        check(measured.records)
        if monitor is not None:
            measured = training.narrowed(measured, monitor.schema)
            training.check_measured_by(measured, monitor, source=path, remedy=_same_options(args, measured))
    else:
        assert monitor is not None
        records = chosen_responses(args, path)
        check(records)
        measured = training.measure(monitor, records)
    report_left_out(measured, path)
    return measured


def check_options(args: argparse.Namespace, measured: training.MeasuredSentences, path: Path) -> None:
    """Refuse a schema or options for sentences that are not those of a file of features."""
    from syncheck.training.measured import segmenters_apart

    own, schema = measured.segmenter, measured.schema.version
    cut = segmenters_apart(replace(own, **sentence_options(args)), own)
    given = cut if args.schema in (None, schema) else (f"--schema {args.schema}", schema)
    if given is not None:
        raise MismatchError(
            f"{path} was measured with {given[1]}; found {given[0]}. Leave these options out, since they are those of "
            "the file, or measure the responses again"
        )


def aligner_of(args: argparse.Namespace, measured: training.MeasuredSentences, path: Path) -> aligners.Aligner | None:
    """Load the aligner that the options name, otherwise the one that measured a file of features."""
    identity = measured.provenance.get("aligner")
    if identity is None or args.aligner is not None or any(v is not None for v in aligner_options(args).values()):
        return aligner_for(args)
    name, *options = identity.split(" --aligner-")
    given: dict[str, Any] = dict(option.split(" ", 1) for option in options)
    if "entailment" in given:
        given["entailment"] = int(given["entailment"])
    try:
        return aligners.load_aligner(name, **given, device=args.device)
    except (CheckpointError, InputError) as error:
        raise InputError(
            f"{path} was measured with the aligner {identity!r}, which cannot be loaded: {error}. Pass it as --aligner"
        ) from error


def _same_options(args: argparse.Namespace, measured: training.MeasuredSentences) -> str:
    """Say with which options the command has the monitor that measured a file, or needs none."""
    ways, trains = [], getattr(args, "cv", None) != 0
    if hasattr(args, "monitor"):
        ways.append("the --monitor of its `syncheck features`, such as --monitor generic")
    if trains and hasattr(args, "schema") and (options := _options_of(measured)) is not None:
        ways.append(f"{options}{' without --monitor' if ways else ''}")
    if trains and getattr(args, "aggregator", "") is None:
        ways.append("--aggregator KIND without --model and --monitor, for which the file is taken as it is")
    return f"Pass {', or '.join(ways)}" if ways else "Measure it again, with the monitor of this command"


def _options_of(measured: training.MeasuredSentences) -> str | None:
    """Name the options for the schema and segmentation of measured sentences; None if no options ask for them."""
    cut = measured.segmenter
    if cut.abbreviations not in ((), ENGLISH_ABBREVIATIONS) or cut.max_tokens != MAX_SENTENCE_TOKENS:
        return None
    options = {
        f"--schema {measured.schema.version}": True,
        "--abbreviations english": cut.abbreviations != (),
        f"--line-breaks {cut.line_breaks}": cut.line_breaks != "none",
        "--cjk-stops": cut.cjk_stops,
        "--clauses": cut.clauses,
        f"--sentences-together {cut.sentences}": cut.sentences != 1,
    }
    return " ".join(option for option, differs in options.items() if differs)


def report_left_out(measured: training.MeasuredSentences, path: Path) -> None:
    """Print on standard error which responses of a file do not count, and why, and whose labels were carried over."""
    carried = labelling.carried_line((record, measured.bounds_of(i)) for i, record in enumerate(measured.records))
    lines = [*training.left_out_lines(measured), *([] if carried is None else [carried])]
    if count := int(measured.no_claim.sum()):
        lines.append(f"{counted(count, 'sentence')} labelled 'no claim': not counted")
    for line in lines:
        sys.stderr.write(f"{path}: {printable(line)}\n")


def refuse_idle(given: Mapping[str, bool], reason: str) -> None:
    """Refuse options that were given and would have no effect, for the given reason."""
    if options := [option for option, was_given in given.items() if was_given]:
        raise InputError(f"{', '.join(options)} would have no effect: {reason}")


def panels_of(name: str, table: EvaluationTable | AurocMatrix) -> list[IntervalPanel]:
    """Make one panel of AUROC for each subset of a table, or column of a matrix; ``name`` is the name of the set."""
    panels = []
    for part, cells in table.by_part().items():
        columns = (tuple(getattr(cell, figure) for _, cell in cells) for figure in ("auroc", "low", "high"))
        panels.append(IntervalPanel(f"{name} set, {part}", tuple(system for system, _ in cells), *columns))
    return panels
