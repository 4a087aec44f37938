"""Models, monitor, passages and labelled responses that the options name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import syncheck
from syncheck import aligners, labelling, signals, training
from syncheck.base.errors import CheckpointError, InputError, MismatchError
from syncheck.base.printable import counted, printable
from syncheck.cli.options import Options, aligner_options, flag, named
from syncheck.config import DEFAULT_SCHEMA, GENERIC, GENERIC_BUNDLED, GENERIC_READER, MonitorConfig
from syncheck.features.schemas import needs_lid, needs_signals
from syncheck.report.plots import IntervalPanel
from syncheck.text.sentences import ENGLISH_ABBREVIATIONS
from syncheck.text.sentences.boundaries import SegmenterConfig

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from syncheck.evaluation import EvaluationTable
    from syncheck.kit import KitPurpose

Scorer: TypeAlias = "syncheck.Monitor | syncheck.Verifier"
_ALIGNERS: dict[str, str | None] = {GENERIC: None, GENERIC_BUNDLED: "bundled", GENERIC_READER: "reader"}
"""Aligners of the bundled monitors that read text alone, by their names for ``--monitor``; None for the best one."""


def read_passages(name: str, *, option: str) -> list[str]:
    """Read the paragraphs of a UTF-8 file, with runs of white space as one space; ``option`` is for the message."""
    try:
        text = Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {option} {name!r} as UTF-8 text: {error}") from error
    passages = [" ".join(block.split()) for block in text.split("\n\n") if block.strip()]
    if not passages:
        raise InputError(f"{option} {name!r} holds no text; its paragraphs become the passages")
    return passages


def check_device(name: str) -> None:
    """Refuse ``cuda``, with an InputError, if torch finds no such device."""
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"--device cuda: torch {torch.__version__} finds no CUDA device; install a driver and a torch version "
            "that go together, or pass --device cpu"
        )


def scoring_monitor(args: argparse.Namespace, purpose: KitPurpose) -> Scorer:
    """Load what scores: the monitor or verifier named by ``--monitor``, or the kit's.

    For another model, it reads text as ``generic`` does, or with ``--aligner`` by this aligner alone.
    """
    asked = _features_asked(args)
    alone = bool(asked) and args.aligner != "none" and not {"lid_reference", "schema"} & set(asked)
    scorer: Scorer
    if args.monitor is not None or (args.model is None and not alone):
        scorer = _trained(args, purpose)
    elif asked and not alone:
        scorer = monitor_to_measure(args)
    elif args.model is None and purpose == GENERIC:
        scorer = syncheck.Verifier(aligner_for(args))
    else:
        scorer = syncheck.Monitor(*models_of(args), aligner=aligner_for(args) if alone else None)
    if sentences := sentence_options(args):
        config = replace(scorer.config, segmenter=replace(scorer.config.segmenter, **sentences))
        scorer = scorer.replaced(config=config)
    if (effort := getattr(args, "effort", None)) is not None:
        scorer = scorer.with_effort(effort)
    prior = getattr(args, "prior", None)
    return scorer if prior is None else scorer.with_prior(prior)


def monitor_with_model(args: argparse.Namespace, purpose: KitPurpose) -> syncheck.Monitor:
    """Load the monitor of a command that runs its language model; otherwise as :func:`scoring_monitor`."""
    scorer = scoring_monitor(args, purpose)
    if not isinstance(scorer, syncheck.Verifier):
        return scorer
    parts: dict[str, Any] = {
        name: getattr(scorer, name) for name in "config aggregator aligner trained_on name".split()
    }
    return syncheck.Monitor(*models_of(args), **parts)


def models_of(args: argparse.Namespace) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load the language model that ``--model`` names, or the kit's, and its tokenizer."""
    from syncheck.base.pretrained import load_model
    from syncheck.kit import kit_language_model

    return kit_language_model(args.device) if args.model is None else load_model(args.model, args.device)


def monitor_to_measure(args: argparse.Namespace) -> Scorer:
    """Load what measures features: a monitor or verifier without an aggregator, or the one in ``--monitor``."""
    if getattr(args, "monitor", None) is not None:
        return _trained(args, "generic")
    schema = getattr(args, "schema", None) or DEFAULT_SCHEMA
    segmenter = SegmenterConfig(**sentence_options(args))
    if args.model is None and not needs_signals(schema):
        return syncheck.Verifier(aligner_for(args), config=MonitorConfig(schema=schema, segmenter=segmenter))
    models, reference = models_of(args), getattr(args, "lid_reference", None)
    lid_references = None if reference is None else signals.LidReferences.load(Path(reference), device=args.device)
    layers = tuple(lid_references.layers) if lid_references and needs_lid(schema) else None
    config = MonitorConfig(schema=schema, layers=layers, segmenter=segmenter)
    return syncheck.Monitor(*models, config=config, lid_references=lid_references, aligner=aligner_for(args))


