"""What holds for some only, or on a condition, said of everyone or without it."""

import pytest

from syncheck.contrasts.contrast import contrast_with

VOTE = "Only members may vote."
ABSENCE = "A medical certificate is needed only for absences of more than three days."
PARKING = "The first two hours in Lot B are free only if you show your appointment card."
PARCELS = "Parcels go back to the sender after seven days, unless the recipient asks for another week."
BEES = "All 40 of the bees could tell two scents apart."
ONLY_ONE = "The Larch Line is the only one that stops at the airport."
FLOUR = "Only three of the breads are made with wheat."


def found(sentence, evidence):
    return [(c.kind, c.sentence, c.evidence) for c in contrast_with(sentence, [evidence]).found]


@pytest.mark.parametrize(
    ("sentence", "evidence", "contrast"),
    [
        ("Everyone may vote.", VOTE, ("negation", "Everyone", "Only")),
        ("A medical certificate is needed for every absence.", ABSENCE, ("negation", "every absence", "only")),
        ("The first two hours in Lot B are free without a card.", PARKING, ("negation", "without", "only")),
        (
            "Parcels go back to the sender after seven days even if the recipient asks for another week.",
            PARCELS,
            ("negation", "even if", "unless"),
        ),
        (
            "Parcels go back after seven days whether or not the recipient asks for another week.",
            PARCELS,
            ("negation", "whether or not", "unless"),
        ),
        ("Several lines stop at the airport.", ONLY_ONE, ("quantifier", "Several", "only")),
        ("Two trains stop here.", "The only train that stops here is the 12.", ("quantifier", "Two", "only")),
        ("Half of the bees could tell two scents apart.", BEES, ("quantifier", "Half", "All")),
    ],
)
def test_what_goes_beyond_a_limit_is_contradicted(sentence, evidence, contrast):
    assert contrast in found(sentence, evidence)


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("Members may vote.", VOTE),
        ("Only members may vote.", VOTE),
        ("Everyone who is a member may vote.", VOTE),
        ("Without being a member you may not vote.", VOTE),
        ("A medical certificate is needed for absences of more than three days.", ABSENCE),
        ("A medical certificate is needed for every absence of more than three days.", ABSENCE),
        ("The first two hours in Lot B are not free without a card.", PARKING),
        ("The first two hours in Lot B are free with an appointment card.", PARKING),
        ("Parcels go back after seven days unless the recipient asks for another week.", PARCELS),
        (
            "All 40 bees could tell two scents apart.",
            "The team found that all 40 of the bees could tell two scents apart.",
        ),
        ("The Larch Line stops at the airport.", ONLY_ONE),
        ("The train that stops here is the 12.", "The only train that stops here is the 12."),
        ("Two trains stop here.", "Only two trains stop here."),
        ("Most breads are made without wheat.", FLOUR),
    ],
)
def test_what_keeps_to_it_is_not(sentence, evidence):
    assert found(sentence, evidence) == []
