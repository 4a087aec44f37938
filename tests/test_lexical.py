from math import isnan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncheck.lexical import ContextLexicon, LexicalShares, content_words, lexical_shares, share

PASSAGES = ["The Seine crosses Paris, France's capital.", "It had 2,102,650 people in 2023; 3.5% fewer."]
LEXICON = ContextLexicon.from_passages(PASSAGES)
texts = st.text(alphabet="aB1 .,'\u2019\u6771\u00e9-\n", max_size=60)


def test_a_lexicon_holds_normalised_words_pairs_and_numbers():
    assert LEXICON.words == frozenset(
        "the seine crosses paris france capital it had 2102650 people in 2023 3.5 fewer".split()
    )
    assert LEXICON.numbers == {"2102650", "2023", "3.5"}
    assert ("paris", "france") in LEXICON.bigrams
    assert ("capital", "it") not in LEXICON.bigrams  # two passages
    assert len(LEXICON.bigrams) == 5 + 7


@pytest.mark.parametrize(
    ("sentence", "content", "bigrams", "numbers", "names"),
    [
        # paris, crosses, seine of 3; (paris crosses), (crosses the), (the seine): none, none, one of 3
        ("Paris crosses the Seine.", 1, 1 / 3, None, 1),
        ("In 2023 Paris had 2 102,650.", 2 / 4, 1 / 5, 1 / 3, 1),
        ("PARIS AND Lyon", 1 / 2, 0, None, 0),
        ("I think I saw France\u2019s Seine.", 2 / 4, 0, None, 1),
        ("It is the", None, 0, None, None),
        ("Word", 0, None, None, None),
        ("***", None, None, None, None),
        ("", None, None, None, None),
    ],
)
def test_shares_by_hand(sentence, content, bigrams, numbers, names):
    shares = lexical_shares(sentence, LEXICON)
    found = (shares.content_overlap, shares.bigram_overlap, shares.number_overlap, shares.name_overlap)
    for value, expected in zip(found, (content, bigrams, numbers, names), strict=True):
        assert isnan(value) if expected is None else value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat's whiskers, according to passage 2.", ["cat", "whiskers", "2"]),
        ("1,234,567.8 and 1,23 or 12.", ["1234567.8", "1,23", "12"]),
        ("snake_case COVID-19 na\u00efve O'Neil", ["snake", "case", "covid", "19", "na\u00efve", "o'neil"]),
        ("\u6771\u4eac Tokyo", ["\u6771", "\u4eac", "tokyo"]),
        ("\ufb01ne \uff11\uff12", ["fine", "12"]),  # compatibility forms
        ("dogs' Stra\u00dfe", ["dogs", "strasse"]),
        ("", []),
    ],
)
def test_content_words(text, words):
    assert content_words(text) == words


@given(sentence=texts, before=texts, after=texts)
@settings(deadline=None)
def test_a_context_that_holds_the_sentence_gives_one(sentence, before, after):
    shares = lexical_shares(sentence, ContextLexicon.from_passages([before, sentence, after]))
    found = [shares.content_overlap, shares.bigram_overlap, shares.number_overlap, shares.name_overlap]
    assert all(isnan(value) or value == 1 for value in found)
    nothing = lexical_shares(sentence, ContextLexicon.from_passages([]))
    assert all(isnan(value) or value == 0 for value in (nothing.content_overlap, nothing.bigram_overlap))
    assert isnan(nothing.content_overlap) == isnan(shares.content_overlap)


@given(sentence=texts, passages=st.lists(texts, max_size=4), more=texts)
@settings(deadline=None)
def test_more_context_never_lowers_a_share(sentence, passages, more):
    less = lexical_shares(sentence, ContextLexicon.from_passages(passages))
    wide = lexical_shares(sentence, ContextLexicon.from_passages([*passages, more]))
    for name in LexicalShares.__slots__:
        assert isnan(getattr(less, name)) or getattr(wide, name) >= getattr(less, name)


def test_share_counts_repeats():
    assert share(["a", "a", "b"], {"a"}) == pytest.approx(2 / 3)
    assert isnan(share([], {"a"}))