def _trained(args: argparse.Namespace, purpose: KitPurpose) -> Scorer:
    from syncheck import checkpoint

    _check_trained(args, purpose)
    named = args.monitor in _ALIGNERS
    if args.model is None and (named or args.monitor is None):
        chosen: Scorer = syncheck.load_kit(cast("Any", args.monitor or purpose), device=args.device)
        return chosen
    if args.model is None and not needs_signals(checkpoint.read(checkpoint.fetched(args.monitor)).config.schema):
        return syncheck.Verifier.from_pretrained(args.monitor, device=args.device)
    model, tokenizer = models_of(args)
    if named:
        aligner = _ALIGNERS[args.monitor]
        own = None if aligner is None else aligners.load_aligner(aligner, device=args.device)
        return syncheck.Monitor(model, tokenizer, aligner=own)
    try:
        return syncheck.Monitor.from_pretrained(args.monitor, model=model, tokenizer=tokenizer)
    except MismatchError as error:
        if args.model is not None:
            raise
        message = f"{error}. Without --model, the kit's model was loaded; pass the --model it was trained for"
        raise MismatchError(message) from error


def _check_trained(args: argparse.Namespace, purpose: KitPurpose) -> None:
    """Refuse a monitor that is not there, and options that would measure or cut otherwise than in its training."""
    from syncheck import checkpoint

    named = args.monitor in _ALIGNERS
    if named and args.aligner is not None:
        raise InputError(
            f"--monitor {args.monitor} has its own aligner; leave out --aligner, or keep it and leave out --monitor"
        )
    faults = [f"{', '.join(map(flag, asked))} cannot be used with it"] if (asked := _features_asked(args)) else []
    if sentence_options(args) and not (named or (args.monitor or purpose) == GENERIC):
        faults.append(f"options for sentences are for --monitor {GENERIC} alone")
    if faults:
        known = f"--monitor {args.monitor}" if args.monitor else f"the bundled monitor {purpose!r}"
        raise InputError(
            f"{known} keeps what it was trained with, so {' and '.join(faults)}; leave them out, or pass another "
            "--model without --monitor"
        )
    if named and Path(args.monitor).exists():
        raise InputError(
            f"--monitor {args.monitor} is a bundled monitor, but there is also a {args.monitor!r} here; write "
            f"./{args.monitor} for that one"
        )
    if not (named or args.monitor is None or Path(args.monitor).exists() or checkpoint.is_repository(args.monitor)):
        raise InputError(
            f"--monitor {args.monitor!r}: there is no such folder; pass a folder that `syncheck train` wrote, a "
            f"repository as 'owner/name', or {', '.join(map(repr, _ALIGNERS))}"
        )


def _features_asked(args: argparse.Namespace) -> list[str]:
    """List the options given, by their names, that say which features are measured."""
    asked = [name for name in ("aligner", "lid_reference", "schema") if getattr(args, name, None) is not None]
    return [*asked, *(f"aligner_{name}" for name in aligner_options(args))]


def aligner_for(args: argparse.Namespace) -> aligners.Aligner | None:
    """Load the aligner that ``--aligner`` and its options name; that of ``generic`` without. Says what ``auto`` is."""
    from syncheck.aligners.loading import AUTO
    from syncheck.checkpoint import generic_aligner

    if args.aligner is None and not aligner_options(args):
        return generic_aligner(args.device)
    aligner = aligners.load_aligner(args.aligner or "bundled", **aligner_options(args), device=args.device)
    if args.aligner == AUTO and aligner is not None:
        sys.stderr.write(f"aligner {AUTO!r} is {aligner.name!r}\n")
    return aligner


def sentence_options(args: argparse.Namespace) -> dict[str, Any]:
    """Collect the options for sentences that are given, as keywords of :class:`SegmenterConfig`."""
    options: dict[str, Any] = {
        "abbreviations": {"english": ENGLISH_ABBREVIATIONS, "none": (), None: None}[args.abbreviations],
        "line_breaks": args.line_breaks,
        "cjk_stops": args.cjk_stops or None,
        "clauses": args.clauses or None,
        "sentences": args.sentences_together,
    }
    return {name: value for name, value in options.items() if value is not None}


NO_MONITOR = "none; --schema says what is measured"

_MEASURING = """
    model monitor device schema abbreviations line_breaks cjk_stops clauses sentences_together aligner aligner_backbone
    aligner_mode aligner_overflow aligner_entailment
    """.split()
