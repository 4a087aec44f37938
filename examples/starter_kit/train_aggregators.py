"""Train the starter kit's two aggregators.

python examples/starter_kit/train_aggregators.py generation --articles articles.jsonl.xz --output syncheck/assets
python examples/starter_kit/train_aggregators.py surrogate --ragtruth ragtruth-qa --output syncheck/assets

``generation`` scores the kit's own answers: trained on its greedy and sampled answers to articles that it was not
trained on, labelled by the passages, and on true answers with planted errors. ``surrogate`` scores other models'
answers: trained on RAGTruth QA. In both the kind of aggregator is the one with the best grouped cross-validation.
Measurements are kept in ``--run``, where a run that was cut off goes on.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from planted_errors import is_faithful, neighbours, plant
from tqdm import tqdm
from wikipedia_qa import ExampleMaker, QAExample, Substitution, load_articles

from syncheck import Monitor, MonitorConfig, load_aligner
from syncheck.config import DEFAULT_SCHEMA, AggregatorKind, default_layers
from syncheck.evaluation import auroc_table, benchmark_systems, best_aggregator, out_of_fold_scores
from syncheck.kit import kit_language_model
from syncheck.labelling import LabelledResponse, LabelledSentence, load_ragtruth
from syncheck.training import MeasuredSentences, fit_measured, measure, read_parquet, write_parquet

SEED = 11
LENGTHS = (500, 900, 1400)
"""Characters of passages, question and answer."""
REFERENCES = 400
"""LID references kept of each layer, which bounds the file."""


def untrained_monitor() -> Monitor:
    """Return the kit's model with its aligner and no aggregator."""
    model, tokenizer = kit_language_model()
    layers = default_layers(model.config.num_hidden_layers)
    config = MonitorConfig(schema=DEFAULT_SCHEMA, layers=layers)
    return Monitor(model, tokenizer, config=config, aligner=load_aligner("bundled"))


def own_responses(monitor: Monitor, articles: Path, count: int) -> list[LabelledResponse]:
    """Answer ``count`` questions greedily and ``count`` by sampling, and plant errors in as many true answers."""
    pool = load_articles(articles, "aggregator")
    substitution = Substitution(pool)
    maker = ExampleMaker(pool, substitution)
    rng = random.Random(SEED)
    generator = torch.Generator().manual_seed(SEED)
    responses = []
    for index in tqdm(range(count), desc="own answers", unit=" questions", mininterval=5):
        example = maker.draw(rng, rng.choice(LENGTHS))
        while not example.passages:
            example = maker.draw(rng, rng.choice(LENGTHS))
        prompt = monitor.prompt(question=example.question, context=example.passages)
        for way in ("greedy", "sampled"):
            settings = {"do_sample": True, "temperature": 0.9, "top_p": 0.95} if way == "sampled" else {}
            report = monitor.generate(prompt, max_new_tokens=160, generator=generator, **settings)
            sentences = [(s.start, s.end, is_faithful(s.text, example.passages)) for s in report.sentences]
            responses.append(_response(f"{way}-{index}", example, report.response, sentences, way))
        responses.append(_planted(f"planted-{index}", rng, example, substitution))
    return [r for r in responses if r.response.strip()]


def _planted(name: str, rng: random.Random, example: QAExample, substitution: Substitution) -> LabelledResponse:
    answer, wrong = plant(rng, example, neighbours(example), substitution)
    sentences, start = [], 0
    for index, sentence in enumerate(answer):
        faithful = index != wrong and example.supported[index]
        sentences.append((start, start + len(sentence), faithful))
        start += len(sentence) + 1
    return _response(name, example, " ".join(answer), sentences, "planted")


def _response(
    name: str, example: QAExample, text: str, sentences: Sequence[tuple[int, int, bool]], generator: str
) -> LabelledResponse:
    return LabelledResponse(
        id=name,
        question=example.question,
        passages=example.passages,
        response=text,
        group=example.title,
        generator=generator,
        sentences=tuple(LabelledSentence(*s) for s in sentences),
        carry_labels=True,
    )


def best_kind(
    measured: MeasuredSentences, labels: np.ndarray, used: np.ndarray
) -> tuple[AggregatorKind, dict[str, float]]:
    """Return the kind of aggregator with the best AUROC in grouped cross-validation, and all figures."""
    y, groups = labels[used], measured.groups[used]
    kind, table, _ = best_aggregator(
        lambda train: measured.features(labels, used[train])[used],
        y,
        groups,
        names=measured.schema.names,
        repeats=3,
        seed=SEED,
        draws=1,
    )
    return kind, {row.system: row.auroc for row in table.rows}


