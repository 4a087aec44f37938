"""The cost of FOD's search against greedy decoding of the same answer, and against the published code's way.

    python benchmarks/fod_cost.py                                          # the kit's model and a random one
    python benchmarks/fod_cost.py --quick                                  # only to see that it runs
    python benchmarks/fod_cost.py --device cuda --shape 7b --models random
    python benchmarks/fod_cost.py --propose branch --models kit --clock cpu --threads 1

``--propose sample``: the search begins at the first sentence: tau_1 is 1, so that the greedy one is taken back, and
tau_2 is 0, so that every round goes on. What is sampled is scripted (``fod_rounds.py``), sentences of 12 to 40 tokens;
the ways decode the same tokens and take turns of a round (``turns.py``). Greedy decoding, plain ``generate`` or
monitored with all scores, writes the sentences of the answer that the search has found, one where FOD samples S. The
published way encodes all the text anew for every sample: once to generate it, to 65 tokens from which the sentence is
cut, once without the context and once for the hidden states. It makes no ids from text, measures and judges nothing, so
that its cost is a lower bound; ``--published-tokens 0`` lets it stop at the sentence's end. Printed are the medians and
quartiles of the ratios of turns, round by round, and the ratio of the sums, which also counts the prefill and the
sentence that is taken back.

``--propose branch``, not of a random model: nothing is scripted, since the cost depends on how often the model
errs. Every way answers the same blind questions of the kit's model by itself, plain ``generate`` among them, and they
take turns of an answer.

Both depend on the machine by one number, which is printed: a step of several rows over a step of one.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import get_args

import fod_rounds
import numpy as np
import torch
from machine import describe_machine
from tqdm import tqdm
from transformers import PreTrainedModel
from turns import CLOCKS, Pause, loaded_objects_aside, take_turns
from workload import SHAPES, Subject, SubjectName, make_job, question_prompts, subject_of

from fod import FODGenerator, RepairConfig
from fod.config import REPAIR
from syncheck import Monitor, RagPrompt
from syncheck.signals import Branch

FOD, PLAIN, MONITORED, PUBLISHED = "FOD", "plain generate", "monitored greedy", "published way"
WARM_UP_SEED = 1001
STEPS = 30
"""Steps of each kind in the comparison of several rows with one."""
BEFORE_ROUNDS = 2
"""Turns before the first round: up to the first logits, and the greedy sentence that is taken back."""


@dataclass(slots=True)
class Compared:
    """The time of one way over that of another: round by round, or answer by answer, and in total."""

    rounds: list[float] = field(default_factory=list)
    seconds: tuple[float, float] = (0.0, 0.0)

    def add(self, own: Sequence[float], other: Sequence[float], *, skipping: int = 0) -> None:
        """Add the seconds of the turns of both; the first ones count in the total alone."""
        self.rounds += [a / b for a, b in zip(own[skipping:], other[skipping:], strict=True)]
        self.seconds = (self.seconds[0] + sum(own), self.seconds[1] + sum(other))

    def row(self, name: str, *, inverse: bool = False) -> str:
        """Write the median, the quartiles and the ratio of the sums as a table's row, without its last cell."""
        ratios, total = np.array(self.rounds), self.of_the_sums
        if inverse:
            ratios, total = 1 / ratios, 1 / total
        low, middle, high = np.percentile(ratios, [25, 50, 75])
        return f"| {name} | {middle:.2f} | {low:.2f} to {high:.2f} | {total:.2f} |"

    @property
    def of_the_sums(self) -> float:
        """The whole time over the other's."""
        return self.seconds[0] / self.seconds[1]


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=get_args(SubjectName), default=["kit", "random"])
    parser.add_argument("--propose", nargs="+", choices=("sample", "branch"), default=["sample", "branch"])
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
    parser.add_argument("--questions", type=int, default=20, help="that are answered with branches")
    parser.add_argument("--new-tokens", type=int, default=160, help="of such an answer, at most")
    parser.add_argument("--published-tokens", type=int, default=65, help="that the published way decodes of a sample")
    parser.add_argument("--without-published", action="store_true", help="leave the slowest way out")
    parser.add_argument("--quick", action="store_true", help="small sizes: the figures mean nothing")
    parser.add_argument("--output", type=Path, help="write all that was measured as JSON")
    args = parser.parse_args()
    if args.clock == "cpu" and (args.threads > 1 or args.device != "cpu"):
        parser.error("--clock cpu counts one thread: pass --threads 1, and --device cpu")
    if args.quick:
        args.shape, args.contexts, args.sentences, args.answers = "tiny", [704], 2, 1
        args.questions, args.new_tokens = 1, 20
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
            subject = subject_of(name, shape=args.shape, device=args.device, dtype=getattr(torch, args.dtype))
            for context in args.contexts:
                setting = {"model": subject.name, "context": context}
                rows = args.samples_per_step
                step = step_of(subject, context, rows, args.clock)
                print(f"context {context:,}: a step of {rows} rows takes {step:.2f} times one of a row\n", flush=True)
                if "sample" in args.propose:
                    compared, searches = measure(subject, context, args)
                    print(table(subject, context, compared, searches, args), flush=True)
                    found.append({**setting, "step": step, "fod_over": _figures(compared)})
                if "branch" in args.propose and name != "random":
                    compared, tokens = measure_branches(subject, context, args)
                    print(branch_table(subject, context, compared, tokens, args), flush=True)
                    found.append({**setting, "step": step, "over_plain": _figures(compared), "tokens": dict(tokens)})
    if args.output is not None:
        args.output.write_text(json.dumps({"machine": machine, "settings": found}, indent=1) + "\n")


