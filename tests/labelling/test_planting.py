"""Errors planted in sentences: one place changes, and no passage says what is then there."""

import random

import pytest

from syncheck.labelling import plant_error

PASSAGES = ["The bridge of Lyon was opened in 1907 by Marie Duval. It carries 42 trams, and Peter Novak paid for it."]
OTHERS = ["A lake near the town of Bern freezes over in most winters and is then skated on."]


def planted(sentence, kind):
    """The texts of one kind that some seeds plant."""
    found = [plant_error(random.Random(seed), sentence, PASSAGES, OTHERS) for seed in range(60)]
    return {text for got, text in found if got == kind}


def test_a_number_is_another_one_of_like_size():
    wrong = planted("It was opened in 1907.", "number")
    assert wrong and all(text.startswith("It was opened in ") and text != "It was opened in 1907." for text in wrong)
    assert all(abs(int(text[17:21]) - 1907) <= 30 for text in wrong)


def test_a_name_is_another_of_the_passages():
    wrong = planted("It was opened by Marie Duval.", "name")
    names = {"Peter", "Novak", "Lyon"}
    assert wrong and all(names & set(text.strip(".").split()) for text in wrong)


@pytest.mark.parametrize(
    ("sentence", "kind", "expected"),
    [
        ("The bridge is old.", "negation", {"The bridge is not old."}),
        ("The bridge is not old.", "negation", {"The bridge is old."}),
        ("The mill opened then.", "opposite", {"The mill closed then.", "The mill locked then."}),
    ],
)
def test_negations_and_opposites(sentence, kind, expected):
    assert planted(sentence, kind) == expected


def test_an_ending_of_another_sentence():
    # Of ten words the first five, of seventeen those after the eighth.
    wrong = planted("The bridge of Lyon carries the trams of four lines.", "ending")
    assert wrong == {"The bridge of Lyon carries over in most winters and is then skated on."}


def test_nothing_to_change():
    assert plant_error(random.Random(0), "Hello there!", PASSAGES, []) is None


def test_what_a_passage_says_is_no_error():
    passages = ["It opened in 12. It closed in 12."]
    found = (plant_error(random.Random(seed), "It opened in 12.", passages, []) for seed in range(40))
    assert all(text != "It closed in 12." for _, text in filter(None, found))


def test_the_same_seed_plants_the_same():
    one, two = (plant_error(random.Random(3), "It was opened in 1907.", PASSAGES, OTHERS) for _ in range(2))
    assert one == two
