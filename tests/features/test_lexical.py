from math import isnan, log1p

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncheck.text.words import ContextLexicon, LexicalShares, content_words, lexical_shares, novel_pairs, share

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
        ("Here I'm, as I\u2019ve said.", 0, 0, None, 0),  # no lone "I"
        ("1. Seine", 1 / 2, 0, 0, 1),  # "1" is the first
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("हिन्दी भाषा, २०२३", ["हिन्दी", "भाषा", "२०२३"]),
        ("தமிழ் மொழி.", ["தமிழ்", "மொழி"]),
        ("كِتَابٌ جَدِيدٌ", ["كِتَابٌ", "جَدِيدٌ"]),
        ("שָׁלוֹם עוֹלָם", ["שָׁלוֹם", "עוֹלָם"]),
        ("m\u0303ba l'm\u0303ba", ["m\u0303ba", "l'm\u0303ba"]),  # no single character for it
        ("cafe\u0301", ["caf\u00e9"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("র\u200d\u09cdযাব", ["র\u200d\u09cdযাব"]),
        ("راه\u200c تو\u200d.", ["راه", "تو"]),  # a joiner that joins nothing
        ("กินปลา ๒ ตัว", ["กิ", "น", "ป", "ล", "า", "๒", "ตั", "ว"]),  # without spaces, as Kana and Han
        ("ភាសាខ្មែរ", ["ភា", "សា", "ខ្", "មែ", "រ"]),
        ("\u0301\u0e34 a", []),  # marks of no letter
    ],
)
def test_marks_stay_with_their_letter(text, words):
    assert content_words(text) == words


def test_words_of_the_same_letters_with_other_marks_are_not_held():
    shares = lexical_shares("होद हदी", ContextLexicon.from_passages(["हिन्दी हाद"]))
    assert (shares.content_overlap, shares.stem_overlap, shares.copied_run, shares.bigram_overlap) == (0, 0, 0, 0)
    assert shares.novel_words == pytest.approx(log1p(2))


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
        rise = getattr(wide, name) - getattr(less, name)
        assert isnan(rise) or (rise <= 0 if name == "novel_words" else rise >= 0)


def test_share_counts_repeats():
    assert share(["a", "a", "b"], {"a"}) == pytest.approx(2 / 3)
    assert isnan(share([], {"a"}))


@pytest.mark.parametrize(
    ("sentence", "stems", "novel", "pairs", "run"),
    [
        ("Paris crossed the Seine.", 3 / 3, 0, 1, 2 / 4),  # paris crosses seine; "the seine"
        ("The Seine crosses Paris, France.", 1, 0, 1, 1),
        ("Capital people", 1, 0, 0, 1 / 2),  # of two passages
        ("Capitals capitals", 1, 0, 0, 0),  # one place is not near itself
        ("France cross Paris", 1, 0, 1, 1 / 3),
        ("2,102,651 people", 1 / 2, 1, 0, 1 / 2),  # numbers have no stem
        ("towers and rivers, towers", 0, 2, 0, 0),
        ("fewer 3.5 people", 1, 0, 1, 1 / 3),
        ("the", None, 0, None, 1),
        ("***", None, 0, None, None),
    ],
)
def test_stems_pairs_and_runs_by_hand(sentence, stems, novel, pairs, run):
    shares = lexical_shares(sentence, LEXICON)
    found = (shares.stem_overlap, shares.novel_words, shares.pair_overlap, shares.copied_run)
    for value, expected in zip(found, (stems, log1p(novel), pairs, run), strict=True):
        assert isnan(value) if expected is None else value == pytest.approx(expected)


@pytest.mark.parametrize(("passages", "near"), [(["Lyon 1 2 3 4 5 6 7 Seine"], 1), (["Lyon 1 2 3 4 5 6 7 8 Seine"], 0)])
def test_words_are_near_up_to_eight_words_apart(passages, near):
    lexicon = ContextLexicon.from_passages(passages)
    assert lexical_shares("Lyon Seine", lexicon).pair_overlap == near
    assert lexical_shares("Seine, Lyon", lexicon).pair_overlap == near


@given(
    passages=st.lists(st.lists(st.sampled_from("ab c d 1 the".split()), max_size=12).map(" ".join), max_size=3),
    words=st.lists(st.sampled_from("ab c d 1 the x".split()), min_size=1, max_size=8),
)
def test_runs_and_pairs_are_those_of_a_plain_search(passages, words):
    lexicon = ContextLexicon.from_passages(passages)
    shares = lexical_shares(" ".join(words), lexicon)
    texts = [passage.split() for passage in passages]
    runs = [
        stop - start
        for start in range(len(words))
        for stop in range(start, len(words) + 1)
        if stop == start or any(text[i : i + stop - start] == words[start:stop] for text in texts for i in range(12))
    ]
    assert shares.copied_run == max(runs) / len(words)
    content = [word for word in words if word != "the"]
    near = [
        any(
            0 < abs(i - j) <= 8
            for text in texts
            for i, a in enumerate(text)
            if a == x
            for j, b in enumerate(text)
            if b == y
        )
        for x, y in zip(content, content[1:], strict=False)
    ]
    assert isnan(shares.pair_overlap) if not near else shares.pair_overlap == pytest.approx(sum(near) / len(near))
    assert novel_pairs(" ".join(words), lexicon) == pytest.approx(log1p(near.count(False)))
