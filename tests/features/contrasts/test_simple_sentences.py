"""Simple sentences of a compound one, and contrasts of one of them."""

import pytest

from syncheck.contrasts.clauses import clauses
from syncheck.contrasts.contrast import contrast_with
from syncheck.contrasts.parsing import parse

HOTEL = ("The pool is open every day, but the sauna is closed on Mondays.", "Guests get a towel at the desk.")


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The pool and the sauna are open.", ["The pool are open.", "the sauna are open."]),
        ("The pool is open, but the sauna was closed.", ["The pool is open.", "the sauna was closed."]),
        ("The team was led by Ann and won twice.", ["The team was led by Ann.", "The team won twice."]),
        ("The mill was sold and run by Ann.", ["The mill was sold.", "The mill was run by Ann."]),
        (
            "Dogs are allowed and children under six enter free.",
            ["Dogs are allowed.", "children under six enter free."],
        ),
        (
            "The filter lasts eight years and the pump six months.",
            ["The filter lasts eight years.", "the pump lasts six months."],
        ),
        ("The costs are shared and the use is free.", ["The costs are shared.", "the use is free."]),
        ("Tea was served and will be free.", ["Tea was served.", "Tea will be free."]),
        ("Tea is free; cake was sold.", ["Tea is free.", "cake was sold."]),
        ("It is old and the mill was rebuilt.", ["the mill was rebuilt."]),
        ("Tom and Ann met in 1990.", []),
        ("If it rains and the roof leaks, call us.", []),
        ("It was built in 1990 and 1991.", []),
        ("Tea is free. Cake was sold and is good.", []),
        ("...", []),
    ],
)
def test_a_compound_sentence_says_simple_ones(sentence, expected):
    assert clauses(parse(sentence)) == expected


@pytest.mark.parametrize(
    ("sentence", "contrast"),
    [
        ("Guests are given towels, and the sauna is open on Mondays.", ("antonym", "open", "closed")),
        ("The desk has towels for guests, but the pool is closed every day.", ("antonym", "closed", "open")),
    ],
)
def test_one_of_them_may_be_contradicted_where_the_other_is_told_elsewhere(sentence, contrast):
    found = contrast_with(sentence, HOTEL)
    assert [(c.kind, c.sentence, c.evidence) for c in found.found] == [contrast]
    assert found.chunk == 0


def test_two_facts_change_places():
    evidence = ["Tan left in 2021 to study medicine; Forde is still in charge."]
    (contrast,) = contrast_with("Forde left in 2021 to study medicine, while Tan is still in charge.", evidence).found
    assert (contrast.kind, contrast.sentence, contrast.evidence) == ("order", "Forde", "Tan")


@pytest.mark.parametrize(
    "sentence",
    [
        "Guests are given towels, and the sauna is closed on Mondays.",
        "The pool is open every day and the sauna is not open on Mondays.",
        "Are guests given towels, and is the sauna open on Mondays?",
    ],
)
def test_a_compound_sentence_that_is_true_has_no_contrast(sentence):
    assert contrast_with(sentence, HOTEL).found == ()
