"""Facts that stand side by side: each of a thing of its own, or of a share of a group."""

import pytest

from syncheck import Monitor
from syncheck.contrasts.contrast import contrast_with
from syncheck.testing import scripted_monitor

ROOMS = "Breakfast is served in the garden room on the ground floor, and dinner in the rooftop restaurant."
FLOORS = "All printers are on the second floor and all coffee machines on the third floor."
SHIFTS = "Nurses work in three shifts, doctors in two."
PARKING = "Visitors must park in Lot B behind the clinic, and staff in Lot A next to the main entrance."
COSTS = ["The tenant pays for electricity.", "The landlord pays for heating and water."]
MODELS = "The Tarrant 300 has a range of 80 km, the Tarrant 500 a range of 120 km."
BYPASS = ["The council rejected the plan by 14 votes to 9.", "A new vote is planned for 2027."]
SALE = ["The sellers leave the oven but take the curtains with them.", "The buyers pay the notary in full."]
FEES = ["The translator delivers the manuscript by May.", "The publisher pays 11 cents a word."]
COURIER = ["Orders up to 120 euros are shipped by post; larger ones are shipped by courier."]
OTHERS = "Members under 30 pay 10 euros; all others pay 20 euros."
HOURS = "The shop closes at 6 pm on weekdays and at 2 pm on Saturdays."
PRIZES = ["The trainer gave a speech.", "The rider was awarded a gold medal."]


def found(sentence, evidence):
    chunks = [evidence] if isinstance(evidence, str) else evidence
    return [(c.kind, c.sentence, c.evidence) for c in contrast_with(sentence, chunks).found]


@pytest.mark.parametrize(
    ("sentence", "evidence", "words"),
    [
        ("Dinner is served in the garden room.", ROOMS, ("Dinner", "Breakfast")),
        ("The printers are on the third floor.", FLOORS, ("printers", "coffee")),
        ("Doctors work in three shifts.", SHIFTS, ("Doctors", "Nurses")),
        ("Visitors must park next to the main entrance.", PARKING, ("Visitors", "staff")),
        ("The tenant pays for heating.", COSTS, ("tenant", "landlord")),
        ("The sellers pay the notary.", SALE, ("sellers", "buyers")),
        ("The translator pays 11 cents a word.", FEES, ("translator", "publisher")),
        ("The trainer received a gold medal.", PRIZES, ("trainer", "rider")),
        ("The Tarrant 500 has a range of 80 km.", MODELS, ("500", "300")),
    ],
)
def test_what_is_said_of_another_thing(sentence, evidence, words):
    assert ("order", *words) in found(sentence, evidence)


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("Dinner is served in the rooftop restaurant.", ROOMS),
        ("Breakfast is served in the garden room.", ROOMS),
        ("The printers are on the second floor.", FLOORS),
        ("Doctors work in two shifts.", SHIFTS),
        ("Doctors work in shifts.", SHIFTS),
        ("Visitors park behind the clinic.", PARKING),
        ("Visitors park in one lot, staff next to the main entrance.", PARKING),
        ("The landlord pays for heating.", COSTS),
        ("The translator receives 11 cents a word.", FEES),
        ("An order of 400 euros is shipped by courier.", COURIER),
        ("A member aged 45 pays 20 euros.", OTHERS),
        ("On Saturdays the shop closes before 6 pm.", HOURS),
        ("The tenant does not pay for heating.", COSTS),
        ("The Tarrant 500 has a range of 120 km.", MODELS),
        ("The Tarrant 500 goes farther than the 300 with its 80 km.", MODELS),
        ("The council will vote again in 2027.", BYPASS),
        ("The shop sells bread.", "The shop opens at eight and sells bread until noon."),
        ("The quarry at Ness was closed.", "The quarry at Tor cuts granite; the one at Ness was closed in 1974."),
        (
            "The church is west of the river.",
            "The school stands east of the river and the church west of it.",
        ),
    ],
)
def test_what_is_said_of_the_same_thing(sentence, evidence):
    assert found(sentence, evidence) == []


