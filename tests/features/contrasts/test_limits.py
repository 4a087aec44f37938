"""Limits ("only members"), "but not", and names in place of the only one."""

import pytest

from syncheck.contrasts.contrast import contrast_with

MEMBERS = "Only members may vote at the meeting."
DOGS = "Dogs are allowed on the terrace but not in the dining room."
CHILDREN = "Children are seen on Mondays, adults on the other weekdays."
STATION = "The waiting room stays open, but the lift is out of use."
MARKS = "The office checks whether similar marks exist and refuses the new one if it finds any."
THEFT = "The violin was found undamaged, but the bow is still missing."
TEAM = ["A team led by Dr Aisha Karim trained 40 bees.", "The paper was checked by Professor Jan Mertens."]


def found(sentence, evidence):
    chunks = [evidence] if isinstance(evidence, str) else evidence
    return [(c.kind, c.sentence, c.evidence) for c in contrast_with(sentence, chunks).found]


@pytest.mark.parametrize(
    ("sentence", "evidence", "contrast"),
    [
        ("Non-members may vote at the meeting.", MEMBERS, ("negation", "Non-members", "Only")),
        ("Dogs are not allowed on the terrace.", DOGS, ("negation", "not", "")),
        ("The office does not check whether similar marks exist.", MARKS, ("negation", "not", "")),
        ("They found the bow but not the violin.", THEFT, ("negation", "not", "")),
        ("The team was led by Jan Mertens.", TEAM, ("name", "Mertens", "Aisha")),
    ],
)
def test_is_found(sentence, evidence, contrast):
    assert contrast in found(sentence, evidence)


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("Non-members may not vote at the meeting.", MEMBERS),
        ("Members may vote at the meeting.", MEMBERS),
        ("Dogs are allowed on the terrace.", DOGS),
        ("Dogs are not allowed in the dining room.", DOGS),
        ("Adults are not seen on Mondays.", CHILDREN),
        ("You can use the waiting room but not the lift.", STATION),
        ("They found the violin but not the bow.", THEFT),
        (
            "Installation costs nothing if you sign for 24 months.",
            "Installation is free if you sign for 24 months; otherwise it costs 60.",
        ),
        ("The team was led by Aisha Karim.", TEAM),
        ("The paper was checked by Jan Mertens.", TEAM),
        ("The team was led by Jan Mertens.", ["She and a team led by Aisha Karim trained bees.", TEAM[1]]),
        (
            "The team was led by Jan Mertens.",
            [TEAM[0], "Its team in Bonn was led by Jan Mertens, who retired in May."],
        ),
    ],
)
def test_is_no_contrast(sentence, evidence):
    assert found(sentence, evidence) == []
