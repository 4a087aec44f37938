"""The starter kit's edits of written groups: what is changed, how it is labelled, and what stays as it was."""

import random

import edited_claims
import pytest
from contrast_pairs import CONTRADICTED, NOT_STATED, SUPPORTED, UNSUPPORTED, Claim, ContrastGroup

PASSAGES = (
    "Hannah Corrigan designed the Brindle Bridge in 1932. It has 12 arches.",
    "Thomas Weller rebuilt it in 1958 because the river had risen by 7 metres.",
)
CLAIMS = (
    Claim("The bridge was rebuilt in 1958.", SUPPORTED, "j"),
    Claim("The bridge is the work of Hannah Corrigan.", SUPPORTED, "j"),
    Claim("Thomas Weller designed the bridge.", CONTRADICTED, "j"),
    Claim("Thomas Weller lived in Orford.", NOT_STATED, "j"),
)


@pytest.fixture
def group():
    return ContrastGroup(PASSAGES, CLAIMS, "written", "the bridge")


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("It was built in 1958.", {("It was built in 1932.", "number"), ("It was not built in 1958.", "negation")}),
        ("It has 9 arches.", {("It has 12 arches.", "number"), ("It has 7 arches.", "number")}),
        ("Ann Reed built it.", {("Hannah Corrigan built it.", "name"), ("Thomas Weller built it.", "name")}),
        ("Ann Reed met Ian Moss.", {("Ian Moss met Ann Reed.", "role")}),
        ("It is not longer.", {("It is longer.", "negation"), ("It is not shorter.", "comparison")}),
        ("It cannot last.", {("It can last.", "negation")}),
        ("It isn't here.", {("It is here.", "negation")}),
        ("It can't last.", {("It can last.", "negation")}),
    ],
)  # fmt: skip
def test_one_thing_is_changed(claim, expected):
    assert expected <= set(edited_claims.changed_claims(claim, PASSAGES))


@pytest.mark.parametrize("claim", ["Ann Reed and Ian Moss met.", "Ann Reed talked with Ian Moss."])
def test_names_do_not_change_places_where_that_says_the_same(claim):
    assert "role" not in {kind for _, kind in edited_claims.changed_claims(claim, PASSAGES)}


def test_a_year_takes_the_place_of_a_year_only():
    found = {text for text, kind in edited_claims.changed_claims("It was 1958.", PASSAGES) if kind == "number"}
    assert found == {"It was 1932."}


@pytest.mark.parametrize("seed", range(10))
def test_a_changed_claim_is_neither_known_nor_said_by_the_passages(group, seed):
    made = edited_claims.with_changed_claims(group, random.Random(seed))
    context, known = " ".join(PASSAGES), {claim.text for claim in CLAIMS}
    changed = [claim.text for claim in made.claims if claim.label == UNSUPPORTED]
    assert changed
    assert not known & set(changed)
    assert not [text for text in changed if text.strip(". ") in context]
    assert {claim for claim in made.claims if claim.kind == "j" and claim.label != UNSUPPORTED} == set(CLAIMS)
    assert (made.passages, made.group) == (group.passages, group.group)


def test_what_changes_places_in_the_passages_does_so_in_the_claims(group):
    found = edited_claims.with_changed_passages(group, random.Random(0))
    assert 0 < len(found) <= edited_claims.TWINS
    for twin in found:
        assert twin.passages != PASSAGES
        right, wrong = twin.claims[::2], twin.claims[1::2]
        assert {claim.label for claim in right} == {SUPPORTED}
        assert {claim.label for claim in wrong} == {UNSUPPORTED}
        copies = [claim.text for claim in right if claim.kind == edited_claims.COPY]
        assert all(text in " ".join(twin.passages) for text in copies)
        assert not [claim.text for claim in wrong if claim.text in " ".join(twin.passages)]


def test_an_exchange_leaves_longer_words_and_numbers_alone():
    assert edited_claims.exchanged("Ann, 7 or 1.7, is not Anna.", "Ann", "7") == "7, Ann or 1.7, is not Anna."


def test_the_same_seed_makes_the_same_groups(group):
    assert list(edited_claims.edited_groups([group] * 5)) == list(edited_claims.edited_groups([group] * 5))
