"""Train x test matrices, sources left out, and models compared as surrogates."""

import json
from dataclasses import replace

import numpy as np
import pytest
from measured_doubles import yes_and_no
from sklearn.metrics import roc_auc_score

from syncheck import SegmenterConfig, feature_schema
from syncheck.aggregators import make_aggregator
from syncheck.base.errors import InputError, MismatchError
from syncheck.evaluation import (
    cross_validate,
    fold_numbers,
    left_out_matrix,
    left_out_scores,
    single_scores,
    transfer_matrix,
    with_best,
)
from syncheck.evaluation.metrics import auroc
from syncheck.labelling import UnfaithfulSpan
from syncheck.training import joined, labelled_set, surrogate_matrix


def parts_that_disagree(size=300, groups=30):
    """In part "b" the feature means the opposite of what it means in "a" and "c"."""
    rng = np.random.default_rng(0)
    y = (rng.random(size) < 0.6).astype(int)
    parts = np.array(["a", "b", "c"])[np.arange(size) % 3]
    direction = np.where(parts == "b", -1, 1)
    X = (rng.normal(size=size) + 3 * direction * (y - 0.5))[:, None]
    return X, y, rng.integers(0, groups, size).astype(str), parts


class TestTransfer:
    @pytest.mark.slow
    def test_cells_are_trained_on_the_row_and_tested_on_the_column(self):
        X, y, groups, parts = parts_that_disagree()
        matrix = transfer_matrix(
            X, y, groups, parts.tolist(), aggregator="lr", folds=4, repeats=2, same_folds=False, seed=3
        )
        assert (matrix.rows, matrix.columns) == (("a", "b", "c", "all others"), ("a", "b", "c"))
        for row, trained in (("a", parts == "a"), ("b", parts == "b"), ("c", parts == "c")):
            scores = cross_validate(X, y, groups, aggregator="lr", folds=4, repeats=2, seed=3, train_on=trained)
            for column in matrix.columns:
                chosen = parts == column
                expected = np.mean([roc_auc_score(y[chosen], each[chosen]) for each in scores])
                found = matrix.cell(row, column)
                assert found.auroc == pytest.approx(expected, abs=1e-12)
                assert found.low <= found.auroc <= found.high
                assert (found.sentences, found.unfaithful) == (100, (y[chosen] == 0).sum())
        assert matrix.cell("a", "c").auroc > 0.9 and matrix.cell("a", "b").auroc < 0.1

    def test_the_others_are_all_parts_but_the_tested_one(self):
        X, y, groups, parts = parts_that_disagree()
        matrix = transfer_matrix(X, y, groups, parts.tolist(), aggregator="lr", folds=3, repeats=1)
        scores = cross_validate(X, y, groups, aggregator="lr", folds=3, repeats=1, train_on=parts != "b")
        expected = roc_auc_score(y[parts == "b"], scores[0, parts == "b"])
        assert matrix.cell("all others", "b").auroc == pytest.approx(expected, abs=1e-12)

    def test_a_part_that_is_left_out_is_neither_trained_nor_tested_on(self):
        X, y, groups, parts = parts_that_disagree()
        y[parts == "c"] = 1  # with one label only it could not be a row
        options = {"aggregator": "lr", "folds": 3, "repeats": 1}
        with pytest.raises(InputError, match="'c'"):
            transfer_matrix(X, y, groups, parts.tolist(), **options)
        more = np.where((parts == "a") & (np.arange(len(parts)) % 2 == 0), "d", parts)
        matrix = transfer_matrix(X, y, groups, more.tolist(), without=["c"], **options)
        assert (matrix.rows, matrix.columns) == (("a", "b", "d", "all others"), ("a", "b", "d"))
        scores = cross_validate(X, y, groups, **options, train_on=(more == "a") | (more == "d"))
        expected = roc_auc_score(y[more == "b"], scores[0, more == "b"])
        assert matrix.cell("all others", "b").auroc == pytest.approx(expected, abs=1e-12)

    def test_a_part_to_leave_out_that_is_not_there(self):
        X, y, groups, parts = parts_that_disagree()
        with pytest.raises(InputError, match="'e'"):
            transfer_matrix(X, y, groups, parts.tolist(), without=["e"])

    def test_no_group_is_on_both_sides(self):
        """Groups are one question each, answered in both parts; a feature that names the question helps nobody."""
        groups = np.repeat(np.arange(30), 4)
        y = np.where(np.arange(120) % 3, groups % 2, 1)
        parts = np.where(np.arange(120) % 2, "x", "y").tolist()
        matrix = transfer_matrix(np.eye(30)[groups], y, groups, parts, aggregator="lr", folds=3, repeats=1)
        assert max(abs(matrix.values - 0.5).ravel()) < 0.2

    def test_parts_of_their_own_groups_are_each_in_every_fold(self):
        """A small corpus of one-sentence answers beside a large one of long answers."""
        rng = np.random.default_rng(0)
        y = np.concatenate([np.arange(240) % 4 > 0, np.arange(24) % 2]).astype(int)
        groups = [f"long{i // 8}" for i in range(240)] + [f"short{i}" for i in range(24)]
        parts = ["long"] * 240 + ["short"] * 24
        X = (rng.normal(size=264) + 2 * y)[:, None]
        matrix = transfer_matrix(X, y, groups, parts, aggregator="lr", folds=6, repeats=1)
        small, number = np.arange(264) >= 240, np.zeros(264, int)
        for part in (small, ~small):
            number[part] = fold_numbers(y[part], np.array(groups)[part], folds=6, repeats=1)[0]
        assert sorted(np.bincount(number[small])) == [4] * 6
        scores = np.empty(264)
        for fold in range(6):
            train, test = small & (number != fold), number == fold
            scores[test] = make_aggregator("lr").fit(X[train], y[train]).predict_proba(X[test])[:, 1]
        expected = roc_auc_score(y[~small], scores[~small])
        assert matrix.cell("short", "long").auroc == pytest.approx(expected, abs=1e-12)

    def test_two_parts_are_each_others_others(self):
        X, y, groups, parts = parts_that_disagree()
        kept = parts != "c"
        matrix = transfer_matrix(
            X[kept], y[kept], groups[kept], parts[kept].tolist(), aggregator="lr", folds=3, repeats=2
        )
        assert matrix.rows == ("a", "b")
        assert matrix.cell("a", "b").deviation == 0.0  # logistic regression does not depend on its seed

    def test_text_and_json(self):
        X, y, groups, parts = parts_that_disagree()
        matrix = transfer_matrix(X, y, groups, parts.tolist(), aggregator="lr", folds=3, repeats=2)
        lines = matrix.to_text().splitlines()
        assert lines[1].startswith("trained on \\ tested on  a ") and lines[5].startswith("all others")
        found = matrix.to_dict()
        assert len(found["cells"]) == 12 and found["cells"][1]["auroc"] == matrix.cell("a", "b").auroc
        json.dumps(found, allow_nan=False)

    def test_parts_that_cannot_be_used(self):
        X, y, groups, parts = parts_that_disagree()
        with pytest.raises(InputError, match="two"):
            transfer_matrix(X, y, groups, ["a"] * 300)
        with pytest.raises(InputError, match="300"):
            transfer_matrix(X, y, groups, ["a", "b"])
        good = np.where((parts == "a") & (y == 0), "b", parts)
        with pytest.raises(InputError, match="fold"):
            transfer_matrix(X, y, groups, good.tolist(), aggregator="lr")


