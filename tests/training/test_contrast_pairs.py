"""The starter kit's made-up claims: the same from the same seed, rightly labelled, not solved by matching words."""

import random
from collections import Counter
from pathlib import Path

import contrast_pairs
import pytest
import wikipedia_articles
import wikipedia_contrast

KIT = Path(__file__).parents[2] / "examples" / "starter_kit"

PARAGRAPH = (
    "The Brindle Bridge was designed by Hannah Corrigan in 1932.",
    "It is longer than the Orford Viaduct and has 12 arches.",
    "After the flood, Thomas Weller rebuilt the tower for Miriam Stokes.",
    "All engineers of the council praised the work before Edmund Harrow sold the quarry.",
)


@pytest.fixture(scope="module")
def makers():
    articles = [wikipedia_articles.Article("Brindle Bridge", (("", PARAGRAPH), ("Later", PARAGRAPH[::-1])))]
    substitution = wikipedia_articles.Substitution(articles)
    substitution.names = ["Quimby", "Larkin"]
    facts = contrast_pairs.FactContrast(contrast_pairs.read_relations(KIT / "fact_relations.txt"))
    return facts, wikipedia_contrast.WikipediaContrast(articles, substitution)


def drawn(makers, count):
    rng, balance = random.Random(5), contrast_pairs.Balance()
    groups = (balance.admitted(makers[i % 2].draw(rng, rng.randint(1, 3))) for i in range(count))
    return [group for group in groups if group is not None]


def test_the_same_seed_draws_the_same_claims(makers):
    assert drawn(makers, 60) == drawn(makers, 60)


@pytest.mark.parametrize(
    ("kind", "sentence", "expected"),
    [
        ("number", 1, r"It is longer than the Orford Viaduct and has (?!12 )\d+ arches\."),
        ("date", 0, r"The Brindle Bridge was designed by Hannah Corrigan in (?!1932)\d{4}\."),
        ("name", 0, r"The (?:Brindle Bridge was designed by (?!Hannah Corrigan)|(?!Brindle Bridge)).+ in 1932\."),
        ("negation", 0, r"The Brindle Bridge was (?:not|never) designed by Hannah Corrigan in 1932\."),
        ("comparison", 1, r"It is shorter than the Orford Viaduct and has 12 arches\."),
        ("order", 3, r"All engineers .+ work after Edmund Harrow sold the quarry\."),
        ("antonym", 3, r"All engineers .+ (?:criticized .+ sold|praised .+ bought) the quarry\."),
        ("role", 2, r"After the flood, Miriam Stokes rebuilt the tower for Thomas Weller\."),
    ],
)
def test_an_edit_changes_what_its_kind_says(makers, kind, sentence, expected):
    import re

    edit, label = wikipedia_contrast.EDITS[kind]
    for seed in range(20):
        edited = edit(random.Random(seed), PARAGRAPH[sentence], PARAGRAPH, makers[1].substitution)
        assert re.fullmatch(expected, edited), edited
    assert label == contrast_pairs.CONTRADICTED


def test_a_passive_sentence_is_turned_into_an_active_one_and_one_with_the_roles_exchanged():
    active, exchanged = wikipedia_contrast.passive_turned(PARAGRAPH[0])
    assert active == "Hannah Corrigan designed the Brindle Bridge in 1932."
    assert exchanged == "The Brindle Bridge designed Hannah Corrigan in 1932."


def test_rewording_keeps_every_name_and_year():
    for seed in range(40):
        reworded = wikipedia_contrast.same_meaning(random.Random(seed), PARAGRAPH[2], "Brindle Bridge")
        assert "Thomas Weller" in reworded
        assert "Miriam Stokes" in reworded


@pytest.mark.parametrize("seed", range(30))
def test_a_wrong_claim_of_a_made_up_fact_stands_nowhere_in_its_context(makers, seed):
    group = makers[0].draw(random.Random(seed), 3)
    context = " ".join(group.passages)
    labels = {claim.label for claim in group.claims}
    assert contrast_pairs.SUPPORTED in labels and len(labels) > 1
    assert all(c.label == contrast_pairs.SUPPORTED or c.text.rstrip(".") not in context for c in group.claims)
    assert len({c.text for c in group.claims}) == len(group.claims)


def test_every_relation_fills_every_wording(makers):
    rng = random.Random(0)
    for relation in makers[0].relations:
        for wording in (*relation.same, *(w for _, w in relation.opposed), *relation.open):
            values = {name: contrast_pairs.draw_value(rng, kind) for name, kind in relation.slots.items()}
            text = contrast_pairs.filled(rng, wording, values)
            assert "{" not in text and text[0].isupper() or text[0] in '"0123456789$€£', text


def test_within_a_stratum_of_overlap_half_of_the_claims_are_supported(makers):
    counts = Counter()
    for group in drawn(makers, 800):
        for claim in group.claims:
            overlap = contrast_pairs.word_overlap(claim.text, " ".join(group.passages))
            stratum = sum(overlap > bound for bound in contrast_pairs.STRATA)
            counts[group.source, stratum, claim.label == contrast_pairs.SUPPORTED] += 1
    for source, stratum, supported in list(counts):
        assert abs(counts[source, stratum, supported] - counts[source, stratum, not supported]) <= contrast_pairs.SLACK
    assert sum(counts.values()) > 800


def test_a_changed_subject_is_not_one_that_the_context_says_the_same_of(tmp_path):
    """The context holds two facts of one relation whose only value is the subject."""
    relations = tmp_path / "relations.txt"
    relations.write_text(
        "{D*:device} is off. / {D} is not on. != n: {D} is not off. / {D} is on. ? {D} is new.\n"
        "It rains in {C:city}. / Rain falls in {C}. != It snows in {C}. / It hails in {C}. ? It pours in {C}.\n"
    )
    maker = contrast_pairs.FactContrast(contrast_pairs.read_relations(relations))
    for seed in range(200):
        group = maker.draw(random.Random(seed), 4)
        context = " ".join(group.passages).lower()
        for claim in group.claims:
            if claim.kind == "subject name":
                assert claim.text.lower().split(" is ")[0] not in context


def test_where_the_facts_have_all_values_of_a_kind_none_is_changed(tmp_path):
    relations = tmp_path / "relations.txt"
    relations.write_text("Rain on {W*:weekday}. / Wet {W}. != Dry {W}. / Sun on {W}. ? Cold {W}.\n" * 2)
    maker = contrast_pairs.FactContrast(contrast_pairs.read_relations(relations))
    few, many = ([maker.draw(random.Random(seed), count) for seed in range(20)] for count in (2, 60))
    assert "subject date" in {claim.kind for group in few for claim in group.claims}
    assert "subject date" not in {claim.kind for group in many for claim in group.claims}


def test_a_relation_with_more_values_of_a_kind_than_there_are_is_refused(tmp_path):
    relations = tmp_path / "relations.txt"
    slots = " ".join(f"{{{letter}:when}}" for letter in "ABCD")
    relations.write_text(f"It rained {slots}. / x != y / z ? v\n")
    maker = contrast_pairs.FactContrast(contrast_pairs.read_relations(relations))
    with pytest.raises(ValueError, match="of the kind when"):
        maker.draw(random.Random(0), 1)
