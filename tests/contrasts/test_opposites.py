"""Packaged opposites and classes, and the contrasts that they make."""

import pytest

from syncheck.contrasts.contrast import contrast_with
from syncheck.contrasts.rules import OPPOSITES


def found(sentence, *evidence):
    """The words of the contrasts between a sentence and chunks."""
    return [(contrast.sentence, contrast.evidence) for contrast in contrast_with(sentence, evidence).differences]


def test_all_members_of_a_class_exclude_each_other():
    against = {word for _, others in OPPOSITES["red"] for word in others}
    assert {"blue", "green", "grey", "gray"} <= against
    assert not any("gray" in others for _, others in OPPOSITES["grey"])


def test_opposites_go_both_ways():
    for word, pairs in OPPOSITES.items():
        for kind, others in pairs:
            for other in others:
                assert any(kind == known and word in back for known, back in OPPOSITES[other]), (word, other)


@pytest.mark.parametrize(
    ("sentence", "evidence", "words"),
    [
        ("The bar is noisy on Sundays.", "On Sundays the bar is quiet.", ("noisy", "quiet")),
        ("Lena forgot the code.", "Lena remembered the code.", ("forgot", "remembered")),
        ("The fence is made of plastic.", "The fence is made of oiled wood.", ("plastic", "wood")),
        ("The lamp turns green.", "Once it is charged, the lamp turns red.", ("green", "red")),
        ("Lunch is served on deck.", "Breakfast is served on deck.", ("Lunch", "Breakfast")),
        ("The tenant sweeps the yard.", "The landlord sweeps the yard.", ("tenant", "landlord")),
        ("Her uncle built the boat.", "Her aunt built the boat.", ("uncle", "aunt")),
        ("It was cut on the third day.", "It was cut on the fifth day.", ("third", "fifth")),
    ],
)
def test_words_that_exclude_each_other_contrast_in_the_same_place(sentence, evidence, words):
    assert found(sentence, evidence) == [words]


@pytest.mark.parametrize(
    ("sentence", "evidence", "words"),
    [
        (
            "Puffins nest on the cliffs of Ostrey in autumn.",
            "In spring, when the gales are over, puffins come ashore on Ostrey and nest on the cliffs.",
            ("autumn", "spring"),
        ),
        ("The hall is kept warm with coal.", "With its new diesel boiler the hall is kept warm.", ("coal", "diesel")),
    ],
)
def test_the_only_member_of_a_class_may_stand_anywhere(sentence, evidence, words):
    assert found(sentence, evidence) == [words]


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("Puffins nest there in autumn.", "Puffins nest there in spring and in autumn."),
        ("The choir sings there on Monday.", "From Sunday to Tuesday the choir sings there."),
        ("Mr Green paints.", "Mr Brown paints in Leeds and Mr Green paints in York."),
        ("The shed is not painted red.", "The shed is painted blue."),
        ("The kitten was not found in the attic.", "The kitten was found in the cellar."),
        ("A nurse gave the injection to a patient.", "The doctor was away; a nurse gave the injection to a patient."),
        ("Tickets are bought at the kiosk.", "Tickets are sold at the kiosk."),
        ("Novik bought the mill from the trust.", "The trust sold the mill to Novik."),
        (
            "Each of the vaccinated received two injections, with four weeks between them.",
            "Half of them were given two injections, four weeks apart, and half a salt solution.",
        ),
        ("Mirjam was taught the trade by a relative.", "Mirjam learned the trade from her uncle Finn."),
        ("The student borrowed a coat from Ines.", "Ines lent the student a coat."),
        (
            "A museum bought the ship from the navy.",
            "The navy bought the ship in 1950 and sold it later to a museum.",
        ),
        ("Dunmore lost to Harrow Town.", "Harrow Town beat Dunmore 3-1."),
        ("Headaches are more common than a rash.", "Headaches are common and a rash is rare."),
        ("A rash is more common than fever.", "Side effects are rare; a rash is a side effect, and so is fever."),
        (
            "Headaches are more common than a rash.",
            "One patient in fifty has headaches and fewer than one in a thousand a rash.",
        ),
        ("The opening gala is free.", "The opening and closing galas are free."),
        ("The day counts.", "The night counts, each day counts."),
    ],
)
def test_words_that_may_both_be_true_do_not_contrast(sentence, evidence):
    assert found(sentence, evidence) == []
