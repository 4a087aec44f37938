"""Decoders of the kit's model on blind questions: what share of the sentences is faithful, and what is lost for it.

    DATA="--wikipedia articles.jsonl.xz --ragtruth ragtruth-qa"
    python benchmarks/kit_decoding.py candidates $DATA --output candidates.jsonl    # then label them
    python benchmarks/kit_decoding.py choose --candidates benchmarks/kit_answers/candidates.jsonl
    python benchmarks/kit_decoding.py bar --candidates benchmarks/kit_answers/candidates.jsonl
    python benchmarks/kit_decoding.py answer $DATA --output decoded.jsonl           # then label them
    python benchmarks/kit_decoding.py table --answers benchmarks/kit_answers/decoded.jsonl

``candidates`` writes the first two greedy sentences of questions of the part ``tuning`` with all their branches,
``choose`` the settings of repair, from labels of these, and ``bar`` says whether more branches need a higher threshold.
``answer`` takes all questions of the blind sets of ``benchmarks/kit_answers``, one of each set before a second one of
any. A language model read all sentences twice, in separate readings that saw neither scores nor the names of the
decoders; sentences on which the readings disagree do not count. Intervals: bootstrap over sets of passages.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from kit_answers import FOLDER, MAX_NEW_TOKENS, QuestionSet, load_questions
from numpy.typing import NDArray
from tqdm import tqdm

import fod
from fod.guards import is_beside
from syncheck import Monitor, RagPrompt, Report, load_kit
from syncheck.evaluation.metrics import with_interval

GREEDY, CAD, BEST, RERANKED, SEARCH, BRANCHES = "greedy", "cad", "best of 6", "reranked", "search", "branches"
DECODERS = (GREEDY, CAD, BEST, RERANKED, SEARCH, BRANCHES)
CHOSEN = FOLDER / "chosen.json"
"""What ``choose`` has chosen."""
ALL_BRANCHES = fod.RepairConfig(
    backtrack_threshold=1.0,
    prune_threshold=1.0,
    repair_from=0.0,
    opening_relevance=0.0,
    max_skips=1,
    branches=4,
    cuts=2,
)
"""Nothing passes: two greedy sentences, each with its branches."""
ALPHAS = (0.25, 0.5, 1.0)
"""Strengths of the contrast to choose from."""
GRID = np.round(np.arange(0.05, 1.0, 0.05), 2)
"""Thresholds to look at."""
LEAST = 0.6
"""Least threshold to choose: none released should be unsupported, as the kit's monitor calls sentences below 0.567."""
REPAIRED_FROM = (0.0, 0.25, 0.35, 0.4, 0.45, 0.5)
"""Least mean probabilities of a sentence that is repaired, to choose from."""
OPTIONS: Mapping[str, Sequence[Any]] = {
    "branches": (0, 1, 2, 4),
    "cuts": (0, 1, 2),
    "exact_names": (True, False),
    "clear_pronouns": (True, False),
    "least_relevance": (0.0, 0.1, 0.2),
    "opening_relevance": (0.0, 0.1, 0.2, 0.3),
}
"""Other settings of repair to choose from."""
THRESHOLDS = ("backtrack_threshold", "prune_threshold")
CURVE = ((0.05, 0.05), (0.2, 0.3), (0.35, 0.6), (0.5, 0.6), (0.65, 0.75), (0.75, 0.85))
"""Thresholds that are shown with the other settings as they were chosen."""
COUNTS, ORDERS = (1, 2, 3, 5, 7), 20
"""Numbers of branches that ``bar`` tries, and of orders in which it takes them."""
KEPT = 0.9
"""Least share of what greedy sentences truly answer that the chosen settings keep."""
NEARLY = 0.03
"""Share of faithful sentences that may be given up for a cheaper decoder."""
AS_CHEAP = 1.02
"""Times the fewest tokens that count as no more."""
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
                rounds = [
                    [_candidate(each, step.candidates[0]) for each in step.candidates]
                    for step in output_of.search.rounds
                ]
                entry = {"set": asked.name, "question": question, "alpha": alpha, "rounds": rounds}
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
                file.flush()


