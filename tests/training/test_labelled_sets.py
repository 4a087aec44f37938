"""Benchmark sets of measured sentences, and files of them joined."""

from dataclasses import replace

import numpy as np
import pytest
from measured_doubles import yes_and_no

from syncheck import SegmenterConfig, feature_schema
from syncheck.base.errors import InputError, MismatchError
from syncheck.labelling import UnfaithfulSpan
from syncheck.training import joined, labelled_set


def measured(seed, *, responses=40):
    """Two sentences a response, the second unfaithful."""
    rng = np.random.default_rng(seed)
    facts = feature_schema("paper-no-lid.v1", ())
    values = rng.normal(size=(2 * responses, len(facts.names)))
    values[::2, 0] += 2
    return yes_and_no(facts, values, answers_per_question=2, task="QA")


class TestSets:
    def test_strict_and_paper(self):
        found = measured(0, responses=2)
        spans = (UnfaithfulSpan(3, 6), UnfaithfulSpan(5, 8, implicit_true=True))
        records = (replace(found.records[0], spans=spans), found.records[1])
        given = replace(found, records=records, texts=("Yes.", "No.", "***", "No."))
        strict, paper = labelled_set(given, "strict"), labelled_set(given, "paper")
        assert strict.used.tolist() == [0, 1, 3] and strict.y.tolist() == [0, 0, 0]
        assert paper.used.tolist() == [0, 1, 2, 3] and paper.y.tolist() == [1, 1, 1, 0]
        assert paper.measured.tasks.tolist() == ["QA"] * 4
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
