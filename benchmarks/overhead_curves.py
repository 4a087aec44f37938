"""Time for an answer against its length and against the length of the context, plain and monitored, as a picture.

    pip install -e '.[plots]'
    python benchmarks/overhead_curves.py --output docs/overhead.png

The two ways take turns of 50 tokens on the same scripted answer (``turns.py``, ``workload.py``); a turn's time is the
least of the repeats, which other work on the machine disturbs least. Times include the prefill. What a straight line
fitted by least squares leaves over is printed: in plain ``generate`` the attention to all tokens before, which no line
holds, in the monitor anything of its own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
import ways
from machine import describe_machine
from numpy.typing import NDArray
from tqdm import tqdm
from turns import CLOCKS, Pause, loaded_objects_aside, take_turns
from workload import SHAPES, Job, Subject, make_job, subject_of

TURN = 50
FIXED_CONTEXT, FIXED_TOKENS = 512, 100
TOKENS = 1000
CONTEXTS = (128, 256, 512, 768, 1024, 1280, 1536, 1792, 2048)
WARM_UP_SEED = 4001
WAYS: dict[str, ways.Way] = {
    "plain generate": ways.plain,
    "monitored, with aligner and aggregator": ways.with_aligner,
}
COLOURS = ("#0072B2", "#D55E00")
MARKERS = ("o", "s")
"""Blue and vermilion of Okabe and Ito's palette, told apart by everyone; the markers differ too."""

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Lengths in tokens, and seconds."""


def main() -> None:
    """Measure both curves, print the fits, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("kit", "copying", *SHAPES), default="kit", help="or a random Llama")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of a random model")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: of one thread, on a machine with other work"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=TOKENS, help="longest answer")
    parser.add_argument("--contexts", type=int, nargs="+", default=list(CONTEXTS))
    parser.add_argument("--output", type=Path, help="the picture; its figures go next to it as JSON")
    args = parser.parse_args()
    if args.clock == "cpu" and (args.threads > 1 or args.device != "cpu"):
        parser.error("--clock cpu counts one thread: pass --threads 1, and --device cpu")
    torch.set_num_threads(args.threads)
    name = "random" if args.model in SHAPES else args.model
    subject = subject_of(name, shape=args.model, device=args.device, dtype=getattr(torch, args.dtype))
    machine = describe_machine(args.device, args.threads, args.clock)
    print(", ".join([subject.name, *machine.values()]), flush=True)
    steps = 2 * args.repeats * (1 + len(args.contexts))
    with loaded_objects_aside(), tqdm(total=steps, disable=None, leave=False) as bar:
        by_answer = against_answer(subject, args, bar)
        by_context = against_context(subject, args, bar)
    print_fits("answer", by_answer)
    print_fits("context", by_context)
    if args.output is not None:
        draw(args.output, ", ".join([subject.name, *machine.values()]), by_answer, by_context)
        curves = {"answer": _lists(by_answer), "context": _lists(by_context)}
        args.output.with_suffix(".json").write_text(json.dumps({"machine": machine, **curves}, indent=1) + "\n")


def against_answer(subject: Subject, args: argparse.Namespace, bar: tqdm) -> dict[str, Curve]:
    """Time after every 50 tokens of one long answer."""
    seconds = _turns(subject, FIXED_CONTEXT, args.tokens, args, bar)
    lengths = np.append(np.arange(TURN, args.tokens, TURN), args.tokens).astype(float)
    # The first turn is the prefill.
    return {name: (lengths, np.cumsum(taken)[1:]) for name, taken in seconds.items()}


def against_context(subject: Subject, args: argparse.Namespace, bar: tqdm) -> dict[str, Curve]:
    """Time for an answer of 100 tokens over contexts of several lengths."""
    totals: dict[str, list[float]] = {name: [] for name in WAYS}
    for context in args.contexts:
        taken = _turns(subject, context, FIXED_TOKENS, args, bar)
        for name, turns in taken.items():
            totals[name].append(float(turns.sum()))
    return {name: (np.array(args.contexts, float), np.array(total)) for name, total in totals.items()}


def _turns(
    subject: Subject, context: int, tokens: int, args: argparse.Namespace, bar: tqdm
) -> dict[str, NDArray[np.float64]]:
    """Return for each way the least seconds of each turn."""
    twins = {name: subject.twin() for name in WAYS}
    warm = make_job(subject, context=context, tokens=TURN, batch=1, seed=WARM_UP_SEED).first_sentences(1)
    for name, way in WAYS.items():
        way(twins[name], warm, lambda token: None)
    rows: dict[str, list[list[float]]] = {name: [] for name in WAYS}
    for seed in range(args.repeats):
        job = make_job(subject, context=context, tokens=tokens, batch=1, seed=seed)

        def play(way: ways.Way, twin: Subject, pause: Pause, job: Job = job) -> None:
            way(twin, job, lambda token: pause() if token % TURN == 0 else None)
            bar.update()

        players = {name: partial(play, way, twins[name]) for name, way in WAYS.items()}
        for name, taken in take_turns(players, device=args.device, clock=args.clock).items():
            rows[name].append(taken)
    return {name: np.min(np.array(taken), axis=0) for name, taken in rows.items()}


def fit(curve: Curve) -> tuple[NDArray[np.float64], float]:
    """Fit a straight line; return its values at each length, and its slope in seconds per token."""
    slope, start = np.polyfit(*curve, 1)
    return start + slope * curve[0], float(slope)


def print_fits(name: str, curves: Mapping[str, Curve]) -> None:
    """Print slopes and the largest deviations."""
    for way, curve in curves.items():
        line, slope = fit(curve)
        left = curve[1] - line
        worst = int(np.abs(left).argmax())
        percent = 100 * left[worst] / curve[1][worst]
        print(
            f"against the {name}, {way}: {1e3 * slope:.2f} ms a token; largest deviation from the line "
            f"{1e3 * left[worst]:+.0f} ms ({percent:+.1f} %) at {curve[0][worst]:.0f} tokens"
        )


def draw(path: Path, caption: str, by_answer: Mapping[str, Curve], by_context: Mapping[str, Curve]) -> None:
    """Draw both curves side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.4), layout="constrained")
    panels = figure.subplots(1, 2)
    titles = (f"Answers over a context of {FIXED_CONTEXT} tokens", f"Answers of {FIXED_TOKENS} tokens")
    names = ("tokens of the answer", "tokens of the context")
    for panel, title, name, curves in zip(panels, titles, names, (by_answer, by_context), strict=True):
        for (way, curve), colour, marker in zip(curves.items(), COLOURS, MARKERS, strict=True):
            panel.plot(curve[0], fit(curve)[0], color=colour, linewidth=1.2, alpha=0.6)
            panel.plot(*curve, marker, color=colour, markersize=5, label=way)
        panel.set_title(title, fontsize=11, loc="left")
        panel.set_xlabel(name)
        panel.set_ylabel("seconds, prefill included")
        panel.set_xlim(left=0)
        panel.set_ylim(bottom=0)
        panel.grid(axis="y", color="0.9", linewidth=0.8)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, loc="upper left", fontsize=9)
    figure.supxlabel(f"{caption}. Lines: least squares.", fontsize=7.5, color="0.4")
    figure.savefig(path, dpi=150)


def _lists(curves: Mapping[str, Curve]) -> dict[str, dict[str, list[float]]]:
    return {name: {"tokens": x.tolist(), "seconds": y.tolist()} for name, (x, y) in curves.items()}


if __name__ == "__main__":
    main()