def _candidate(each: Any, written: Any) -> Mapping[str, Any]:  # noqa: ANN401 - candidates of the search
    return {
        "row": each.handle[1],  # of its round: 0 is the greedy sentence, 1 the branch from its least certain token
        "opens": each.token_ids[:1] != written.token_ids[:1],
        "text": " ".join(each.text.split()),
        "score": each.lowest,
        "log_prob": each.log_prob,
        "tokens": len(each.token_ids),
        "keeps_subject": each.keeps_subject,
        "is_cut": each.is_cut,
        "rated": None if each.relevance is None else round(each.relevance, 3),
        "judged": each.relevance is not None and is_beside(each.text, 0.0, 1.0),
        "fault": each.fault,
    }


Round = Sequence[Mapping[str, Any]]
"""A greedy sentence and its branches."""


def is_at_fault(candidate: Mapping[str, Any], config: fod.RepairConfig) -> bool:
    """Tell whether a candidate does not pass whatever its score; ``fault`` was written with all checks."""
    fault: str = candidate["fault"]
    if fault.startswith("a name altered"):
        return config.exact_names
    return config.clear_pronouns if fault.startswith("a pronoun") else bool(fault)


def tried(step: Round, config: fod.RepairConfig) -> list[Mapping[str, Any]]:
    """List the branches that are tried, the best ones first."""
    cuts = [each for each in step[1:] if each["is_cut"]][: config.cuts]
    branches = [c for c in step[1:] if not c["is_cut"] and (c["opens"] or c["row"] <= config.branches)] + cuts
    return sorted(branches, key=lambda c: (c["keeps_subject"], not c["is_cut"], c["log_prob"]), reverse=True)


def passes(candidate: Mapping[str, Any], threshold: float) -> bool:
    """Tell whether a sentence reaches a threshold; one that claims nothing does."""
    return bool(candidate["text"]) and (candidate["score"] is None or candidate["score"] >= threshold)


def mean_probability(written: Mapping[str, Any]) -> float:
    """Compute the geometric mean of the probabilities of a sentence's tokens."""
    return math.exp(written["log_prob"] / max(1, written["tokens"]))


def value(candidate: Mapping[str, Any]) -> NDArray[np.float64]:
    """Read a released sentence (3,): whether it is faithful, whether not, and how much of an answer it is if faithful.

    Each is in [0, 1], the mean of the two readings; nothing is released without text.
    """
    if not candidate["text"]:
        return np.zeros(3)
    return _value(tuple(candidate["labels"]), tuple(candidate["relevance"]))


@cache
def _value(labels: tuple[str, ...], relevances: tuple[int, ...]) -> NDArray[np.float64]:
    read = zip(labels, relevances, strict=True)
    return np.array([[label == "F", label == "U", (label == "F") * relevance / 2] for label, relevance in read]).mean(0)


