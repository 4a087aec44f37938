"""Decoders of the kit's model on blind questions: what share of the sentences is faithful, and what is lost for it.

    DATA="--wikipedia articles.jsonl.xz --ragtruth ragtruth-qa"
    python benchmarks/kit_decoding.py candidates $DATA --output candidates.jsonl    # then label them
    python benchmarks/kit_decoding.py choose --candidates benchmarks/kit_answers/candidates.jsonl
    python benchmarks/kit_decoding.py answer $DATA --output decoded.jsonl           # then label them
    python benchmarks/kit_decoding.py table --answers benchmarks/kit_answers/decoded.jsonl

``candidates`` writes the first two greedy sentences of each question of the part ``tuning`` with all their branches,
``choose`` the thresholds of the decoders, from labels of these. ``answer`` takes all questions of the blind sets of
``benchmarks/kit_answers``, one of each set before a second one of any. A language model read all sentences twice, in
separate readings that saw neither scores nor the names of the decoders; sentences on which the readings disagree do not
count. Intervals: bootstrap over sets of passages.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from kit_answers import FOLDER, MAX_NEW_TOKENS, QuestionSet, load_questions
from numpy.typing import NDArray
from tqdm import tqdm

import fod
from syncheck import Monitor, RagPrompt, Report, load_kit
from syncheck.evaluation.metrics import with_interval

GREEDY, CAD, BEST, RERANKED, SEARCH, BRANCHES = "greedy", "cad", "best of 6", "reranked", "search", "branches"
DECODERS = (GREEDY, CAD, BEST, RERANKED, SEARCH, BRANCHES)
CHOSEN = FOLDER / "chosen.json"
"""What ``choose`` has chosen."""
ALL_BRANCHES = fod.RepairConfig(backtrack_threshold=1.0, prune_threshold=1.0, repair_from=0.0, max_skips=1)
"""Nothing passes: two greedy sentences, each with its branches."""
ALPHAS = (0.25, 0.5, 1.0)
"""Strengths of the contrast to choose from."""
GRID = np.round(np.arange(0.05, 1.0, 0.05), 2)
"""Thresholds to choose from."""
REPAIRED_FROM = (0.0, 0.25, 0.35, 0.4, 0.45, 0.5)
"""Least mean probabilities of a sentence that is repaired, to choose from."""
KEPT = 0.9
"""Least share of what greedy sentences truly answer that the chosen settings keep."""
NEARLY = 0.02
"""Share of faithful sentences that may be given up for a cheaper decoder."""
DRAWS = 2000


def facts_of(report: Report, message: str | None = None) -> Mapping[str, Any]:
    """Collect what is kept of an answer: its text without the message that follows it, and a quotation apart."""
    text = report.response.removesuffix(message or "")
    quoted = {"quote": (message or "").strip()} if report.stop == "quoted" else {}
    return {"text": text, "stop": report.stop, "lowest": report.lowest and report.lowest.score} | quoted


def decoders(monitor: Monitor) -> Mapping[tuple[str, ...], Callable[[RagPrompt], Sequence[Mapping[str, Any]]]]:
    """Make the decoders by name; each gives the facts of an answer for each of its names."""
    models = (monitor.model, monitor.tokenizer, monitor)
    chosen = json.loads(CHOSEN.read_text(encoding="utf-8"))["chosen"]
    thresholds = {name: value for name, value in chosen.items() if name.endswith("threshold")}

    def output_of(generator: Any, prompt: RagPrompt) -> Any:  # noqa: ANN401
        return generator.generate(prompt, seed=0, max_new_tokens=MAX_NEW_TOKENS, return_dict_in_generate=True)

    def greedy(prompt: RagPrompt) -> Sequence[Mapping[str, Any]]:
        return [facts_of(monitor.generate(prompt, max_new_tokens=MAX_NEW_TOKENS, do_sample=False))]

    def by(generator: Any) -> Callable[[RagPrompt], Sequence[Mapping[str, Any]]]:  # noqa: ANN401
        return lambda prompt: [facts_of((out := output_of(generator, prompt)).report, getattr(out, "message", None))]

    def sampled(prompt: RagPrompt) -> Sequence[Mapping[str, Any]]:
        output = output_of(fod.BestOfNGenerator(*models, reward="lowest"), prompt)
        return [facts_of(output.report), facts_of(max(output.samples, key=lambda one: one.faithfulness or 0.0))]

    return {
        (GREEDY,): greedy,
        (CAD,): by(fod.CADGenerator(*models)),
        (BEST, RERANKED): sampled,
        (SEARCH,): by(fod.FODGenerator(*models, config=fod.FODConfig(guards=True, **thresholds))),
        (BRANCHES,): by(fod.FODGenerator(*models, config=fod.RepairConfig(**chosen))),
    }


def asked_of(sets: Sequence[QuestionSet], part: str, turns: int | None = None) -> Iterator[tuple[QuestionSet, int]]:
    """Yield the sets of a part with the number of a question: one of each set, in turn its first to last, then more."""
    own = [one for one in sets if one.part == part]
    own.sort(key=lambda one: hashlib.sha256(one.name.encode()).hexdigest())  # mixes kinds of text
    most = turns or max(len(one.questions) for one in own)
    pairs = [
        (one, number + turn) for turn in range(most) for number, one in enumerate(own) if turn < len(one.questions)
    ]
    for asked, number in tqdm(pairs, unit=" questions"):
        yield asked, number % len(asked.questions)


def answer(sets: Sequence[QuestionSet], names: Sequence[str], output: Path) -> None:
    """Answer the questions by the decoders of these names; an answer that is there is kept."""
    lines = map(json.loads, output.open()) if output.exists() else ()
    done = {(entry["set"], entry["question"], entry["decoder"]) for entry in lines}
    monitor = load_kit("generation")
    ways = {own: way for own, way in decoders(monitor).items() if own[0] in names}
    with output.open("a", encoding="utf-8") as file:
        for asked, question in asked_of(sets, "blind"):
            prompt = monitor.prompt(question=asked.questions[question], context=asked.passages)
            for own, way in ways.items():
                if (asked.name, question, own[0]) in done:
                    continue
                for name, facts in zip(own, way(prompt), strict=True):
                    entry = {"set": asked.name, "question": question, "decoder": name, **facts}
                    file.write(json.dumps(entry, ensure_ascii=False) + "\n")
                file.flush()


def candidates(sets: Sequence[QuestionSet], alphas: Sequence[float], turns: int, output: Path) -> None:
    """Write greedy sentences with their branches, for some questions of each set; what is there is kept."""
    lines = map(json.loads, output.open()) if output.exists() else ()
    done = {(entry["set"], entry["question"], entry["alpha"]) for entry in lines}
    monitor = load_kit("generation")
    models = (monitor.model, monitor.tokenizer, monitor)
    generators = {a: fod.FODGenerator(*models, config=replace(ALL_BRANCHES, alpha=a)) for a in alphas}
    with output.open("a", encoding="utf-8") as file:
        for asked, question in asked_of(sets, "tuning", turns):
            prompt = monitor.prompt(question=asked.questions[question], context=asked.passages)
            for alpha, generator in generators.items():
                if (asked.name, question, alpha) in done:
                    continue
                output_of = generator.generate(
                    prompt, seed=0, max_new_tokens=MAX_NEW_TOKENS, return_dict_in_generate=True
                )
                rounds = [[_candidate(each) for each in step.candidates] for step in output_of.search.rounds]
                entry = {"set": asked.name, "question": question, "alpha": alpha, "rounds": rounds}
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
                file.flush()


def _candidate(each: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a candidate of the search
    return {
        "text": " ".join(each.text.split()),
        "score": each.lowest,
        "log_prob": each.log_prob,
        "tokens": len(each.token_ids),
        "keeps_subject": each.keeps_subject,
        "is_cut": each.is_cut,
        "fault": each.fault,
    }


Round = Sequence[Mapping[str, Any]]
"""A greedy sentence and its branches."""


def released(step: Round, config: fod.RepairConfig) -> Mapping[str, Any] | None:
    """Decide on a greedy sentence and its branches as :func:`fod.repair` does; None if it is hidden."""
    assert isinstance(config.backtrack_threshold, float) and isinstance(config.prune_threshold, float)
    written, *branches = step
    if not written["fault"] and passes(written, config.backtrack_threshold):
        return written
    if not is_repaired(step, config):
        return None
    passing = [each for each in branches if not each["fault"] and passes(each, config.prune_threshold)]
    return max(passing, key=lambda c: (c["keeps_subject"], not c["is_cut"], c["log_prob"]), default=None)


def is_repaired(step: Round, config: fod.RepairConfig) -> bool:
    """Tell whether branches of the greedy sentence are tried: it fails, and the model does not guess throughout."""
    assert isinstance(config.backtrack_threshold, float)
    written = step[0]
    is_sure = math.exp(written["log_prob"] / max(1, written["tokens"])) >= config.repair_from
    return is_sure and (bool(written["fault"]) or not passes(written, config.backtrack_threshold))


def tokens(step: Round, config: fod.RepairConfig) -> int:
    """Count the tokens decoded for a sentence."""
    return sum(each["tokens"] for each in (step if is_repaired(step, config) else step[:1]))


def passes(candidate: Mapping[str, Any], threshold: float) -> bool:
    """Tell whether a sentence reaches a threshold; one that claims nothing does."""
    return bool(candidate["text"]) and (candidate["score"] is None or candidate["score"] >= threshold)


def value(candidate: Mapping[str, Any] | None) -> NDArray[np.float64]:
    """Read a released sentence (3,): whether it is faithful, whether not, and how much of an answer it is if faithful.

    Each is in [0, 1], the mean of the two readings; nothing is released without text.
    """
    if candidate is None or not candidate["text"]:
        return np.zeros(3)
    read = list(zip(candidate["labels"], candidate["relevance"], strict=True))
    return np.array([[label == "F", label == "U", (label == "F") * relevance / 2] for label, relevance in read]).mean(0)


def choose(path: Path, folder: Path | None) -> None:
    """Choose settings and write them: nearly the most faithful that keep what the greedy sentences truly answer.

    Of all settings whose released sentences answer at least ``KEPT`` of what the greedy ones of the least ``alpha`` do,
    and of which the share of faithful sentences is within ``NEARLY`` of the largest, the one with the fewest tokens.
    """
    steps: dict[float, list[Round]] = {}
    for entry in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        steps.setdefault(entry["alpha"], []).extend(entry["rounds"])
    greedy = sum(value(step[0]) for step in steps[min(steps)])
    settings = [
        fod.RepairConfig(alpha=alpha, backtrack_threshold=float(one), prune_threshold=float(other), repair_from=least)
        for alpha, least, one, other in product(sorted(steps), REPAIRED_FROM, GRID, GRID)
        if other >= one
    ]
    sums = np.array([sum(value(released(step, setting)) for step in steps[setting.alpha]) for setting in settings])
    decoded = np.array([sum(tokens(step, setting) for step in steps[setting.alpha]) for setting in settings])
    shares = np.where(sums[:, 2] >= KEPT * greedy[2], sums[:, 0] / (sums[:, 0] + sums[:, 1]), 0.0)
    for alpha, least in product(sorted(steps), REPAIRED_FROM):
        own = [n for n, setting in enumerate(settings) if (setting.alpha, setting.repair_from) == (alpha, least)]
        top = max(own, key=lambda number: shares[number])
        of = settings[top]
        thresholds = f"{of.backtrack_threshold}, {of.prune_threshold}"
        print(f"{alpha}, {least}, {thresholds}: {shares[top]:.3f} faithful, {sums[top]}, {decoded[top]} tokens")
    best = min(np.flatnonzero(shares >= shares.max() - NEARLY).tolist(), key=lambda n: (decoded[n], -shares[n]))
    names = ("alpha", "backtrack_threshold", "prune_threshold", "repair_from")
    chosen = {name: getattr(settings[best], name) for name in names}
    facts = {
        "sentences": len(steps[chosen["alpha"]]),
        "faithful, not, and how much they answer": [round(float(each), 1) for each in sums[best]],
        "of greedy sentences": [round(float(each), 1) for each in greedy],
        "tokens decoded": int(decoded[best]),
    }
    CHOSEN.write_text(json.dumps({"chosen": chosen, "on": facts}, indent=1) + "\n", encoding="utf-8")
    print(CHOSEN.read_text(encoding="utf-8"))
    if folder is not None:
        monitor = load_kit("generation")
        monitor.config = replace(
            monitor.config,
            backtrack_threshold=chosen["backtrack_threshold"],
            prune_threshold=chosen["prune_threshold"],
        )
        monitor.save_pretrained(folder)


def counts(entries: Sequence[Mapping[str, Any]], *, quoting: bool = False) -> NDArray[np.float64]:
    """Count what each answer has (N, 5).

    These are its faithful and unfaithful sentences, and whether it is empty, useful, or partly useful; with
    ``quoting``, a quotation stands in place of an empty answer.
    """
    rows = []
    for entry in entries:
        agreed = [first for _, _, first, second in entry["sentences"] if first == second]
        is_quoted = quoting and "quote_use" in entry
        uses = entry["quote_use"] if is_quoted else entry["use"]
        rows.append(
            (
                agreed.count("F"),
                agreed.count("U"),
                not entry["sentences"] and not is_quoted,
                uses.count("useful") / 2,
                uses.count("partly") / 2,
            )
        )
    return np.array(rows, float)


def share(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the share of faithful ones among sentences with a claim; rows are (..., N, 5)."""
    faithful, unfaithful = rows[..., 0].sum(-1), rows[..., 1].sum(-1)
    result: NDArray[np.float64] = faithful / np.maximum(1, faithful + unfaithful)
    return result


