"""The cost of monitoring relative to plain ``generate``: time and memory, measured in one run.

    python benchmarks/overhead.py                                             # the kit's model and a random one
    python benchmarks/overhead.py --quick                                     # only to see that it runs
    python benchmarks/overhead.py --device cuda --shape 7b --models random

Every way (``ways.py``) decodes the same scripted tokens greedily (``workload.py``). The ways take turns of a sentence
(``turns.py``), and each turn is compared with that of plain ``generate`` on the same tokens: printed are the median of
these ratios, their quartiles, and the ratio of the sums. The first turn ends when the logits of the first token are
there (for the monitor, of both prompts); this is "first token", the prefill. All others are "decode": what comes after
the first logits, down to the end of the call with the last sentence and the report. A sentence is measured when the
next one has begun, so a turn ends two tokens after a sentence of the first row. The slow ways run in the first round
only, re-prefill for its first sentences, compared with plain ``generate`` up to there.

Peak memory is measured in runs of its own, one way after another, for answers of 64 tokens (``peak_memory.py``); above
plain generation is what a way's peak exceeds plain's by. It is measured again for answers of several lengths: it grows
with them only as caches do, for logits are kept of the current sentence alone. The last table is ``monitor.score``
against the two forward passes that it needs (``replay.py``).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import get_args

import torch
from comparison import Cost, Setting, measure_peaks, measure_times, peaks_by_length
from machine import describe_machine
from peak_memory import can_measure
from replay import Replay, measure_replay
from tables import length_table, replay_table, summary_table, time_table
from tqdm import tqdm
from turns import CLOCKS, loaded_objects_aside
from workload import SHAPES, Subject, SubjectName, subject_of

PARTS = ("memory", "ways", "replay")
WINDOW_STEP = 256
"""A context that does not fit the window with its answer is cut to the next multiple of this that does."""
LENGTHS = (125, 250, 500)
"""Answers whose peaks are compared."""
THROUGHPUT_REPEATS = 1


@dataclass(slots=True)
class Results:
    """Everything that was measured of one model."""

    subject: Subject
    settings: list[Setting]
    costs: list[dict[str, Cost]] = field(init=False)
    replay: Replay | None = None
    peak_mb_by_length: dict[int, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.costs = [{name: Cost() for name in setting.ways()} for setting in self.settings]

    def to_json(self) -> dict[str, object]:
        """Return it in plain types."""
        return {
            "model": self.subject.name,
            "dtype": str(self.subject.model.dtype),
            "settings": [
                {**asdict(setting), "ways": {name: asdict(cost) for name, cost in costs.items()}}
                for setting, costs in zip(self.settings, self.costs, strict=True)
            ],
            "replay": None if self.replay is None else asdict(self.replay),
            "peak_mb_by_length": self.peak_mb_by_length,
        }


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=get_args(SubjectName), default=["kit", "random"])
    parser.add_argument("--shape", choices=SHAPES, default="100m", help="of the random model")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), help="of the random model; on CUDA bfloat16")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: of one thread, on a machine with other work"
    )
    parser.add_argument("--contexts", type=int, nargs="+", default=[512, 2048], help="tokens of the prompts")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--tokens", type=int, nargs=2, default=[250, 125], help="of answers, alone and in batches")
    parser.add_argument("--rounds", type=int, nargs=2, default=[2, 1], help="with a batch of 1, and with larger ones")
    parser.add_argument("--repeats", type=int, default=5, help="of the replay")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="write all that was measured as JSON")
    args = parser.parse_args()
    if args.clock == "cpu" and (args.threads > 1 or args.device != "cpu"):
        parser.error("--clock cpu counts one thread: pass --threads 1, and --device cpu")
    if args.quick:
        args.shape, args.contexts, args.batches, args.tokens = "tiny", [64], [1, 2], [30, 30]
        args.rounds, args.repeats = [1, 1], 1
    args.dtype = args.dtype or ("bfloat16" if args.device == "cuda" else "float32")
    return args


def main() -> None:
    """Measure, print, and write what was asked for."""
    args = arguments()
    torch.set_num_threads(args.threads)
    machine = describe_machine(args.device, args.threads, args.clock)
    print(", ".join(machine.values()), end="\n\n", flush=True)
    results = [Results(subject, settings_for(subject, args)) for subject in subjects(args)]
    steps = sum(_ticks(result, args) for result in results)
    with loaded_objects_aside(), tqdm(total=steps, disable=None, leave=False) as bar:
        # Memory first: the heap of a process that has done much is no longer tidy.
        for part, measure in (("memory", _memory), ("ways", _ways), ("replay", _replay)):
            for result in results if part in args.parts else ():
                measure(result, args, bar)
    for result in results:
        print(summary_table(result.subject, result.settings, result.costs))
    if args.output is not None:
        models = [result.to_json() for result in results]
        args.output.write_text(json.dumps({"machine": machine, "models": models}, indent=1) + "\n")


def subjects(args: argparse.Namespace) -> list[Subject]:
    """Load or build the models."""
    return [
        subject_of(name, shape=args.shape, device=args.device, dtype=getattr(torch, args.dtype)) for name in args.models
    ]


def settings_for(subject: Subject, args: argparse.Namespace) -> list[Setting]:
    """Combine contexts and batches; the long context is shorter where the window asks for it."""
    window = subject.model.config.max_position_embeddings
    found = []
    for batch in args.batches:
        tokens, rounds = (which[batch > 1] for which in (args.tokens, args.rounds))
        longest = (window - max(args.tokens)) // WINDOW_STEP * WINDOW_STEP
        found += [Setting(min(context, longest), batch, tokens, rounds) for context in args.contexts]
    return found


def _ticks(result: Results, args: argparse.Namespace) -> int:
    return (
        sum(s.time_ticks() for s in result.settings) * ("ways" in args.parts)
        + (1 + args.repeats + THROUGHPUT_REPEATS) * ("replay" in args.parts)
        + (sum(len(setting.ways()) for setting in result.settings) + 2 * len(LENGTHS)) * ("memory" in args.parts)
    )


def _ways(result: Results, args: argparse.Namespace, bar: tqdm) -> None:
    for setting, costs in zip(result.settings, result.costs, strict=True):
        measure_times(result.subject, setting, args.clock, costs, bar.update)
        bar.write(time_table(result.subject, setting, costs))


def _replay(result: Results, args: argparse.Namespace, bar: tqdm) -> None:
    result.replay = measure_replay(
        result.subject,
        repeats=args.repeats,
        throughput_repeats=THROUGHPUT_REPEATS,
        small=args.quick,
        clock=args.clock,
        tick=bar.update,
    )
    bar.write(replay_table(result.subject, result.replay))


def _memory(result: Results, args: argparse.Namespace, bar: tqdm) -> None:
    if not can_measure(args.device):
        bar.write("peak memory: needs CUDA, or Linux with glibc")
        return
    for setting, costs in zip(result.settings, result.costs, strict=True):
        measure_peaks(result.subject, setting, costs, bar.update)
    lengths = [tokens // 10 for tokens in LENGTHS] if args.quick else LENGTHS
    context = min(setting.context for setting in result.settings)
    result.peak_mb_by_length = peaks_by_length(result.subject, context=context, lengths=lengths, tick=bar.update)
    bar.write(length_table(result.subject, context, result.peak_mb_by_length))


if __name__ == "__main__":
    main()