def measured_responses(monitor: Monitor, args: argparse.Namespace) -> MeasuredSentences:
    """Measure the responses, or read what an earlier run measured."""
    table = args.run / f"{args.purpose}.parquet"
    if not table.exists():
        if args.purpose == "surrogate":
            responses = load_ragtruth(args.ragtruth)
        else:
            responses = own_responses(answering_monitor(monitor), args.articles, args.questions)
        measured = replace(measure(monitor, responses, show_progress=True), max_references=REFERENCES)
        args.run.mkdir(parents=True, exist_ok=True)
        temporary = table.with_suffix(".part")
        write_parquet(measured, temporary)
        temporary.replace(table)
    return read_parquet(table)


def train(purpose: str, monitor: Monitor, measured: MeasuredSentences, output: Path) -> None:
    """Compare, train, save and write the model card."""
    started = time.monotonic()
    labels, used = measured.labels(), np.flatnonzero(measured.with_letter)
    kind, figures = best_kind(measured, labels, np.flatnonzero(measured.checkable))
    names = measured.schema.names
    scores = out_of_fold_scores(
        lambda rows: measured.features(labels, used[rows])[used],
        labels[used],
        measured.groups[used],
        names=names,
        systems=benchmark_systems(names),
        aggregator=kind,
        seed=SEED,
    )
    by = {"generator": list(measured.generators[used])}
    table = auroc_table(scores, labels[used], measured.groups[used], by=by, seed=SEED)
    trained = fit_measured(monitor, measured, aggregator=kind, seed=SEED)
    folder = output / f"monitor-{purpose}"
    trained.save_pretrained(folder)
    facts = {
        "responses": len(measured.records),
        "left_out": len(measured.left_out),
        "sentences": int(measured.checkable.sum()),
        "unfaithful": int((labels[measured.checkable] == 0).sum()),
        "kinds": figures,
        "kind": kind,
        "backtrack": trained.config.backtrack_threshold,
        "prune": trained.config.prune_threshold,
        "megabytes": sum(path.stat().st_size for path in folder.iterdir() if path.suffix != ".md") / 1e6,
        "seconds": time.monotonic() - started,
    }
    print(table.to_text(), json.dumps(facts, indent=2), sep="\n\n")
    (folder / "README.md").write_text(model_card(purpose, facts, table.to_text()), encoding="utf-8")


def model_card(purpose: str, facts: dict[str, object], table: str) -> str:
    """Write the model card."""
    data = {
        "generation": "its own greedy and sampled answers to held-out Wikipedia articles (CC BY-SA 4.0), labelled by "
        "the passages, and true answers with one planted error (`examples/starter_kit/planted_errors.py`)",
        "surrogate": "the answers of six other models in the QA test part of RAGTruth (MIT), 100 questions, with human "
        "spans; a sentence is unfaithful if a span overlaps it",
    }[purpose]
    limits = {
        "generation": "the labels come from a rule that knows what was planted and what a passage says word for word, "
        "not from people; one small model's answers to questions about Wikipedia, in English",
        "surrogate": "questions of one data set, in English, and answers of 2023; few sentences are unfaithful, so "
        "that the intervals below are wide; on other kinds of claims it orders worse than the aligner alone (README)",
    }[purpose]
    kinds = ", ".join(f"{k} {v:.3f}" for k, v in facts["kinds"].items())  # type: ignore[attr-defined]
    return f"""# The starter kit's aggregator: {purpose}

Turns the features `{DEFAULT_SCHEMA}` of the kit's model and aligner into P(faithful). Trained on {data}:
{facts["responses"]} responses ({facts["left_out"]} left out), {facts["sentences"]} sentences with
a letter or digit, {facts["unfaithful"]} of them unfaithful.
`examples/starter_kit/train_aggregators.py {purpose}`, seed {SEED},
{facts["seconds"]:.0f} seconds.

Kind: {facts["kind"]}, the best of four by AUROC in five-fold cross-validation by question, three repeats ({kinds}).
Thresholds, from out-of-fold scores: backtrack {facts["backtrack"]:.3f} (10 % of the faithful sentences fall below),
prune {facts["prune"]:.3f} (25 %).

Size: {facts["megabytes"]:.1f} MB, most of it {REFERENCES} LID references of each of three layers. Limits: {limits}.

Sentences with a letter, trained on the others of them:

```
{table}
```

Licence: Apache-2.0.
"""


def main() -> None:
    """Train one of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("purpose", choices=("generation", "surrogate"))
    parser.add_argument("--articles", type=Path)
    parser.add_argument("--ragtruth", type=Path)
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--run", type=Path, default=Path("runs/aggregators"), help="where measurements are kept")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    monitor = untrained_monitor()
    train(args.purpose, monitor, measured_responses(monitor, args), args.output)


def answering_monitor(monitor: Monitor) -> Monitor:
    """Leave the aligner out where only text is wanted."""
    config = replace(monitor.config, schema="paper-no-lid.v1", layers=())
    return Monitor(monitor.model, monitor.tokenizer, config=config)


if __name__ == "__main__":
    main()
