"""Random alterations of every file of saved monitors and span models, digests recomputed: refused, or loaded and used.

Each altered folder is loaded, and scores, in a process of its own, so that a crash is seen as one. Exit status 1 if one
crashed, took more than ten seconds, or raised an error that is none of syncheck's.

    python benchmarks/reliability/checkpoints.py --count 2000 --seed 0
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import torch
import xgboost

from syncheck import Aggregator, Monitor, SyncheckError, __version__
from syncheck.base.files import write_digests
from syncheck.kit import demo_questions, load_kit
from syncheck.results import SpanItem
from syncheck.spans import load_span_regressor

SECONDS = 10
OUTCOMES = ("refused", "loaded", "crashed", "hung", "foreign error")
REFUSED, LOADED, FOREIGN = 10, 11, 12
VALUES = (
    None,
    True,
    "",
    "x",
    "NaN",
    [],
    {},
    [[]],
    -1,
    0,
    2**31,
    -(2**63),
    10**400,
    0.5,
    1e308,
    float("nan"),
    float("inf"),
)
NUMBERS = (np.nan, np.inf, -np.inf, -1, -2, 0, 1, 2, 1e-40, 1e30, -1e30, 1e9, -(2**31), 2**31 - 1, 127, 255)
QUESTION = demo_questions()[0]
ANSWER = QUESTION.passages[0].split(". ")[0] + "."
Use = Callable[[Path], None]


def altered(path: Path, source: random.Random) -> None:
    """Alter a file in place: its bytes, or the values they encode."""
    content = path.read_bytes()
    if source.random() < 0.5:
        path.write_bytes(_altered_bytes(content, source))
    elif path.suffix == ".json":
        path.write_text(json.dumps(_altered_json(json.loads(content), source)))
    else:
        path.write_bytes(_altered_arrays(content, source))


def _altered_bytes(content: bytes, source: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(source.choice((1, 1, 1, 4, 64))):
        place = min(source.randrange(len(changed) + 1), source.choice((len(changed), 600)))
        match source.randrange(4):
            case 0 if place < len(changed):
                changed[place] ^= 1 << source.randrange(8)
            case 1:
                changed[place:place] = source.randbytes(source.choice((1, 8, 100)))
            case 2:
                del changed[place : place + source.choice((1, 8, 100, len(changed)))]
            case _:
                changed[place : place + 4] = source.choice((b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff"))
    return bytes(changed)


def _altered_json(value: Any, source: random.Random) -> Any:  # noqa: ANN401
    """Replace, remove or repeat one value at any depth."""
    places = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    if not places or source.random() < 0.05:
        return source.choice(VALUES)
    place = source.choice(list(places))
    match source.randrange(8):
        case 0:
            del value[place]
        case 1:
            value[place] = [value[place]] * source.choice((0, 2, 1000))
        case _:
            value[place] = _altered_json(value[place], source)
    return value


def _altered_arrays(content: bytes, source: random.Random) -> bytes:
    arrays = {name: array.copy() for name, array in safetensors.numpy.load(content).items()}
    name = source.choice(sorted(arrays))
    array = arrays.pop(name)
    if array.dtype == np.uint8 and name in ("lr", "xgb"):  # a file within the file: a member of an ensemble
        return bytes(safetensors.numpy.save(arrays | {name: _member(array, source)}))
    match source.randrange(8):
        case 0:
            pass  # without it
        case 1:
            arrays["other"] = array
        case 2:
            arrays[name] = array.astype(source.choice((np.float16, np.float64, np.int64, np.uint8)))
        case 3:
            arrays[name] = source.choice((array[:-1], array[None], array[:0], np.concatenate([array, array])))
        case _:
            arrays[name] = _altered_values(array, source)
    return bytes(safetensors.numpy.save(arrays))


def _altered_values(array: np.ndarray[Any, Any], source: random.Random) -> np.ndarray[Any, Any]:
    flat = array.reshape(-1)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(source.choice((1, 1, 5, 50)) if len(flat) else 0):
            flat[source.randrange(len(flat))] = np.asarray(source.choice(NUMBERS)).astype(array.dtype)
    return array


def _member(array: np.ndarray[Any, Any], source: random.Random) -> np.ndarray[Any, Any]:
    content = array.tobytes()
    changed = _altered_bytes(content, source) if source.random() < 0.3 else _altered_arrays(content, source)
    return np.frombuffer(changed, np.uint8)


def sealed(folder: Path, name: str) -> None:
    """Recompute the digests of a folder's files, the altered one included, as somebody who alters it would."""
    for config, weights in (("aggregator.json", "aggregator.safetensors"), ("spans.json", "spans.safetensors")):
        if name == weights:
            path = folder / config
            digest = hashlib.sha256((folder / weights).read_bytes()).hexdigest()
            path.write_text(json.dumps(json.loads(path.read_text()) | {"weights_sha256": digest}))
    if (folder / "digests.json").exists() and name != "digests.json":
        write_digests(folder, [path.name for path in folder.iterdir() if path.name != "digests.json"])


