"""Stems: those of NLTK's Snowball stemmer for English."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.stem.snowball import SnowballStemmer

from syncheck.text.rarity import packaged_rarity
from syncheck.text.stemming import snowball_stem

NLTK = SnowballStemmer("english")
STARTS = "gener commun arsen b c y a e i o u st tr wx ll pp at bl iz l t s n ' \u2019 \u00c9 \u00df".split()
ENDINGS = """
    sses ied ies us ss s eedly ingly edly eed ing ed ization ational fulness ousness iveness tional biliti lessli entli
    ation alism aliti ousli iviti fulli enci anci abli izer ator alli bli ogi li alize icate iciti ative ical ness ful
    ement ance ence able ible ment ant ent ism ate iti ous ive ize ion al er ic e l y ' 's 's'
""".split()


def by_nltk(word):
    return NLTK.stem(word)


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        ("relational", "relat"),
        ("Organizers", "organ"),
        ("dying", "die"),
        ("proceedings", "proceed"),
        ("hopping", "hop"),
        ("hoping", "hope"),
        ("generously", "generous"),
        ("miller's", "miller"),
        ("wayyyy", "wayyyi"),
        ("is", "is"),
    ],
)
def test_stems_of_words(word, stem):
    assert snowball_stem(word) == stem == by_nltk(word)


def test_stems_of_frequent_words_are_those_of_nltk():
    known = list(packaged_rarity().counts)
    assert len(known) > 1000
    assert [word for word in known if snowball_stem(word) != by_nltk(word)] == []


@settings(deadline=None, max_examples=2000)
@given(
    st.builds(
        lambda starts, endings: "".join(starts + endings),
        st.lists(st.sampled_from(STARTS), max_size=4),
        st.lists(st.sampled_from(ENDINGS), max_size=3),
    )
    | st.text(alphabet="abceilnstyxw'", max_size=9)
)
def test_stems_are_those_of_nltk(word):
    assert snowball_stem(word) == by_nltk(word)
