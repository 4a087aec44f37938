"""Numbers, units, dates, times and bounds: what changes them is contrasted, and what writes them otherwise is not."""

import json

import pytest
from boundaries import ROOT

from syncheck import Verifier
from syncheck.contrasts.contrast import contrast_with

LINES = (ROOT / "benchmarks" / "number_pairs.jsonl").read_text(encoding="utf-8").splitlines()
PAIRS = [json.loads(line) for line in LINES]
LOUD = {"numbers", "answers"}


@pytest.mark.parametrize("pair", [p for p in PAIRS if "words" in p], ids=lambda p: p["claim"])
def test_what_changes_a_number_is_contrasted_in_the_words_of_both(pair):
    found = contrast_with(pair["claim"], [pair["passage"]]).differences
    assert pair["words"] in [[one.sentence, one.evidence] for one in found if one.rule in LOUD]


@pytest.mark.parametrize("pair", [p for p in PAIRS if "words" not in p], ids=lambda p: p["claim"])
def test_what_writes_a_number_otherwise_is_not_contrasted(pair):
    assert [one for one in contrast_with(pair["claim"], [pair["passage"]]).differences if one.rule in LOUD] == []


@pytest.mark.parametrize(
    ("passage", "right", "wrong", "words"),
    [
        ("The mill was built in 1803.", "The mill was built in 1803.", "The mill was built in 1903.", ("1903", "1803")),
        (
            "Doors open at 14:30.",
            "Doors open at half past two.",
            "Doors open at half past three.",
            ("half past three", "14:30"),
        ),
        ("It weighs 2 kg.", "It weighs 2,000 g.", "It weighs 200 g.", ("200", "2")),
        (
            "It seats 16\u202f181 people.",
            "It seats 16,181 people.",
            "It seats 16,811 people.",
            ("16,811", "16\u202f181"),
        ),
    ],
)
def test_a_verifier_scores_other_writing_as_the_same_and_shows_what_differs(passage, right, wrong, words):
    verifier = Verifier()
    (same,), (changed,) = (
        verifier.check(claim, question="What is said?", passages=[passage]).sentences for claim in (right, wrong)
    )
    assert same.verdict == "supported" and same.contrasts == ()
    assert changed.verdict == "contradicted"
    assert [(one.sentence, one.evidence) for one in changed.contrasts] == [words]