def abstained(entries: Sequence[Mapping[str, Any]], sentences: float) -> NDArray[np.float64]:
    """Keep the greedy answers with the highest lowest score until they have as many sentences."""
    ranked = sorted(entries, key=lambda entry: -(1.0 if entry["lowest"] is None else entry["lowest"]))
    kept: list[Mapping[str, Any]] = []
    for entry in ranked:
        if kept and counts(kept)[:, :2].sum() >= sentences:
            break
        kept.append(entry)
    return counts(kept)


def table(path: Path) -> None:
    """Print the decoders side by side, each on the questions that it answered."""
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    by: dict[str, dict[tuple[str, int], Mapping[str, Any]]] = {name: {} for name in DECODERS}
    for entry in entries:
        by[entry["decoder"]][entry["set"], entry["question"]] = entry
    names = list(dict.fromkeys(name for name, _ in by[GREEDY]))
    picked = np.random.default_rng(0).integers(0, len(names), (DRAWS, len(names)))
    for decoder, own in by.items():
        both = [key for key in own if key in by[GREEDY]]
        is_last = decoder == BRANCHES
        for quoting in (False, True) if is_last else (False,):
            rows = counts([own[key] for key in both], quoting=quoting)
            greedy = counts([by[GREEDY][key] for key in both])
            members = {name: np.array([n for n, key in enumerate(both) if key[0] == name], int) for name in names}
            draws = [np.concatenate([members[names[n]] for n in draw]) for draw in picked]
            low, high = np.quantile([share(rows[draw]) for draw in draws], (0.025, 0.975))
            faithful, unfaithful, empty, useful, partly = rows.sum(0)
            print(f"{decoder}{', quoting' if quoting else ''}: {len(both)} questions, {len(dict(both))} sets")
            print(f"    faithful {with_interval(float(share(rows)), low, high)}")
            print(f"    {faithful:.0f} sentences and {unfaithful:.0f} others")
            print(
                f"    empty {empty:.0f}, useful {useful:.1f}, partly {partly:.1f} (greedy {greedy[:, 3].sum():.1f}, "
                f"{greedy[:, 4].sum():.1f})"
            )
            for name, column in (("useful", 3), ("useful or partly", slice(3, 5))):
                gains = [(rows[draw][:, column].sum() - greedy[draw][:, column].sum()) / len(draw) for draw in draws]
                mean = (rows[:, column].sum() - greedy[:, column].sum()) / len(both)
                print(
                    f"    {name} over greedy: {with_interval(float(mean), *np.quantile(gains, (0.025, 0.975)), '+.3f')}"
                )
        for other in (GREEDY, CAD) if decoder in (SEARCH, BRANCHES) else ():
            theirs = counts([by[other][key] for key in both])
            low, high = np.quantile([share(rows[draw]) - share(theirs[draw]) for draw in draws], (0.025, 0.975))
            print(f"    over {other}: {with_interval(float(share(rows) - share(theirs)), low, high, '+.3f')}")
        if decoder in (SEARCH, BRANCHES):
            left = abstained([by[GREEDY][key] for key in both], rows[:, :2].sum())
            print(f"    abstention that says as much: {float(share(left)):.3f}, {len(left)} answers")


def main() -> None:
    """Answer, choose, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("answer", "candidates"):
        writing = commands.add_parser(name)
        writing.add_argument("--wikipedia", type=Path)
        writing.add_argument("--ragtruth", type=Path)
        writing.add_argument("--output", type=Path, required=True)
        if name == "answer":
            writing.add_argument("--decoders", nargs="+", choices=DECODERS, default=DECODERS)
        else:
            writing.add_argument("--alphas", nargs="+", type=float, default=ALPHAS)
            writing.add_argument("--turns", type=int, default=1, help="number of questions of each set")
    choosing = commands.add_parser("choose")
    choosing.add_argument("--candidates", type=Path, required=True)
    choosing.add_argument("--monitor", type=Path, help="folder for the kit's monitor with these thresholds")
    commands.add_parser("table").add_argument("--answers", type=Path, required=True)
    args = parser.parse_args()
    if args.command == "answer":
        answer(load_questions(args.wikipedia, args.ragtruth), args.decoders, args.output)
    elif args.command == "candidates":
        candidates(load_questions(args.wikipedia, args.ragtruth), args.alphas, args.turns, args.output)
    elif args.command == "choose":
        choose(args.candidates, args.monitor)
    else:
        table(args.answers)


if __name__ == "__main__":
    main()
