"""The biographies of the paper's Table 1: which file serves as training data for which, and their labels, kept.

The paper (section 4.1) has no training split of FS, F-100 and F-100-anti: FS trains what is tested on F-100 and on
F-100-anti, F-100 what is tested on FS, whole files both times. It leaves open what to do with people that are in both
FS and F-100; here they are refused, since the AUROC would flatter what has seen them. Nor does it say why Mistral has
answers for 290, 61 and 62 people only (Table 5); here every record counts. The prompts are those of the published code,
and LID is measured, as for questions (appendix A.1).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
from pathlib import Path

import syncheck
from syncheck.base.errors import InputError
from syncheck.cli.labelled import proposition_models
from syncheck.labelling import LabelledResponse, load_biographies

TRAINED_ON = {"FS": "F-100", "F-100": "FS", "F-100-anti": "FS"}
"""By column, the file that trains for it (paper, section 4.1)."""
SCHEMA = "paper.v1"
UNKNOWN = "unknown"
"""Generator of a biography that does not name one."""


def add_biographies(options: argparse.ArgumentParser) -> None:
    """Add ``--biographies`` and the options of the models that label them."""
    options.add_argument(
        "--biographies",
        nargs="+",
        type=_named_file,
        default=[],
        metavar="NAME=FILE",
        help=f"the model's own, as FActScore lays them out; names are {', '.join(TRAINED_ON)}, FS and F-100 both",
    )
    options.add_argument("--propositioner", metavar="NAME", help="cuts biographies without propositions")
    options.add_argument("--judge", metavar="NAME", help="judges propositions without a label")


def refusal(args: argparse.Namespace) -> str | None:
    """Return what is wrong with the options of biographies, or None."""
    names = [name for name, _ in args.biographies]
    if len(set(names)) < len(names):
        return f"--biographies: expected each name once, found {', '.join(names)}"
    for name in names:
        if TRAINED_ON[name] not in names:
            return f"--biographies: what is tested on {name} is trained on {TRAINED_ON[name]}; give its file too"
    if not names and (args.propositioner, args.judge) != (None, None):
        return "--propositioner and --judge label biographies; give --biographies, or leave them out"
    aligners = [args.aligner or "bundled", *(word for given in args.also for word in _aligner(given))]
    if args.judge in aligners:
        return f"--judge {args.judge} is an aligner that is measured too, and would be tested on its own judgements"
    return None


def labelled_files(args: argparse.Namespace) -> dict[str, Path]:
    """Label the sentences of every file of ``--biographies``, by propositions (appendix B.2).

    Parameters
    ----------
    args
        Options of ``paper_table_1.py``.

    Returns
    -------
    dict of str to Path
        By name, a file in ``--output`` of labelled responses with their prompts, which ``syncheck features`` takes. Its
        own name says what made it, so that a later run, and the aligners of ``--also``, find the labels there. Beside
        it the propositions, kept as they are judged, for a run that goes on.

    Raises
    ------
    InputError
        If a file holds answers by another model, or a person is in a file and in the one that trains for it.
    RecordError
        At the first record that cannot be used, also one without labels where nothing makes them.
    CheckpointError
        If a model that labels cannot be loaded.
    """
    files = dict(args.biographies)
    _check_records(files, args.generator)
    labelled = {
        name: args.output / f"{args.generator}-{name}-{_made_by(args, file)}.jsonl" for name, file in files.items()
    }
    missing = [name for name in files if not labelled[name].exists()]
    if missing:
        propositioner, judge = proposition_models(args, aligner=lambda: None)  # the aligners were compared by name
        for name in missing:
            kept = args.output / f"{args.generator}-{name}-propositions-{_digest(_models(args))}.jsonl"
            records = load_biographies(files[name], propositioner=propositioner, judge=judge, prompts="task", kept=kept)
            lines = [_line(record, generator=args.generator, task=name) for record in records]
            unfinished = labelled[name].with_suffix(".unfinished")
            unfinished.write_text("".join(lines), encoding="utf-8")
            unfinished.replace(labelled[name])
    return labelled


def _aligner(given: str) -> list[str]:
    """Return the aligner of a ``NAME=ALIGNER``, without the options that go with it."""
    return shlex.split(given.partition("=")[2])[:1]


def _named_file(text: str) -> tuple[str, Path]:
    name, _, file = text.partition("=")
    if name not in TRAINED_ON or not file:
        raise argparse.ArgumentTypeError(f"expected NAME=FILE with a NAME of {', '.join(TRAINED_ON)}; found {text!r}")
    return name, Path(file)


def _check_records(files: dict[str, Path], generator: str) -> None:
    """Check all records before the first is labelled: labelling takes a large judge hours."""
    people = {}
    for name, file in files.items():
        # No proposition is cut or judged yet, so the labels mean nothing.
        records = load_biographies(
            file,
            propositioner=lambda text: (),
            judge=lambda passages, texts: [True] * len(texts),
            show_progress=False,
        )
        others = sorted({record.generator for record in records} - {generator, UNKNOWN})
        if others:
            raise InputError(
                f"{file} has answers by {', '.join(others)}; expected those of {generator} alone, whose signals are "
                "measured. Take the others out"
            )
        people[name] = {record.group for record in records}
    for name in files:
        shared = sorted(people[name] & people[TRAINED_ON[name]])
        if shared:
            raise InputError(
                f"{len(shared)} people are in both {files[name]} and {files[TRAINED_ON[name]]}, which trains for it "
                f"({', '.join(shared[:3])}, ...); the AUROC would flatter. Take them out of one"
            )


def _made_by(args: argparse.Namespace, file: Path) -> str:
    return f"labelled-{_digest(file.read_bytes() + _models(args))}"


def _models(args: argparse.Namespace) -> bytes:
    return json.dumps([args.propositioner, args.judge, syncheck.__version__]).encode()


def _digest(made: bytes) -> str:
    return hashlib.sha256(made).hexdigest()[:12]


def _line(record: LabelledResponse, *, generator: str, task: str) -> str:
    sentences = record.sentences or ()
    values = {
        "id": record.id,
        "question": record.question,
        "context": list(record.passages),
        "response": record.response,
        "sentences": [record.response[s.start : s.end] for s in sentences],
        "labels": [int(s.faithful) for s in sentences],
        "group": record.group,
        "generator": generator,
        "task": task,
        "prompt_with_context": record.prompt_with_context,
        "prompt_without_context": record.prompt_without_context,
    }
    return json.dumps(values, ensure_ascii=False) + "\n"