def measure(
    subject: Subject, context: int, args: argparse.Namespace
) -> tuple[dict[str, Compared], list[fod_rounds.Search]]:
    """Let the ways take turns on some answers."""
    others = [PLAIN, MONITORED, *(() if args.without_published else (PUBLISHED,))]
    twins = {way: subject.twin() for way in (FOD, *others)}
    compared = {way: Compared() for way in others}
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
            one.add(seconds[FOD], seconds[way], skipping=BEFORE_ROUNDS)
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
        is_published = way == PUBLISHED
        name = f"{way}, times FOD's" if is_published else f"times {way}"
        lines.append(f"{one.row(name, inverse=is_published)} {len(one.rounds)} |")
    return "\n".join(lines) + "\n"


def measure_branches(
    subject: Subject, context: int, args: argparse.Namespace
) -> tuple[dict[str, Compared], Counter[str]]:
    """Let greedy decoding and FOD with branches answer the same questions; also count the tokens that each decodes."""
    prompts = question_prompts(subject, context=context, count=args.questions + 1)  # the first warms up
    tokens: Counter[str] = Counter()

    def player(way: str, write: Callable[[RagPrompt], int]) -> Callable[[Pause], None]:
        def run(pause: Pause) -> None:
            write(prompts[0])
            for prompt in prompts[1:]:
                pause()
                tokens[way] += write(prompt)

        return run

    players = {way: player(way, write) for way, write in _writers(subject, args.new_tokens).items()}
    seconds = take_turns(players, device=subject.model.device.type, clock=args.clock)
    compared = {way: Compared() for way in players if way != PLAIN}
    for way, one in compared.items():
        one.add(seconds[way][1:], seconds[PLAIN][1:])
    return compared, tokens


def branch_table(
    subject: Subject, context: int, compared: dict[str, Compared], tokens: Counter[str], args: argparse.Namespace
) -> str:
    """Write the ratios of one setting."""
    lines = [
        f"{subject.name}: context {context:,}, {args.questions} answers of up to {args.new_tokens} tokens",
        "",
        "| times plain generate | an answer | quartiles | of the sums | tokens decoded |",
        "| --- | --- | --- | --- | --- |",
        *(f"{one.row(way)} {tokens[way] / tokens[PLAIN]:.2f} |" for way, one in compared.items()),
    ]
    return "\n".join(lines) + "\n"


def step_of(subject: Subject, context: int, rows: int, clock: str) -> float:
    """Return the time of a step of so many rows of one prompt over that of a step of one."""
    (prompt,) = make_job(subject, context=context, tokens=1, batch=1, seed=0).prompts
    one, many = (Branch(subject.model, [prompt.with_context_ids]) for _ in range(2))
    many.select([0] * rows, [0] * rows, many.next_logits.expand(rows, -1))
    seconds: dict[int, list[float]] = {1: [], rows: []}
    for _ in range(STEPS):
        for branch in (one, many):
            ids = torch.full((branch.rows, 1), prompt.with_context_ids[-1], device=subject.model.device)
            started = CLOCKS[clock]()
            branch.feed(ids).argmax().item()  # waits for the device
            seconds[branch.rows].append(CLOCKS[clock]() - started)
    return float(np.median(seconds[rows]) / np.median(seconds[1]))


def _writers(subject: Subject, new_tokens: int) -> dict[str, Callable[[RagPrompt], int]]:
    """Return the ways of answering a prompt, by name; each returns how many tokens it decoded."""
    options = {"do_sample": False, "max_new_tokens": new_tokens}

    def plain(prompt: RagPrompt, *, model: PreTrainedModel) -> int:
        return model.generate(**prompt.inputs(model.device), pad_token_id=0, **options).shape[1] - len(
            prompt.with_context_ids
        )

    def monitored(prompt: RagPrompt, *, monitor: Monitor) -> int:
        return len(monitor.generate(prompt, **options).tokens)

    def branching(prompt: RagPrompt, *, decoder: FODGenerator) -> int:
        return decoder.generate(prompt, return_dict_in_generate=True, **options).sampled_tokens

    writers = {
        PLAIN: partial(plain, model=subject.twin().model),
        MONITORED: partial(monitored, monitor=subject.twin().full),
    }
    for alpha in dict.fromkeys((0.0, REPAIR.alpha)):
        twin = subject.twin()
        config = RepairConfig(alpha=alpha)
        decoder = FODGenerator(twin.model, twin.tokenizer, twin.full, config=config)
        writers[f"FOD with branches, alpha {alpha:g}"] = partial(branching, decoder=decoder)
    return writers


def _figures(compared: dict[str, Compared]) -> dict[str, object]:
    return {way: asdict(one) | {"of_the_sums": one.of_the_sums} for way, one in compared.items()}


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