"""Options that say how labelled responses are measured."""


def add_data(add: Options) -> None:
    """Add the options for labelled data."""
    add("--data PATH", "RAGTruth folder, labelled JSON Lines, or the output of features", required=True)
    add_selection(add)
    add("--seed SEED = 0")


def add_selection(add: Options) -> None:
    """Add the fields of :class:`~syncheck.labelling.Selection`."""
    about = "by default everything in a file; from a RAGTruth folder, all answers to questions"
    group = add.group("labelled data", about)
    group("--task NAME", "only these tasks; RAGTruth has QA, Summary and Data2txt", nargs="+")
    group("--split NAME", "only this split; RAGTruth has train and test")
    group(
        "--quality QUALITY",
        "only responses of this quality; RAGTruth has good, incorrect_refusal and truncated",
        nargs="+",
    )
    group("--generator NAME", "only responses by these models", nargs="+")
    switch: dict[str, Any] = {"action": argparse.BooleanOptionalAction, "default": True}
    group("--implicit-true", "count spans that are true although the passages do not say so", **switch)
    group("--due-to-null", "count spans that read a null in a business record as 'no'", **switch)
    group(
        "--carry-labels",
        "measure the monitor's sentences where labelled ones have other boundaries; a sentence of the monitor is "
        "unfaithful if it overlaps an unfaithful one (labelled sentences are measured as they are)",
    )
    group(
        "--prompts monitor|task = monitor",
        "monitor: the monitor's template; task: the paper's own prompts, for RAGTruth",
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
    more = named(args, "split quality implicit_true due_to_null")
    return labelling.Selection(tasks=args.task, generators=args.generator, **more)


def measuring_monitor(args: argparse.Namespace, paths: Sequence[Path]) -> Scorer | None:
    """Load the monitor that the options name; None, without loading a model, if all paths are files of features."""
    if not all(path.suffix == ".parquet" for path in paths):
        return monitor_to_measure(args)
    refuse_idle(
        # each default is one of these
        [name for name in _MEASURING if getattr(args, name, None) not in (None, False, "cpu")],
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

    With a monitor, such a file is taken without the features that the monitor does not have. ``check`` may refuse the
    records before measuring.
    """
    if path.suffix == ".parquet":
        measured = _chosen_sentences(args, path)
        check(measured.records)
        if monitor is not None:
            measured = training.narrowed(measured, monitor.schema)
            schema = "or the --schema and options for sentences, " if hasattr(args, "schema") else ""
            remedy = f"Pass the --monitor, {schema}of its `syncheck features`, or measure it again"
            training.check_measured_by(measured, monitor, source=path, remedy=remedy)
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
    apart = segmenters_apart(replace(own, **sentence_options(args)), own)
    if args.schema not in (None, schema):
        apart = f"--schema {args.schema}", schema
    if apart is not None:
        raise MismatchError(
            f"{path} was measured with {apart[1]}; found {apart[0]}. Leave these options out, since they are those of "
            "the file, or measure the responses again"
        )


def aligner_of(args: argparse.Namespace, measured: training.MeasuredSentences, path: Path) -> aligners.Aligner | None:
    """Load the aligner that the options name, otherwise the one that measured a file of features."""
    identity = measured.provenance.get("aligner")
    if identity is None or args.aligner is not None or aligner_options(args):
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


def report_left_out(measured: training.MeasuredSentences, path: Path) -> None:
    """Print on standard error which responses of a file do not count, and why, and whose labels were carried over."""
    carried = labelling.carried_line((record, measured.bounds_of(i)) for i, record in enumerate(measured.records))
    lines = [*training.left_out_lines(measured), *filter(None, [carried])]
    if count := int(measured.no_claim.sum()):
        lines.append(f"{counted(count, 'sentence')} labelled 'no claim': not counted")
    if count := sum(s.readings is not None for record in measured.records for s in record.sentences or ()):
        lines.append(f"{counted(count, 'sentence')} about which two readers disagree: not counted")
    for line in lines:
        sys.stderr.write(f"{path}: {printable(line)}\n")


def refuse_idle(given: Sequence[str], reason: str) -> None:
    """Refuse options, by their names, that would have no effect, for the given reason."""
    if given:
        raise InputError(f"{', '.join(map(flag, given))} would have no effect: {reason}")


def panels_of(name: str, table: EvaluationTable) -> list[IntervalPanel]:
    """Make one panel of AUROC for each subset of a table; ``name`` is the name of the set."""
    figures = ("system", "auroc", "low", "high")
    return [
        IntervalPanel(f"{name} set, {part}", *(tuple(getattr(row, figure) for row in rows) for figure in figures))
        for part, rows in table.by_subset().items()
    ]