def measured(seed, *, shift=2.0, schema="paper-no-lid.v1", responses=40):
    """Two sentences a response, the second unfaithful; a feature says so as clearly as ``shift`` is large."""
    rng = np.random.default_rng(seed)
    facts = feature_schema(schema, ())
    values = rng.normal(size=(2 * responses, len(facts.names)))
    values[::2, 0] += shift
    return yes_and_no(facts, values, answers_per_question=2, task="QA")


class TestSurrogates:
    def test_rows_are_surrogates_and_columns_generators(self):
        sets = {
            "clear": labelled_set(measured(0, shift=4), "strict"),
            "blind": labelled_set(measured(1, shift=0), "strict"),
        }
        matrix = surrogate_matrix(sets, aggregator="lr", folds=4, repeats=2)
        assert (matrix.rows, matrix.columns) == (("clear", "blind"), ("m", "n", "all"))
        assert matrix.cell("clear", "all").auroc > 0.85 > 0.7 > matrix.cell("blind", "all").auroc
        chosen = sets["clear"]
        scores = cross_validate(
            chosen.features, chosen.y, chosen.groups, aggregator="lr", folds=4, repeats=2, same_folds=True
        )
        kept = chosen.generators == "n"
        expected = np.mean([roc_auc_score(chosen.y[kept], each[kept]) for each in scores])
        assert matrix.cell("clear", "n").auroc == pytest.approx(expected, abs=1e-12)

    def test_trained_on_one_generator(self):
        chosen = labelled_set(measured(0), "strict")
        matrix = surrogate_matrix({"s": chosen}, trained_on="m", aggregator="lr", folds=4, repeats=1)
        scores = cross_validate(
            chosen.features,
            chosen.y,
            chosen.groups,
            aggregator="lr",
            folds=4,
            repeats=1,
            train_on=chosen.generators == "m",
        )
        assert matrix.cell("s", "all").auroc == pytest.approx(roc_auc_score(chosen.y, scores[0]), abs=1e-12)
        with pytest.raises(InputError, match="'x'"):
            surrogate_matrix({"s": chosen}, trained_on="x", aggregator="lr")

    def test_only_responses_that_all_measured_count(self):
        whole, part = measured(0), measured(0, responses=30)
        matrix = surrogate_matrix(
            {"a": labelled_set(whole, "strict"), "b": labelled_set(part, "strict")}, aggregator="lr", folds=3, repeats=1
        )
        assert matrix.cell("a", "all").sentences == matrix.cell("b", "all").sentences == 60
        assert whole.texts[:60] == part.texts

    def test_other_responses_under_the_same_ids_are_refused(self):
        first, second = measured(0), measured(1)
        changed = replace(second, records=(replace(second.records[0], question="other?"), *second.records[1:]))
        with pytest.raises(InputError, match="'r0'"):
            surrogate_matrix({"a": labelled_set(first, "strict"), "b": labelled_set(changed, "strict")})

    def test_no_response_in_common(self):
        second = measured(1)
        renamed = replace(second, records=tuple(replace(r, id=f"x{r.id}") for r in second.records))
        with pytest.raises(InputError, match=r"\bid\b"):
            surrogate_matrix({"a": labelled_set(measured(0), "strict"), "b": labelled_set(renamed, "strict")})


