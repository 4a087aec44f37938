"""The cost of FOD's search against greedy decoding of the same answer, and against the published code's way.

    python benchmarks/fod_cost.py                                          # the bundled model and a random one
    python benchmarks/fod_cost.py --quick                                  # only to see that it runs
    python benchmarks/fod_cost.py --device cuda --shape 7b --models random

The search begins at the first sentence: tau_1 is 1, so that the greedy one is taken back, and tau_2 is 0, so that every
round goes on. What is sampled is scripted (``fod_rounds.py``), sentences of 12 to 40 tokens; the ways decode the same
tokens and take turns of a round (``turns.py``). Greedy decoding, plain ``generate`` or monitored with all scores,
writes the sentences of the answer that the search has found, one where FOD samples S. The published way encodes all the
text anew for every sample: once to generate it, to 65 tokens from which the sentence is cut, once without the context
and once for the hidden states. It makes no ids from text, measures and judges nothing, so that its cost is a lower
bound; ``--published-tokens 0`` lets it stop at the sentence's end. Printed are the medians and quartiles of the ratios
of turns, round by round, and the ratio of the sums, which also counts the prefill and the sentence that is taken back.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import fod_rounds
import numpy as np
import torch
from machine import describe_machine
from tqdm import tqdm
from turns import CLOCKS, Pause, loaded_objects_aside, take_turns
from workload import SHAPES, Subject, bundled_subject, random_subject

FOD, PLAIN, MONITORED, PUBLISHED = "FOD", "plain generate", "monitored greedy", "published way"
WARM_UP_SEED = 1001
BEFORE_ROUNDS = 2
"""Turns before the first round: up to the first logits, and the greedy sentence that is taken back."""


@dataclass(slots=True)
class Compared:
    """FOD's time over that of another way: round by round, and in total."""

    rounds: list[float]
    seconds: tuple[float, float]

    @property
    def of_the_sums(self) -> float:
        """FOD's whole time over the other's."""
        return self.seconds[0] / self.seconds[1]


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=("bundled", "random"), default=["bundled", "random"])
    parser.add_argument("--shape", choices=SHAPES, default="100m", help="of the random model")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), help="of the random model; on CUDA bfloat16")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--contexts", type=int, nargs="+", default=[512, 1536], help="tokens of the prompts")
    parser.add_argument("--sentences", type=int, default=6, help="of each answer")
    parser.add_argument("--answers", type=int, default=2, help="with each context")
    parser.add_argument("--beam-size", type=int, default=2, metavar="K")
    parser.add_argument("--samples-per-step", type=int, default=6, metavar="S")
    parser.add_argument("--published-tokens", type=int, default=65, help="that the published way decodes of a sample")
    parser.add_argument("--without-published", action="store_true", help="leave the slowest way out")
    parser.add_argument("--quick", action="store_true", help="small sizes: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="write all that was measured as JSON")
    args = parser.parse_args()
    if args.clock == "cpu" and (args.threads > 1 or args.device != "cpu"):
        parser.error("--clock cpu counts one thread: pass --threads 1, and --device cpu")
    if args.quick:
        args.shape, args.contexts, args.sentences, args.answers = "tiny", [64], 2, 1
    args.dtype = args.dtype or ("bfloat16" if args.device == "cuda" else "float32")
    return args


def main() -> None:
    """Measure, print, and write what was asked for."""
    args = arguments()
    torch.set_num_threads(args.threads)
    machine = describe_machine(args.device, args.threads, args.clock)
    print(", ".join(machine.values()), end="\n\n", flush=True)
    found = []
    with loaded_objects_aside():
        for name in args.models:
            subject = _subject(name, args)
            for context in args.contexts:
                compared, searches = measure(subject, context, args)
                print(table(subject, context, compared, searches, args), flush=True)
                ways = {way: asdict(one) | {"of_the_sums": one.of_the_sums} for way, one in compared.items()}
                found.append({"model": subject.name, "context": context, "fod_over": ways})
    if args.output is not None:
        args.output.write_text(json.dumps({"machine": machine, "settings": found}, indent=1) + "\n")


def measure(
    subject: Subject, context: int, args: argparse.Namespace
) -> tuple[dict[str, Compared], list[fod_rounds.Search]]:
    """Let the ways take turns on some answers."""
    others = [PLAIN, MONITORED, *(() if args.without_published else (PUBLISHED,))]
    twins = {way: subject.twin() for way in (FOD, *others)}
    compared = {way: Compared([], (0.0, 0.0)) for way in others}
    searches = []
    for seed in tqdm((WARM_UP_SEED, *range(args.answers)), disable=None, leave=False):
        prompt, pool = fod_rounds.pool_of(subject, context=context, seed=seed)
        sentences = 1 if seed == WARM_UP_SEED else args.sentences
        run = partial(
            fod_rounds.fod,
            prompt=prompt,
            pool=pool,
            sentences=sentences,
            sizes=(args.beam_size, args.samples_per_step),
        )
        search = fod_rounds.search_of(subject, prompt, run(twins[FOD], between=lambda number: None))
        players = _players(twins, run, search, published_tokens=args.published_tokens)
        seconds = take_turns(players, device=subject.model.device.type, clock=args.clock)
        if seed == WARM_UP_SEED:
            continue
        searches.append(search)
        for way, one in compared.items():
            turns = zip(seconds[FOD][BEFORE_ROUNDS:], seconds[way][BEFORE_ROUNDS:], strict=True)
            one.rounds += [own / other for own, other in turns]
            one.seconds = (one.seconds[0] + sum(seconds[FOD]), one.seconds[1] + sum(seconds[way]))
    return compared, searches


def table(
    subject: Subject,
    context: int,
    compared: dict[str, Compared],
    searches: list[fod_rounds.Search],
    args: argparse.Namespace,
) -> str:
    """Write the ratios of one setting."""
    sampled = sum(search.sampled_tokens for search in searches)
    emitted = sum(len(search.answer) for search in searches)
    steps = sum(search.longest_tokens for search in searches)
    lines = [
        f"{subject.name}, {str(subject.model.dtype).removeprefix('torch.')}: context {context:,}, "
        f"K={args.beam_size}, S={args.samples_per_step}, {len(searches)} answer(s) of {args.sentences} sentences",
        f"FOD samples {sampled / emitted:.1f} tokens for each of the answer's, in {steps / emitted:.2f} steps",
        "",
        "| FOD's time | a round | quartiles | of the sums | rounds |",
        "| --- | --- | --- | --- | --- |",
    ]
    for way, one in compared.items():
        ratios, total = np.array(one.rounds), one.of_the_sums
        if way == PUBLISHED:
            ratios, total = 1 / ratios, 1 / total
        low, middle, high = np.percentile(ratios, [25, 50, 75])
        name = f"times {way}" if way != PUBLISHED else f"{way}, times FOD's"
        lines.append(f"| {name} | {middle:.2f} | {low:.2f} to {high:.2f} | {total:.2f} | {len(ratios)} |")
    return "\n".join(lines) + "\n"


def _subject(name: str, args: argparse.Namespace) -> Subject:
    if name == "bundled":
        return bundled_subject(args.device)
    return random_subject(args.shape, device=args.device, dtype=getattr(torch, args.dtype))


def _players(
    twins: dict[str, Subject], run: Callable[..., object], search: fod_rounds.Search, *, published_tokens: int
) -> dict[str, Callable[[Pause], None]]:
    """Return the ways as functions that pause before each round, or before the sentence that it adds."""
    starts = {0, *search.ends[:-1]}

    def searching(pause: Pause) -> None:
        run(twins[FOD], between=lambda number: pause())

    def writing(pause: Pause, *, way: str) -> None:
        def between(token: int) -> None:
            if token in starts:
                pause()
            if token == 0:  # there is no sentence that is taken back
                pause()

        fod_rounds.greedy(twins[way], search, between, monitored=way == MONITORED)

    players: dict[str, Callable[[Pause], None]] = {
        FOD: searching,
        PLAIN: partial(writing, way=PLAIN),
        MONITORED: partial(writing, way=MONITORED),
    }
    if PUBLISHED in twins:
        players[PUBLISHED] = lambda pause: fod_rounds.published(
            twins[PUBLISHED], search, lambda number: pause(), tokens=published_tokens
        )
    return players


if __name__ == "__main__":
    main()
