"""Sentences that are labelled as claiming nothing are neither faithful nor unfaithful: counted and left out."""

import json

import numpy as np
import pytest

from syncheck import MonitorConfig, SegmenterConfig, Verifier
from syncheck.cli import main
from syncheck.labelling import labelled_responses
from syncheck.testing import WordAligner
from syncheck.training import LabelledSet, calibrate_monitor, fit_measured, measure


def records(count=12, *, start=0, labels=(1, 0, "no claim")):
    return [
        {
            "id": f"r{n}",
            "question": f"What is {n}?",
            "context": [f"The mill of {n} is red."],
            "sentences": [f"The mill of {n} is red.", f"Nobody saw {n} + {n} cows.", f"That was it, {n}."],
            "labels": list(labels),
        }
        for n in range(start, start + count)
    ]


@pytest.fixture(scope="module")
def verifier():
    return Verifier(WordAligner(), config=MonitorConfig(schema="aligner.v1"))


def test_they_are_left_out_of_training_and_calibration(verifier):
    measured = measure(verifier, records(), show_progress=False)
    assert measured.labels().tolist() == [1, 0, -1] * 12 and measured.no_claim.tolist() == [False, False, True] * 12
    assert LabelledSet.scored(measured, rule="overlap").used.tolist() == [i for i in range(36) if i % 3 < 2]
    trained = fit_measured(verifier, measured, aggregator="lr")
    # Unlike a sentence without a label, one that claims nothing does not stand in the way of a guarantee.
    others = measure(verifier, records(40, start=50), show_progress=False)
    found = calibrate_monitor(trained, others, method="platt", risk=0.2, every_sentence=True)
    assert len(found.y) == 80 and found.monitor.aggregator.base_rate == pytest.approx(0.5, abs=0.02)


def test_calibration_leaves_out_what_gets_no_score_whatever_its_label(verifier):
    trained = fit_measured(verifier, measure(verifier, records(), show_progress=False), aggregator="lr")
    asked = [
        record | {"sentences": [*record["sentences"][:2], "Was that it?"], "labels": [1, 0, 1]}
        for record in records(40, start=50)
    ]
    others = measure(verifier, asked, show_progress=False)
    assert others.claims.tolist() == [True, True, False] * 40 and others.checkable.all()
    assert len(calibrate_monitor(trained, others, method="platt", risk=None).y) == 80


def test_where_labels_are_carried_over_they_say_nothing_about_the_sentence_they_are_joined_with(verifier):
    joined = verifier.replaced(config=MonitorConfig(schema="aligner.v1", segmenter=SegmenterConfig(sentences=3)))
    for labels, expected in (((1, 1, "no claim"), 1), (("no claim",) * 3, -1), ((1, None, "no claim"), -1)):
        given = labelled_responses(records(1, labels=labels), carry_labels=True)
        measured = measure(joined, given, show_progress=False)
        assert measured.labels().tolist() == [expected]
        assert measured.no_claim.tolist() == [labels[0] == "no claim"]


def test_so_are_sentences_about_which_readers_disagree_and_marked_words_change_nothing(verifier, tmp_path, capsys):
    labelled = [record | {"spans": [{"start": 26, "end": 32}]} for record in records(labels=(1, 0, [0, "no claim"]))]
    measured = measure(verifier, labelled, show_progress=False)
    assert measured.labels().tolist() == [1, 0, -1] * 12 and not measured.no_claim.any()
    data = tmp_path / "labels.jsonl"
    data.write_text("".join(f"{json.dumps(record)}\n" for record in labelled), encoding="utf-8")
    train = ["train", "--data", str(data), "--schema", "aligner.v1", "--aggregator", "lr"]
    assert main([*train, "--output", str(tmp_path / "m")]) == 0
    shown = capsys.readouterr()
    assert "12 sentences about which two readers disagree: not counted" in shown.err
    assert "24 sentences, 12 unfaithful" in shown.out


def test_the_command_counts_them(tmp_path, capsys):
    data = tmp_path / "labels.jsonl"
    data.write_text("".join(f"{json.dumps(record)}\n" for record in records()), encoding="utf-8")
    train = ["train", "--data", str(data), "--schema", "aligner.v1", "--aggregator", "lr", "--carry-labels"]
    assert main([*train, "--output", str(tmp_path / "m")]) == 0
    shown = capsys.readouterr()
    assert "12 sentences labelled 'no claim': not counted" in shown.err
    assert "24 sentences, 12 unfaithful" in shown.out
    assert np.isfinite(Verifier.from_pretrained(tmp_path / "m").config.supported_threshold)