class TestSets:
    def test_strict_and_paper(self):
        found = measured(0, responses=2)
        spans = (UnfaithfulSpan(3, 6), UnfaithfulSpan(5, 8, implicit_true=True))
        records = (replace(found.records[0], spans=spans), found.records[1])
        given = replace(found, records=records, texts=("Yes.", "No.", "***", "No."))
        strict, paper = labelled_set(given, "strict"), labelled_set(given, "paper")
        assert strict.used.tolist() == [0, 1, 3] and strict.y.tolist() == [0, 0, 0]
        assert paper.used.tolist() == [0, 1, 2, 3] and paper.y.tolist() == [1, 1, 1, 0]
        assert paper.of({"r1"}).used.tolist() == [2, 3]
        assert paper.tasks.tolist() == ["QA"] * 4
        with pytest.raises(InputError, match="'loose'"):
            labelled_set(given, "loose")


class TestJoined:
    def test_sentences_keep_their_responses(self):
        first, second = measured(0, responses=2), measured(1, responses=3)
        both = joined([first, replace(second, left_out={"z": "too long"})])
        np.testing.assert_array_equal(both.values, np.concatenate([first.values, second.values]))
        assert both.owners.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
        assert both.records == first.records + second.records and both.left_out == {"z": "too long"}
        assert both.texts == first.texts + second.texts and len(both.bounds) == 10

    def test_other_measurements_are_refused(self):
        first = measured(0)
        other = replace(first, segmenter=SegmenterConfig(clauses=True))
        with pytest.raises(MismatchError, match="clauses=True"):
            joined([first, other])
        wide = [replace(first, activations={3: np.zeros((80, width), np.float32)}) for width in (4, 5)]
        with pytest.raises(MismatchError, match="activations"):
            joined(wide)
        with pytest.raises(InputError, match="file"):
            joined([])

    @pytest.mark.parametrize(
        ("fact", "named"),
        [
            *((fact, fact) for fact in ("model", "aligner", "template")),
            ("weights sha256", "another model"),
            ("aligner weights sha256", "another aligner"),
        ],
    )
    def test_those_of_another_instrument_are_refused(self, fact, named):
        first = replace(
            measured(0), provenance={"model": "llama", "weights sha256": "1f", "records": "a"} | {fact: "x"}
        )
        other = replace(first, provenance={**first.provenance, fact: "y"})
        with pytest.raises(MismatchError, match=named):
            joined([first, other])

    def test_what_all_say_of_themselves_is_kept(self):
        noted = {"model": "llama", "aligner": "none"}
        parts = [replace(measured(0), provenance=noted | {"records": name}) for name in "ab"]
        assert joined(parts).provenance == noted
        assert joined([*parts, measured(0)]).provenance == {}


