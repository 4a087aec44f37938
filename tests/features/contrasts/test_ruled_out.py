"""What the evidence rules out by name: "the shop, not the courier, texts the recipient"."""

import pytest

from syncheck.contrasts.contrast import contrast_with

PARCELS = "The courier leaves the parcel at the corner shop, and the shop, not the courier, texts the recipient."
SLUGS = "If young lettuce is eaten overnight, slugs are the culprits, not birds."
BRAKES = "Antilock brakes are there to let you steer, not to stop sooner."
COAL = "Since 2015 the plant has burnt gas instead of coal."
WATER = "Use warm water rather than hot water."
VINEGAR = "Descale every fortnight with vinegar (never with chlorine)."
PAY = "Viktor will answer questions about pay."
GOALKEEPER = "Coach Ana Ruiz chose goalkeeper Tim Voss over Ola Berg."
DRAWINGS = "The museum bought the painting in 1931 instead of the two drawings that it had first wanted."
ROOF = "The council, rather than the landlord, repairs the roof."


def found(sentence, evidence):
    return [(c.kind, c.sentence, c.evidence) for c in contrast_with(sentence, [evidence]).found]


@pytest.mark.parametrize(
    ("sentence", "evidence", "contrast"),
    [
        ("The courier texts the recipient.", PARCELS, ("negation", "courier", "not the courier")),
        ("Birds eat the young lettuce overnight.", SLUGS, ("negation", "Birds", "not birds")),
        ("Antilock brakes are there to stop sooner.", BRAKES, ("negation", "stop", "not to stop sooner")),
        (
            "Antilock brakes are there to stop sooner, not to let you steer.",
            BRAKES,
            ("negation", "stop", "not to stop sooner"),
        ),
        ("The plant has burnt coal since 2015.", COAL, ("negation", "coal", "instead of coal")),
        ("Use hot water.", WATER, ("negation", "hot", "rather than hot water")),
        (
            "The museum bought the two drawings.",
            DRAWINGS,
            ("negation", "two", "instead of the two drawings that it had first wanted"),
        ),
        ("Descale with chlorine.", VINEGAR, ("negation", "chlorine", "never with chlorine")),
        ("Sato, not Viktor, will answer questions about pay.", PAY, ("negation", "not Viktor", "")),
        ("The landlord repairs the roof.", ROOF, ("negation", "landlord", "rather than the landlord")),
    ],
)
def test_a_sentence_that_says_what_is_ruled_out_is_contradicted(sentence, evidence, contrast):
    assert contrast in found(sentence, evidence)


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("The shop texts the recipient.", PARCELS),
        ("The courier leaves the parcel at the shop.", PARCELS),
        ("The courier leaves the parcel.", PARCELS),
        ("Slugs eat the young lettuce overnight.", SLUGS),
        ("Antilock brakes are there to let you steer, not to stop sooner.", BRAKES),
        ("Antilock brakes let you steer.", BRAKES),
        ("The plant has burnt gas since 2015.", COAL),
        ("The plant has burnt gas, not coal, since 2015.", COAL),
        ("Use warm water.", WATER),
        ("Descale with vinegar.", VINEGAR),
        ("Tim Voss was chosen, not Ola Berg.", GOALKEEPER),
        ("The museum bought the painting, not the two drawings.", DRAWINGS),
        ("Viktor, not Sato, will answer questions about pay.", PAY),
        ("The council repairs the roof.", ROOF),
        ("The council repairs the roof, not the landlord.", ROOF),
        ("Lying in court is wrong.", "Lying is wrong, not only in court."),
    ],
)
def test_what_is_said_instead_is_not(sentence, evidence):
    assert found(sentence, evidence) == []