@pytest.mark.parametrize(
    ("sentence", "evidence", "words"),
    [
        ("All 180 staff were offered jobs.", "About 120 of the 180 staff were offered jobs.", ("All", "120")),
        ("All of the cottages are let.", "Some of the keepers' cottages are let to visitors.", ("All", "Some")),
        ("No member voted against it.", "Some members of the board voted against it.", ("No", "Some")),
        ("Most of the shops were closed.", "In May 14 of the 60 shops were closed.", ("Most", "14")),
        ("Most of the households signed.", "Of the 40 households, 11 signed and 29 refused.", ("Most", "11")),
        ("Some scenes were shot in a studio.", "Not one scene was shot in a studio.", ("Some", "Not")),
        ("One of the two moons is round.", "Of the moons, neither moon is round.", ("One", "neither")),
    ],
)
def test_another_share_of_the_same_group(sentence, evidence, words):
    assert ("quantifier", *words) in found(sentence, evidence)


@pytest.mark.parametrize(
    ("sentence", "evidence"),
    [
        ("Some of the staff were offered jobs.", "About 120 of the 180 staff were offered jobs."),
        ("Not all of the cottages are let.", "Some of the keepers' cottages are let to visitors."),
        ("Bakers from all over the world made cakes.", "Many other bakers around the world made cakes."),
        ("All of the shops were closed.", "In May 60 of the 60 shops were closed."),
        ("Most of the shops were closed.", "In May 40 of the 60 shops were closed."),
        ("Most of the households refused.", "Of the 40 households, 11 signed and 29 refused."),
        ("Few of the shops were closed.", "In May 14 of the 60 shops were closed."),
        ("All members came to the meeting in May.", "Some members voted against it."),
    ],
)
def test_shares_that_agree(sentence, evidence):
    assert found(sentence, evidence) == []


def test_a_term_of_two_words_changes_places():
    evidence = "In the final scene the harbour master lets the thief go."
    (contrast,) = found("The thief lets the harbour master go.", evidence)
    assert contrast == ("order", "thief lets the harbour", "harbour master lets the thief")


def test_items_that_the_evidence_has_twice_change_places():
    evidence = "Ibuprofen lasts longer than paracetamol; paracetamol can be taken on an empty stomach."
    (contrast,) = found("Paracetamol lasts longer than ibuprofen.", evidence)
    assert contrast == ("order", "Paracetamol lasts longer than ibuprofen", "Ibuprofen lasts longer than paracetamol")
    assert found("Ibuprofen lasts longer than paracetamol.", evidence) == []


def test_an_opposite_in_the_closest_chunk_is_not_outweighed_by_another_chunk():
    chunks = ["Sales of green tea rose.", "Lyon lists the sales with tea."]
    assert found("Sales of green tea fell in Lyon.", chunks) == [("antonym", "fell", "rose")]


def test_who_acts_stands_first_or_after_by():
    evidence = "The tower was designed by Thomas Aldery and built by Joseph Crane."
    assert ("name", "Crane", "Thomas") in found("Joseph Crane designed the tower.", evidence)
    assert found("Thomas Aldery designed the tower.", evidence) == []


def test_a_contrast_names_the_passage_that_has_its_words():
    double = scripted_monitor("The tenant pays for heating.")
    monitor = Monitor(double.model, double.tokenizer)
    prompt = monitor.prompt(question="Who pays?", context=COSTS)
    (sentence,) = monitor.score(prompt, "The tenant pays for heating.").sentences
    assert [(c.sentence, c.evidence, c.passage) for c in sentence.contrasts] == [("tenant", "landlord", 1)]


@pytest.mark.parametrize(
    ("sentence", "evidence", "numbers"),
    [
        ("Orders up to 150 euros are shipped by post.", COURIER, ("150", "120")),
        ("Members under 30 pay 20 euros.", OTHERS, ("20", "10")),
        ("On Saturdays the shop closes at 6 pm.", HOURS, ("6", "2")),
    ],
)
def test_a_number_in_the_place_of_another_beside_a_bound(sentence, evidence, numbers):
    assert ("number", *numbers) in found(sentence, evidence)