SOURCES = ["a"] * 40 + ["b"] * 40 + ["c"] * 40


def sample():
    random = np.random.default_rng(0)
    y = np.tile([0, 1], 60)
    return random.normal(size=(120, 2)) + y[:, None], y


def test_a_source_is_scored_by_what_was_trained_without_it():
    X, y = sample()
    scores = left_out_scores(X, y, SOURCES, aggregator="lr")
    by_hand = make_aggregator("lr").fit(X[40:], y[40:]).predict_proba(X[:40])[:, 1]
    assert scores[:40] == pytest.approx(by_hand)


def test_labels_of_a_source_do_not_change_its_scores():
    X, y = sample()
    other = np.where(np.array(SOURCES) == "a", 1 - y, y)
    first, second = (left_out_scores(X, labels, SOURCES, aggregator="lr") for labels in (y, other))
    assert first[:40].tolist() == second[:40].tolist()
    assert first[40:].tolist() != second[40:].tolist()


def test_the_matrix_has_the_auroc_of_each_source():
    X, y = sample()
    matrix = left_out_matrix({"first": X[:, 0]}, y, np.arange(120), SOURCES, draws=50)
    assert (matrix.rows, matrix.columns) == (("first",), ("a", "b", "c", "mean of sources"))
    found = matrix.cell("first", "b")
    assert found.auroc == pytest.approx(auroc(X[40:80, 0], y[40:80]))
    assert found.low < found.auroc < found.high
    mean = matrix.cell("first", "mean of sources")
    assert mean.auroc == pytest.approx(np.mean([matrix.cell("first", source).auroc for source in "abc"]))
    assert found.high - found.low > mean.high - mean.low > 0 and mean.sentences == 120


def test_the_best_of_some_rows_is_chosen_on_each_source():
    X, y = sample()
    signs = np.where(np.array(SOURCES) == "a", 1, -1)
    systems = {"kept": X[:, 1], "good on a": X[:, 0] * signs, "good elsewhere": -X[:, 0] * signs}
    whole = left_out_matrix(systems, y, np.arange(120), SOURCES, draws=50)
    matrix = with_best(whole, ["good on a", "good elsewhere"], "best")
    assert matrix.rows == ("kept", "best") and matrix.columns == whole.columns
    assert matrix.cell("best", "a") == whole.cell("good on a", "a")
    assert matrix.cell("best", "c") == whole.cell("good elsewhere", "c")
    assert matrix.cell("best", "mean of sources").auroc == pytest.approx(matrix.values[1, :3].mean())


def test_a_single_score_rises_with_faithfulness_and_has_a_value_for_what_has_none():
    schema = feature_schema("syncheck.v5", ())
    X = np.full((2, len(schema.names)), np.nan)
    X[0, schema.names.index("pair_overlap")] = 0.4
    X[:, schema.names.index("missing_rarity")] = [1.0, 2.0]
    found = single_scores(X, schema)
    assert {name: values.tolist() for name, values in found.items()} == {
        "pair_overlap": [0.4, 0.8],
        "missing_rarity": [-1.0, -2.0],
    }


@pytest.mark.parametrize(("sources", "word"), [(["a"] * 120, "two"), (SOURCES[:5], "source")])
def test_sources_that_cannot_be_left_out_are_refused(sources, word):
    X, y = sample()
    with pytest.raises(InputError, match=word):
        left_out_scores(X, y, sources, aggregator="lr")


def test_others_with_one_label_alone_are_refused():
    X, _ = sample()
    y = np.array([0, 1] * 20 + [1] * 80)
    with pytest.raises(InputError, match="label"):
        left_out_scores(X, y, SOURCES, aggregator="lr")


def test_a_score_that_is_missing_is_refused():
    X, y = sample()
    X[3, 0] = np.nan
    with pytest.raises(InputError, match="NaN"):
        left_out_matrix({"first": X[:, 0]}, y, np.arange(120), SOURCES)