def outcomes(
    answers: Sequence[Sequence[Round]], config: fod.RepairConfig
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Decide on each greedy sentence and its branches as :func:`fod.repair` does, with all thresholds of the grid.

    Returns the sums of :func:`value` (R, G, G, 3) and the tokens decoded (R, G, G), for each of ``REPAIRED_FROM``,
    tau_1 and tau_2.
    """
    shape = (len(REPAIRED_FROM), len(GRID), len(GRID))
    sums, decoded = np.zeros((*shape, 3)), np.zeros(shape, int)
    for rounds in answers:
        is_begun = np.zeros(shape, bool)
        for written, *branches in rounds:
            own = tried([written, *branches], config)
            is_beside = written["judged"] and written["rated"] < config.opening_relevance
            hidden = ~is_begun & is_beside
            passing = np.array([not is_at_fault(written, config) and passes(written, one) for one in GRID])
            stays = passing[None, :, None] & ~hidden
            is_sure = mean_probability(written) >= np.array(REPAIRED_FROM)
            repaired = is_sure[:, None, None] & ~stays & ~hidden
            fit = [c for c in own if not is_at_fault(c, config) and (c["rated"] or 1.0) >= config.least_relevance]
            released = np.array([next((value(c) for c in fit if passes(c, one)), np.zeros(3)) for one in GRID])
            sums += stays[..., None] * value(written) + repaired[..., None] * released
            decoded += written["tokens"] + repaired * sum(each["tokens"] for each in own)
            is_begun |= stays & bool(value(written)[:2].any()) | repaired & released[:, :2].any(1)
    return sums, decoded


def best(
    answers: Sequence[Sequence[Round]], options: Iterable[fod.RepairConfig], greedy: NDArray[np.float64]
) -> tuple[fod.RepairConfig, NDArray[np.float64], int] | None:
    """Choose the thresholds and ``repair_from``, and one of the options; with its sums and tokens.

    Of all settings whose released sentences answer at least ``KEPT`` of what the greedy ones do, and of which the share
    of faithful sentences is within ``NEARLY`` of the largest, it is the one with the fewest tokens; of those with
    hardly more (``AS_CHEAP``), that with the largest share, then the strictest.
    """
    found: list[tuple[float, int, fod.RepairConfig, tuple[int, int, int], NDArray[np.float64]]] = []
    for option in options:
        sums, decoded = outcomes(answers, option)
        for place in product(range(len(REPAIRED_FROM)), range(len(GRID)), range(len(GRID))):
            _, one, other = GRID[[0, *place[1:]]]
            faithful, others, answered = sums[place]
            if other >= one >= LEAST and answered >= KEPT * greedy[2]:
                share = faithful / (faithful + others)
                found.append((share, int(decoded[place]), option, place, sums[place]))
    if not found:
        return None
    most = max(share for share, *_ in found)
    near = [each for each in found if each[0] >= most - NEARLY]
    limit = AS_CHEAP * min(count for _, count, *_ in near)
    cheap = [each for each in near if each[1] <= limit]
    _, tokens, option, place, sums_of = min(cheap, key=lambda each: (-each[0], each[1], -each[2].least_relevance))
    least, one, other = place
    thresholds = {"backtrack_threshold": float(GRID[one]), "prune_threshold": float(GRID[other])}
    return replace(option, repair_from=REPAIRED_FROM[least], **thresholds), sums_of, tokens


def choose(path: Path, folder: Path | None) -> None:
    """Choose settings and write them.

    ``alpha`` comes first, on the questions for which candidates of each were written; the others on all.
    """
    steps: dict[float, dict[tuple[str, int], list[Round]]] = {}
    for entry in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        steps.setdefault(entry["alpha"], {})[entry["set"], entry["question"]] = entry["rounds"]
    shared = set.intersection(*map(set, steps.values()))
    of_alpha = {alpha: [own[key] for key in own if key in shared] for alpha, own in steps.items()}
    greedy = np.sum([value(step[0]) for rounds in of_alpha[min(of_alpha)] for step in rounds], axis=0)
    plain = {
        alpha: best(own, [replace(ALL_BRANCHES, alpha=alpha, max_skips=2)], greedy) for alpha, own in of_alpha.items()
    }
    tops = {alpha: top for alpha, top in plain.items() if top is not None}
    for alpha, (config, sums, count) in tops.items():
        print(f"alpha {alpha}: {sums} with {count} tokens, {config.backtrack_threshold}, {config.prune_threshold}")
    most = max(sums[0] / sums[:2].sum() for _, sums, _ in tops.values())
    near = {alpha: count for alpha, (_, sums, count) in tops.items() if sums[0] / sums[:2].sum() >= most - NEARLY}
    alpha = min(near, key=lambda one: near[one])
    every = list(steps[alpha].values())
    greedy = np.sum([value(step[0]) for rounds in every for step in rounds], axis=0)
    options = [
        fod.RepairConfig(alpha=alpha, **dict(zip(OPTIONS, values, strict=True)))
        for values in product(*OPTIONS.values())
    ]
    top = best(every, options, greedy)
    assert top is not None, "no setting answers enough"
    config, sums, count = top
    chosen = {name: getattr(config, name) for name in ("alpha", *THRESHOLDS, "repair_from", *OPTIONS)}
    facts = {
        "questions": len(steps[alpha]),
        "sentences": sum(map(len, every)),
        "faithful, not, and how much they answer": [round(float(each), 1) for each in sums],
        "of greedy sentences": [round(float(each), 1) for each in greedy],
        "tokens decoded": count,
    }
    CHOSEN.write_text(json.dumps({"chosen": chosen, "on": facts}, indent=1) + "\n", encoding="utf-8")
    print(CHOSEN.read_text(encoding="utf-8"))
    for name, values in OPTIONS.items():
        for each in values:
            top = best(every, [option for option in options if getattr(option, name) == each], greedy)
            if top is None:
                print(f"{name} {each}: no setting answers enough")
                continue
            own, sums, count = top
            of = own.backtrack_threshold, own.prune_threshold, own.repair_from
            print(f"{name} {each}: {sums[0] / sums[:2].sum():.3f} faithful, {sums}, {count} tokens, {of}")
    sums_of, _ = outcomes(every, config)
    by_threshold = sums_of[REPAIRED_FROM.index(config.repair_from)]
    for one, other in CURVE:
        sums = by_threshold[np.isclose(GRID, one).argmax(), np.isclose(GRID, other).argmax()]
        print(f"thresholds {one}, {other}: {sums[0] / sums[:2].sum():.3f} faithful, {sums}")
    if folder is not None:
        monitor = load_kit("generation")
        monitor.config = replace(monitor.config, **{name: chosen[name] for name in THRESHOLDS})
        monitor.save_pretrained(folder)


def bar(path: Path) -> None:
    """Print what share of the released branches is unfaithful if fewer of them are tried, for several thresholds."""
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    config = fod.RepairConfig(**json.loads(CHOSEN.read_text(encoding="utf-8"))["chosen"])
    steps = [step for entry in lines for step in entry["rounds"]]
    assert isinstance(config.backtrack_threshold, float)
    failing = [
        [c for c in tried(step, config) if not is_at_fault(c, config)]
        for step in steps
        if (is_at_fault(step[0], config) or not passes(step[0], config.backtrack_threshold))
        and mean_probability(step[0]) >= config.repair_from
    ]
    rng = np.random.default_rng(0)
    print(f"{len(failing)} sentences with branches, by the number of branches tried: unfaithful share (released)")
    for threshold in (0.4, 0.5, 0.6, 0.7, 0.8):
        cells = []
        for most in COUNTS:
            sums = np.zeros(3)
            for branches in failing:
                for _ in range(ORDERS):
                    some = sorted(rng.permutation(len(branches))[:most])
                    released = next((branches[n] for n in some if passes(branches[n], threshold)), None)
                    sums += np.zeros(3) if released is None else value(released) / ORDERS
            cells.append(f"{most}: {sums[1] / sums[:2].sum():.2f} ({sums[:2].sum():.1f})")
        print(f"    {threshold:.1f}   " + "   ".join(cells))


def counts(entries: Sequence[Mapping[str, Any]], *, quoting: bool = False) -> NDArray[np.float64]:
    """Count what each answer has (N, 5).

    These are its faithful and unfaithful sentences, and whether it is empty, useful, or partly useful; with
    ``quoting``, quotations stand in place of empty answers, or follow those that say too little.
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
    for name in ("choose", "bar"):
        commands.add_parser(name).add_argument("--candidates", type=Path, required=True)
    commands.choices["choose"].add_argument(
        "--monitor", type=Path, help="folder for the kit's monitor with these thresholds"
    )
    commands.add_parser("table").add_argument("--answers", type=Path, required=True)
    args = parser.parse_args()
    if args.command == "answer":
        answer(load_questions(args.wikipedia, args.ragtruth), args.decoders, args.output)
    elif args.command == "candidates":
        candidates(load_questions(args.wikipedia, args.ragtruth), args.alphas, args.turns, args.output)
    elif args.command == "choose":
        choose(args.candidates, args.monitor)
    elif args.command == "bar":
        bar(args.candidates)
    else:
        table(args.answers)


if __name__ == "__main__":
    main()
