"""What the signals of the kit's model are worth on its labelled answers: the paper's Table 1 and Figure 3 in small.

    for part in open blind; do
        python benchmarks/kit_answers.py records --part $part --wikipedia articles.jsonl.xz --ragtruth ragtruth-qa \
            --output $part.jsonl
        syncheck features --schema syncheck.v6 --line-breaks lists --abbreviations english --data $part.jsonl \
            --output $part.parquet
    done
    python benchmarks/kit_signals.py --open open.parquet --blind blind.parquet

Everything is trained and chosen on ``open`` and reported on ``blind``. Groups are sets of passages. ``generic`` is the
verifier that reads text alone; it saw none of these labels. The packaged monitor saw the first 602 answers of ``open``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from syncheck import Verifier, load_kit
from syncheck.aggregators import Aggregator
from syncheck.aggregators.kinds import shrunk_towards
from syncheck.evaluation import System, ablation_systems, auroc_table, held_out_scores
from syncheck.evaluation.metrics import with_interval
from syncheck.features.schemas import FEATURES, LID, feature_groups, feature_schema, needs_lid
from syncheck.training import MeasuredSentences, read_parquet
from syncheck.training.measured import joined
from syncheck.training.sets import LabelledSet

Floats = NDArray[np.float64]
KINDS = ("lr", "xgb", "mlp")
REFERENCES = (25, 50, 100)
"""There are fewer than 200 faithful sentences to take them from."""
OF_MODEL = {feature.name for feature in FEATURES if feature.of_model}
REPEATS = 3


class Comparison:
    """Sentences of both parts, on one of which systems are trained."""

    def __init__(self, train: MeasuredSentences, test: MeasuredSentences, verifier: Verifier) -> None:
        self.measured = joined([train, test])
        self.set = LabelledSet.scored(self.measured, rule="overlap")
        self.train = self.measured.owners[self.set.used] < len(train.records)
        self.names = self.measured.schema.names
        self.layers = tuple(int(n.rpartition("_")[2]) for n in self.names if n.startswith(LID.format(k="")))
        assert verifier.aggregator is not None
        self.generic = verifier.aggregator

    def columns(self, schema: str) -> tuple[str, ...]:
        """List the columns of a schema."""
        return feature_schema(schema, self.layers if needs_lid(schema) else ()).names

    def of_model(self) -> tuple[str, ...]:
        """List the columns that a language model measures, LID included."""
        return tuple(n for n in self.names if n in OF_MODEL or n.startswith(LID.format(k="")))

    def scores(
        self, systems: Sequence[System], train: NDArray[np.bool_] | None = None, references: int | None = None
    ) -> dict[str, Floats]:
        """Score the other part, in which a value that falls with faithfulness is turned round."""
        chosen = self.set
        if references is not None:
            chosen = replace(chosen, measured=replace(self.measured, max_references=references))
        X, y, _ = chosen.data
        train = self.train if train is None else train
        scores = held_out_scores(X, y, train, names=self.names, systems=systems, repeats=REPEATS)
        direction = dict(zip(self.names, self.measured.schema.directions, strict=True))
        return {s.name: scores[s.name] * (1 if s.trained else direction[s.columns[0]] or 1) for s in systems}

    def scores_by(self, aggregator: Aggregator, rows: NDArray[np.bool_]) -> Floats:
        """Score by a stored aggregator from its own columns, without LID."""
        places = [self.names.index(name) for name in aggregator.schema.names]
        scores: Floats = aggregator.score(self.measured.values[self.set.used][rows][:, places])
        return scores[None]

    def shrunk(self) -> System:
        """Make the regression that is pulled towards ``generic``."""
        kind = shrunk_towards(self.generic.model, self.generic.schema.names, self.names)
        return System("syncheck.v6, shrunk towards generic", self.names, aggregator=kind)

    def table(self, scores: dict[str, Floats], rows: NDArray[np.bool_] | None = None, *, by_task: bool = False) -> str:
        """Write AUROC and its gain over the first system."""
        rows = ~self.train if rows is None else rows
        by = {"kind": list(self.set.tasks[rows])} if by_task else None
        table = auroc_table(scores, self.set.y[rows], self.set.groups[rows], by=by)
        first = table.rows[0]
        lines = [f"{first.sentences} sentences, {first.unfaithful} unfaithful; gain over {first.system}"]
        for row in table.rows:
            where = "" if row.subset == "all" else f"{row.subset}: "
            gain = with_interval(row.gain, row.gain_low, row.gain_high, "+.3f")
            lines.append(f"  {where + row.system:<52} {with_interval(row.auroc, row.low, row.high)}  {gain}")
        return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--open", required=True)
    parser.add_argument("--blind", required=True, help="opened for these tables alone; a part of --open to try")
    args = parser.parse_args()
    compared = Comparison(read_parquet(args.open), read_parquet(args.blind), load_kit("generic"))
    y = compared.set.y
    print(f"trained on {compared.train.sum()} sentences, {(y[compared.train] == 0).sum()} unfaithful\n")

    generic = {"generic": compared.scores_by(compared.generic, ~compared.train)}
    kit = load_kit("generation").aggregator
    assert kit is not None
    packaged = {"monitor generation, as packaged": compared.scores_by(kit, ~compared.train)}
    alone = [System(name, (name,), trained=False) for name in compared.of_model()]
    alone += [System("reader alone", ("align_logit",), trained=False)]
    alone += [System(f"{name} (words)", (name,), trained=False) for name in ("content_overlap", "pair_overlap")]
    print("one signal each, untrained\n" + compared.table(generic | compared.scores(alone)) + "\n")

    signals = compared.of_model()
    trained = [System(f"the model's signals, {kind}", signals, aggregator=kind) for kind in KINDS]
    for schema in ("paper.v1", "syncheck.v3", "syncheck.v5", "syncheck.v6"):
        columns = compared.columns(schema)
        trained += [System(f"{schema}, {kind}", columns, aggregator=kind) for kind in KINDS]
    trained += [System("syncheck.v6, ensemble", compared.names, aggregator="ensemble"), compared.shrunk()]
    print("trained\n" + compared.table(generic | packaged | compared.scores(trained)) + "\n")

    for schema in ("paper.v1", "syncheck.v6"):
        columns = compared.columns(schema)
        groups = feature_groups(columns)
        left = [replace(s, aggregator="lr") for s in ablation_systems(columns, groups)]
        print(f"without one group of signals: {schema}, lr\n" + compared.table(compared.scores(left)) + "\n")

    lid = [System(name, (name,), trained=False) for name in compared.names if name.startswith(LID.format(k=""))]
    for references in REFERENCES:
        print(f"LID, {references} references\n" + compared.table(compared.scores(lid, references=references)) + "\n")

    sources = np.array([group.partition("-")[0] for group in compared.set.groups])
    kinds = np.where(np.isin(sources, ("wiki", "ragtruth")), sources, "written")
    systems = [System("paper.v1, lr", compared.columns("paper.v1"), aggregator="lr"), compared.shrunk()]
    systems.append(System("syncheck.v6, lr", compared.columns("syncheck.v6"), aggregator="lr"))
    for kind in np.unique(kinds):
        inside = kinds != kind
        scores = {"generic": compared.scores_by(compared.generic, ~inside)} | compared.scores(systems, inside)
        print(f"{kind}: trained on the other kinds of text\n" + compared.table(scores, ~inside) + "\n")


if __name__ == "__main__":
    main()
