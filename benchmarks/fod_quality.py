r"""FOD against other decoders: the paper's Table 2 and its sweep over K and S, with intervals.

    python benchmarks/train_judge.py --pairs support-pairs --encoder all-MiniLM-L6-v2 --output runs/judge
    python benchmarks/fod_quality.py --prompts mine.jsonl --judge runs/judge --output runs/quality.jsonl \
        --plot runs/quality.png --sweep --sweep-plot runs/sweep.png
    python benchmarks/fod_quality.py --prompts mine.jsonl --model ORG/MODEL --monitor my-monitor \
        --judge ORG/ENTAILMENT --output mine-judged.jsonl

Every decoder answers the same prompts. An answer is cut into propositions and the judge, which the monitor does not use
and shares no training data with, compares each with the passages. Faithfulness is the share of an answer's propositions
that are supported, informativeness their number; empty answers and abstentions are left out of faithfulness and
have none (paper, section 4.3). Intervals are 95 %, paired bootstrap over prompts.

Reranking samples as many answers to each prompt as it takes to decode at least the tokens that FOD decodes over all of
them; both numbers of tokens are printed. Best of N samples a fixed number, as the paper's reranking does. Abstention
has FOD's tau_1, and in a second row a threshold so low that it gives as many sentences as FOD. Every sentence that FOD
releases is checked to reach min(tau_1, tau_2). Seconds are those of the process that decoded: where
``--workers`` is above 1, it shares the machine with others.

``--output`` is written as answers come. A run that was ended goes on where it stood, and so does one with more prompts
or with ``--sweep``. The prompts of ``--prompts`` are JSON Lines with ``question`` and ``context`` (a string or a list),
optionally ``id`` and ``task``; Table 2 has two columns for each task.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from decoding import (
    ABSTAIN,
    ABSTAIN_AS_BRANCH,
    ABSTAIN_MATCHED,
    BACKTRACK,
    CAD,
    CAD_PASSING,
    FOD,
    FOD_BRANCH,
    GREEDY,
    RERANKINGS,
    AnswerLog,
    Curve,
    DecodingLimits,
    Estimate,
    EvaluatedAnswer,
    branching_key,
    branching_name,
    candidates_for,
    decoder_figures,
    difference,
    passing,
    plot_curves,
    plot_sweep,
    plot_tradeoff,
    swept_name,
    withheld,
    withheld_below,
)
from machine import describe_machine
from quality_bench import BRANCHING, Bench, Job, Setup, reranking_key, results
from quality_prompts import Question, questions_of
from quality_tables import Answers, cut_table, differences_table, figures_table, layout_of_table_2
from tqdm import tqdm

from fod.config import REPAIR
from syncheck import __version__
from syncheck.report.plots import check_plot

JUDGING = ("judge", "judge_threshold", "judge_says", "propositions")
"""Settings of a log that say who judged."""
CURVE_THRESHOLDS = tuple(i / 20 for i in range(2, 20))
BEAM_SIZES = (1, 2, 3, 4)
SAMPLE_SIZES = (2, 4, 6, 8, 10)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=Path, required=True, metavar="FILE", help="JSON Lines, question and context")
    parser.add_argument("--prompts-count", type=int, default=200, metavar="N")
    parser.add_argument(
        "--decoders", nargs="+", metavar="NAME", help="only these, as the table names them; no reranking then"
    )
    parser.add_argument("--output", type=Path, required=True, help="all judged answers, JSON Lines")
    parser.add_argument("--answers", type=Path, help="--output of another judge: judges its answers, decodes nothing")
    parser.add_argument("--judge", required=True, help="aligner, as syncheck.load_aligner takes it")
    parser.add_argument("--judge-threshold", type=float, default=0.5, help="least P(supported) of a faithful one")
    parser.add_argument("--allow-monitor-aligner", action="store_true", help="judge by the monitor's own aligner")
    parser.add_argument("--model", help="any causal language model, with --monitor; else the kit")
    parser.add_argument("--monitor", type=Path, help="folder of the monitor that was trained on --model")
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--workers", type=int, help="processes, each with the models; else one a core for the kit on a CPU, or one"
    )
    parser.add_argument("--max-new-tokens", type=int, default=160)
    parser.add_argument("--backtrack-threshold", type=float, help="tau_1, also of abstention; else the monitor's")
    parser.add_argument("--prune-threshold", type=float, help="tau_2; else the monitor's")
    parser.add_argument("--branch-threshold", type=float, help="tau of FOD that branches; else the monitor's")
    parser.add_argument(
        "--branch-thresholds", type=float, nargs="+", default=[0.7, 0.8], metavar="TAU", help="others, for the curve"
    )
    parser.add_argument("--beam-size", type=int, default=2, help="K")
    parser.add_argument("--samples-per-step", type=int, default=6, help="S")
    parser.add_argument("--best-of", type=int, default=6, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sweep", action="store_true", help="also FOD by K and by S (Figures 6 and 7)")
    parser.add_argument("--plot", type=Path, help="faithfulness against informativeness (extra 'plots')")
    parser.add_argument("--sweep-plot", type=Path)
    parser.add_argument("--curve", type=Path, help="faithfulness against sentences kept, over the thresholds")
    args = parser.parse_args()
    if (args.model is None) != (args.monitor is None):
        parser.error("--model and --monitor go together: a monitor belongs to the model it was trained on")
    if args.sweep_plot is not None and not args.sweep:
        parser.error("--sweep-plot draws what --sweep measures; pass both")
    if args.workers is None:
        args.workers = (os.cpu_count() or 1) if args.model is None and args.device == "cpu" else 1
    if args.prompts_count < 1 or args.workers < 1:
        parser.error("--prompts-count and --workers must be at least 1")
    return args


def setup_of(args: argparse.Namespace, questions: Sequence[Question]) -> Setup:
    """Return the settings that each process is started with."""
    return Setup(
        model=args.model,
        monitor=args.monitor,
        device=args.device,
        judge=args.judge,
        judge_threshold=args.judge_threshold,
        allow_monitor_aligner=args.allow_monitor_aligner,
        limits=DecodingLimits(
            max_new_tokens=args.max_new_tokens,
            seed=args.seed,
            backtrack_threshold=args.backtrack_threshold,
            prune_threshold=args.prune_threshold,
            branch_threshold=args.branch_threshold,
            branch_thresholds=tuple(args.branch_thresholds),
            beam_size=args.beam_size,
            samples_per_step=args.samples_per_step,
            best_of=args.best_of,
        ),
        questions=tuple(questions),
        threads=None if args.workers == 1 else max(1, (os.cpu_count() or 1) // args.workers),
    )


def settings_of(bench: Bench) -> dict[str, Any]:
    """Return the settings that the answers depend on, for the log."""
    setup, config = bench.setup, bench.monitor.config
    return {
        "model": setup.model or "the kit",
        "monitor": str(setup.monitor) if setup.monitor else "the kit",
        "monitor_schema": config.schema,
        "monitor_thresholds": [config.backtrack_threshold, config.prune_threshold],
        "judge": setup.judge,
        "judge_threshold": setup.judge_threshold,
        "propositions": "rules",
        "decoding": asdict(setup.limits),
        "syncheck": __version__,
    } | bench.probes()


def complete(bench: Bench, log: AnswerLog, keys: Iterable[str], *, workers: int, source: AnswerLog | None) -> None:
    """Decode and judge what the log does not hold yet; with a source, judge its answers."""
    questions = bench.setup.questions
    wanted = [Job(key, i) for i in range(len(questions)) for key in keys]
    jobs = [job for job in wanted if not log.has(job.key, questions[job.index].id, questions[job.index].fingerprint)]
    with tqdm(total=len(wanted), initial=len(wanted) - len(jobs), desc="answers", mininterval=5) as bar:
        done = results(bench, jobs, workers=workers) if source is None else _judged_anew(bench, jobs, source)
        for job, answers in done:
            asked = questions[job.index]
            log.add(job.key, asked.id, asked.fingerprint, answers)
            bar.update()


def _judged_anew(bench: Bench, jobs: Iterable[Job], source: AnswerLog) -> Iterator[tuple[Job, list[EvaluatedAnswer]]]:
    for job in jobs:
        found = source.answers(job.key, [bench.setup.questions[job.index].id])
        yield job, bench.judged(job.index, [each.answer for (each,) in found.values()])


def compared(
    bench: Bench,
    log: AnswerLog,
    *,
    workers: int,
    only: Sequence[str] | None = None,
    also: Sequence[str] = (),
    source: AnswerLog | None = None,
) -> tuple[Answers, int | None]:
    """Let all decoders answer, or only those named, without reranking; and others besides.

    Returns their answers, in the order of Table 2, and reranking's candidates.
    """
    ids = [question.id for question in bench.setup.questions]
    limits = bench.setup.limits
    keys = [name for name in bench.independent if only is None or name in only]
    keys += [name for name in (*(only or ()), *also) if BRANCHING.fullmatch(name)]
    complete(bench, log, keys, workers=workers, source=source)
    found = {name: given for key in keys for name, given in log.answers(key, ids).items()}
    candidates = None if only else _rerank(bench, log, found, workers=workers, source=source)
    if CAD in found:
        found[CAD_PASSING] = passing(found[CAD], branch_threshold(bench))
    if GREEDY in found and ABSTAIN not in found:
        found[ABSTAIN] = withheld_below(found[GREEDY], backtrack_threshold(bench), name=ABSTAIN)
    for name, other in ((ABSTAIN_MATCHED, FOD), (ABSTAIN_AS_BRANCH, FOD_BRANCH)):
        if GREEDY in found and other in found:
            given = sum(len(each.answer.scores) for each in found[other])
            found[name] = withheld(found[GREEDY], sentences=given, name=name)
    order = [GREEDY, CAD, CAD_PASSING, ABSTAIN, ABSTAIN_MATCHED, ABSTAIN_AS_BRANCH, *RERANKINGS, limits.best_of_name]
    order += [BACKTRACK, FOD, FOD_BRANCH]
    order += [name for name in found if name not in order]
    return {name: found[name] for name in order if name in found}, candidates


def backtrack_threshold(bench: Bench) -> float:
    """Return tau_1."""
    given = bench.setup.limits.backtrack_threshold
    return bench.monitor.config.backtrack_threshold if given is None else given


def branch_threshold(bench: Bench) -> float:
    """Return tau of FOD that branches."""
    given = bench.setup.limits.branch_threshold
    return bench.monitor.config.backtrack_threshold if given is None else given


def _rerank(bench: Bench, log: AnswerLog, found: dict[str, Any], *, workers: int, source: AnswerLog | None) -> int:
    """Add the answers of reranking to those found; return its candidates."""
    ids = [question.id for question in bench.setup.questions]
    limits = bench.setup.limits
    decoded = [each.answer.sampled_tokens for each in found[FOD]]
    candidates = candidates_for(
        decoded, [each.answer.sampled_tokens / limits.best_of for each in found[limits.best_of_name]]
    )
    while True:
        key = reranking_key(candidates)
        complete(bench, log, [key], workers=workers, source=source)
        reranked = log.answers(key, ids)
        if sum(each.answer.sampled_tokens for each in next(iter(reranked.values()))) >= sum(decoded):
            break
        candidates += 1
    found |= reranked
    return candidates


def curves(found: Answers, *, own: float, thresholds: Sequence[float], alpha: float) -> dict[str, Curve]:
    """Return what each way of holding back is worth over its thresholds; those of abstention cost no decoding."""
    ways: dict[str, list[tuple[str, Sequence[EvaluatedAnswer]]]] = {
        "abstention": [("", withheld_below(found[GREEDY], tau, name="")) for tau in CURVE_THRESHOLDS],
        "CAD, failing sentences dropped": [("", passing(found[CAD], tau)) for tau in CURVE_THRESHOLDS],
        FOD_BRANCH: [
            *([(f"{own:.2g}", found[FOD_BRANCH])] if FOD_BRANCH in found else ()),
            *((f"{tau:.2g}", found[branching_name(alpha, tau)]) for tau in thresholds),
        ],
        **{name: [(name, found[name])] for name in (GREEDY, CAD, FOD) if name in found},
    }
    curves: dict[str, list[tuple[str, Estimate, Estimate]]] = {}
    for name, points in ways.items():
        for label, given in points:
            pair = {GREEDY: found[GREEDY], "": given}
            kept = difference("", GREEDY, pair).sentences_kept
            curves.setdefault(name, []).append((label, kept, decoder_figures(pair, longest=1)[""].faithfulness))
    return curves


def swept(bench: Bench, log: AnswerLog, *, workers: int) -> dict[str, Answers]:
    """Let FOD answer with each K and with each S; return the answers by K and by S."""
    limits = bench.setup.limits
    ids = [question.id for question in bench.setup.questions]
    own = (limits.beam_size, limits.samples_per_step)

    def name(k: int, s: int) -> str:
        return FOD if (k, s) == own else swept_name(k, s)

    by_beams = {k: name(k, own[1]) for k in sorted({*BEAM_SIZES, own[0]})}
    by_samples = {s: name(own[0], s) for s in sorted({*SAMPLE_SIZES, own[1]})}
    names = list(dict.fromkeys([*by_beams.values(), *by_samples.values()]))
    complete(bench, log, names, workers=workers, source=None)
    return {
        axis: {size: log.answers(key, ids)[key] for size, key in chosen.items()}
        for axis, chosen in (("K", by_beams), ("S", by_samples))
    }


def report_on(bench: Bench, answers: Answers, candidates: int | None, plot: Path | None) -> None:
    """Print the comparison and draw it."""
    setup, config = bench.setup, bench.monitor.config
    limits, machine = setup.limits, describe_machine(torch.device(setup.device).type, torch.get_num_threads(), "wall")
    tau_1 = backtrack_threshold(bench)
    tau_2 = config.prune_threshold if limits.prune_threshold is None else limits.prune_threshold
    print(
        f"{len(setup.questions)} prompts, {setup.model or 'the kit'}; judge {setup.judge}; "
        "propositions by rules, not decontextualised\n"
        f"tau_1 {tau_1:.3f}, tau_2 {tau_2:.3f}, of branches {branch_threshold(bench):.3f}, K {limits.beam_size}, "
        f"S {limits.samples_per_step}, at most {limits.max_new_tokens} tokens, seed {limits.seed}; "
        f"reranking of {candidates or 'no'} answers a prompt\n"
        f"syncheck {__version__}; {'; '.join(machine.values())}"
    )
    figures = decoder_figures(answers)
    pairs = [(name, GREEDY) for name in answers if name != GREEDY and GREEDY in answers]
    for best in (FOD, FOD_BRANCH):
        pairs += [(best, name) for name in answers if best in answers and name not in (GREEDY, best)]
    tables = (
        layout_of_table_2(answers),
        figures_table(figures),
        cut_table(figures),
        differences_table(answers, pairs),
    )
    print(*("\n" + "\n".join(lines) for lines in tables), sep="\n")
    print(f"\nevery sentence that FOD released reaches min(tau_1, tau_2) = {min(tau_1, tau_2):.3f}")
    if plot is not None:
        plot_tradeoff(figures, plot)


def main() -> None:
    """Decode, judge, print."""
    args = arguments()
    for path in (args.plot, args.sweep_plot, args.curve):
        if path is not None:
            check_plot(path)
    bench = Bench(setup_of(args, questions_of(args.prompts, args.prompts_count)))
    settings = settings_of(bench)
    log = AnswerLog(args.output, settings)
    source = None if args.answers is None else AnswerLog(args.answers, settings, any_of=JUDGING)
    answers, candidates = compared(
        bench,
        log,
        workers=args.workers,
        only=args.decoders,
        also=[] if args.curve is None else [branching_key(REPAIR.alpha)],
        source=source,
    )
    report_on(bench, answers, candidates, args.plot)
    if args.curve is not None:
        limits = bench.setup.limits
        drawn = curves(answers, own=branch_threshold(bench), thresholds=limits.branch_thresholds, alpha=REPAIR.alpha)
        plot_curves(drawn, args.curve)
    if args.sweep:
        found = {
            axis: decoder_figures({str(size): given for size, given in sizes.items()})
            for axis, sizes in swept(bench, log, workers=args.workers).items()
        }
        for axis, figures in found.items():
            print(f"\nFOD by {axis}:\n" + "\n".join(figures_table(figures)))
        if args.sweep_plot is not None:
            by_k, by_s = ({int(size): f for size, f in found[axis].items()} for axis in ("K", "S"))
            plot_sweep(by_k, by_s, args.sweep_plot)


if __name__ == "__main__":
    main()