def outcome_of(use: Use, folder: Path) -> tuple[str, str]:
    """Use a folder in a process of its own; return how that ended, and the text of a foreign error."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        signal.alarm(SECONDS)
        os._exit(_used(use, folder, writing))
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return ("hung" if number == signal.SIGALRM else "crashed"), signal.Signals(number).name
    codes = {REFUSED: "refused", LOADED: "loaded", FOREIGN: "foreign error"}
    return codes.get(os.WEXITSTATUS(status), "crashed"), text


def _used(use: Use, folder: Path, report: int) -> int:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            use(folder)
    except SyncheckError:
        return REFUSED
    except BaseException as error:  # noqa: BLE001 (any kind is what is looked for)
        os.write(report, f"{type(error).__name__}: {error}"[:300].encode(errors="replace"))
        return FOREIGN
    return LOADED


def saved_folders(directory: Path) -> Mapping[str, tuple[Path, Use]]:
    """Save a monitor with each kind of aggregator, and the span models; return folders and their users."""
    kit = load_kit("generation")
    model, tokenizer, aligner, own = kit.model, kit.tokenizer, kit.aligner, kit.aggregator
    assert own is not None
    rows = np.random.default_rng(0).normal(size=(80, len(kit.schema.names)))

    def use_monitor(folder: Path) -> None:
        monitor = Monitor.from_pretrained(folder, model=model, tokenizer=tokenizer, aligner=aligner)
        prompt = monitor.prompt(question=QUESTION.question, context=QUESTION.passages[:1])
        report = monitor.score(prompt, ANSWER)
        for sentence in report.sentences:
            if sentence.status == "scored" and not (sentence.score is not None and 0 <= sentence.score <= 1):
                raise ArithmeticError(f"a score of {sentence.score}")

    def use_spans(folder: Path) -> None:
        item = SpanItem(
            id="1", lang="en", question="Who?", response="Anna won in 1950.", passages=("Bert won in 1951.",)
        )
        if any(not 0 <= span.prob <= 1 for span in load_span_regressor(folder).detect(item).soft):
            raise ArithmeticError("a risk outside [0, 1]")

    folders: dict[str, tuple[Path, Use]] = {}
    for kind in ("xgb", "ensemble", "mlp"):
        fitted = Aggregator.fit(rows, rows[:, 0] > 0, schema=kit.schema, kind=kind)  # type: ignore[arg-type]
        aggregator = replace(fitted, calibration=own.calibration, calibrated_threshold=own.calibrated_threshold)
        monitor = Monitor(
            model,
            tokenizer,
            config=kit.config,
            aggregator=aggregator,
            lid_references=kit.lid_references,
            aligner=aligner,
        )
        monitor.save_pretrained(directory / kind)
        folders[f"monitor, {kind}"] = directory / kind, use_monitor
    load_span_regressor().save(directory / "spans")
    return {**folders, "spans, xgb": (directory / "spans", use_spans)}


def run(count: int, seed: int, *, only: str = "") -> Counter[tuple[str, str, str]]:
    """Alter each file of each folder so often; return how often each outcome came, by folder, file and outcome."""
    found: Counter[tuple[str, str, str]] = Counter()
    torch.set_num_threads(1)  # threads do not survive a fork
    with tempfile.TemporaryDirectory() as directory:
        for kind, (folder, use) in saved_folders(Path(directory)).items():
            if only not in kind:
                continue
            whole, text = outcome_of(use, folder)
            if whole != "loaded":
                raise SystemExit(f"{kind} does not load unaltered: {whole} {text}")
            for name in sorted(path.name for path in folder.iterdir()):
                source = random.Random(f"{seed} {kind} {name}")
                for number in range(count):
                    copy = Path(directory) / "altered"
                    shutil.copytree(folder, copy)
                    altered(copy / name, source)
                    sealed(copy, name)
                    outcome, text = outcome_of(use, copy)
                    found[kind, name, outcome] += 1
                    if outcome not in ("refused", "loaded"):
                        print(f"{kind}, {name}, alteration {number}: {outcome} {text}", flush=True)
                    shutil.rmtree(copy)
    return found


def main() -> int:
    """Print the outcomes, file by file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="alterations of each file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="part of the name of the folders to alter, such as xgb")
    args = parser.parse_args()
    print(f"syncheck {__version__}, xgboost {xgboost.__version__}, Python {sys.version.split()[0]}, seed {args.seed}")
    found = run(args.count, args.seed, only=args.only)
    print("| folder | file |", " | ".join(OUTCOMES), "|")
    print("| --- | --- |", " | ".join(["---:"] * len(OUTCOMES)), "|")
    for kind, name in dict.fromkeys((kind, name) for kind, name, _ in found):
        print(f"| {kind} | `{name}` |", " | ".join(str(found[kind, name, outcome]) for outcome in OUTCOMES), "|")
    return int(any(outcome not in ("refused", "loaded") for _, _, outcome in found))


if __name__ == "__main__":
    sys.exit(main())
