"""AUROC of a monitor that was adapted without labels, beside those of others, on questions held out from it.

    python benchmarks/adapted.py --ragtruth ragtruth-qa --answers 2 --questions 40

First the given answers of RAGTruth QA, with the labels hidden and the kit's language model as surrogate: the questions
are halved, each half is scored by a monitor that was adapted on the other. Then the kit's own greedy answers to some of
the same questions, watched live; their labels are those of a rule (``examples/starter_kit/planted_errors.py``: a
faithful sentence is copied from one place of a passage), made for this model, and no person's.

The bundled monitor ``generic-bundled`` has seen labels of RAGTruth QA, as a monitor and as a teacher; the bundled
aligner has not. Intervals are bootstrap intervals over questions, 95 %.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from syncheck import LabelledResponse, Monitor, MonitorConfig, Verifier, load_aligner, load_kit
from syncheck.evaluation import auroc_table, cross_validate
from syncheck.kit_model import kit_language_model
from syncheck.labelling import LabelledSentence, load_ragtruth
from syncheck.training import (
    LabelledSet,
    MeasuredSentences,
    Teacher,
    adapt_monitor,
    against_references,
    labelled_set,
    measure,
)

Floats = NDArray[np.float64]


def scores_of(monitor: Monitor, found: LabelledSet) -> Floats:
    """Score measured sentences with another monitor of the same schema, by its own references."""
    assert monitor.aggregator is not None
    return monitor.aggregator.score(against_references(found.measured, monitor).values[found.used])


def text_scores(verifier: Verifier, measured: MeasuredSentences, used: NDArray[np.int64]) -> Floats:
    """Score the measured sentences by their text alone; one that claims nothing counts as faithful."""
    scored = []
    for number, record in enumerate(measured.records):
        starts = [start for start, _ in measured.bounds_of(number)][1:]  # as they were measured
        places = pairwise([0, *starts, len(record.response)])
        sentences = [record.response[start:stop] for start, stop in places]
        report = verifier.check(question=record.question, passages=record.passages, sentences=sentences)
        scored += [sentence.score for sentence in report.sentences]
    return np.array([1.0 if score is None else score for score in scored])[used]


def halves(records: Sequence[LabelledResponse], seed: int) -> tuple[set[str], set[str]]:
    """Return the groups of either half."""
    groups = sorted({record.group for record in records})
    random.Random(seed).shuffle(groups)
    return set(groups[::2]), set(groups[1::2])


def adapted_scores(
    found: LabelledSet, prompts: Sequence[LabelledResponse], teacher: Teacher, seed: int, **options: int
) -> Floats:
    """Score each half of the questions by a monitor that was adapted on the other."""
    model, tokenizer = kit_language_model()
    scores = np.full(len(found.y), np.nan)
    for train in halves(prompts, seed):
        chosen = [record for record in prompts if record.group in train]
        adapted = adapt_monitor(
            chosen, model=model, tokenizer=tokenizer, teacher=teacher, seed=seed, kind=Monitor, **options
        )
        outside = ~np.isin(found.groups, sorted(train))
        scores[outside] = scores_of(adapted.monitor, found)[outside]
        for task, counts in adapted.counts().items():
            print(f"  {task}: {counts[0]} faithful, {counts[1]} unfaithful, {counts[2]} without a label")
    return scores


def table(scores: Mapping[str, Floats], found: LabelledSet) -> str:
    """Return the AUROC of every system, and its gain over the first, on the same sentences."""
    rows = {name: np.atleast_2d(values) for name, values in scores.items()}
    return auroc_table(rows, found.y, found.groups).to_text()


def of_given_answers(args: argparse.Namespace) -> Iterator[str]:
    """Yield the table of RAGTruth QA with the labels hidden."""
    records = [record for record in load_ragtruth(args.ragtruth)]
    rng = random.Random(args.seed)
    by_group: dict[str, list[LabelledResponse]] = {}
    for record in records:
        by_group.setdefault(record.group, []).append(record)
    kept = [record for own in by_group.values() for record in rng.sample(own, min(args.answers, len(own)))]
    model, tokenizer = kit_language_model()
    aligner = load_aligner("bundled")
    assert aligner is not None
    measured = measure(Monitor(model, tokenizer, config=MonitorConfig(), aligner=aligner), kept)
    found = labelled_set(measured, "strict")
    hidden = [replace(record, spans=None) for record in kept]
    supervised = cross_validate(found.features, found.y, found.groups, aggregator="lr", names=measured.schema.names)
    monotone = cross_validate(found.features, found.y, found.groups, aggregator="monotone", names=measured.schema.names)
    column = measured.schema.names.index("align_score")
    yield table(
        {
            "aligner alone": measured.values[found.used, column],
            "adapted, taught by the aligner": adapted_scores(found, hidden, aligner, args.seed),
            "adapted, taught by generic-bundled": adapted_scores(found, hidden, load_kit("generic-bundled"), args.seed),
            "generic-bundled (has seen labels)": text_scores(load_kit("generic-bundled"), measured, found.used),
            "supervised, lr, cross-validated": supervised,
            "supervised, monotone, cross-validated": monotone,
        },
        found,
    )


def of_own_answers(args: argparse.Namespace) -> Iterator[str]:
    """Yield the table of the kit's own greedy answers."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "starter_kit"))
    from planted_errors import is_faithful

    records = list({record.group: record for record in load_ragtruth(args.ragtruth)}.values())
    chosen = random.Random(args.seed).sample(records, min(args.questions, len(records)))
    prompts = [replace(record, response="", spans=None, generator="kit") for record in chosen]
    kit = load_kit("generation")
    answered = []
    for record in prompts:
        prompt = kit.prompt(question=record.question, context=record.passages)
        report = kit.generate(prompt, max_new_tokens=args.max_new_tokens, do_sample=False)
        sentences = tuple(
            LabelledSentence(s.start, s.end, is_faithful(s.text, record.passages)) for s in report.sentences
        )
        if report.response.strip():
            answered.append(replace(record, response=report.response, sentences=sentences, carry_labels=True))
    measured = measure(Monitor(kit.model, kit.tokenizer, config=MonitorConfig(), aligner=kit.aligner), answered)
    found = labelled_set(measured, "strict")
    column = measured.schema.names.index("align_score")
    options = {"max_new_tokens": args.max_new_tokens}
    yield table(
        {
            "aligner alone": measured.values[found.used, column],
            "adapted, taught by the aligner": adapted_scores(found, prompts, kit.aligner, args.seed, **options),
            "generic-bundled": text_scores(load_kit("generic-bundled"), measured, found.used),
            "supervised: the kit's monitor for its own answers": scores_of(kit, found),
        },
        found,
    )


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ragtruth", type=Path, required=True, metavar="DIR")
    parser.add_argument("--answers", type=int, default=6, help="given answers to each question (%(default)s)")
    parser.add_argument("--questions", type=int, default=100, help="that the kit answers itself (%(default)s)")
    parser.add_argument("--max-new-tokens", type=int, default=96, help="of the kit's own answers (%(default)s)")
    parser.add_argument("--only", choices=("given", "own"), help="one of the two parts (both)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    args = parser.parse_args(words)
    for name, part in (("given", of_given_answers), ("own", of_own_answers)):
        if args.only in (None, name):
            started = time.process_time()
            for text in part(args):
                print(f"{name} answers\n{text}", flush=True)
            print(f"{time.process_time() - started:.0f} CPU seconds")


if __name__ == "__main__":
    main()
