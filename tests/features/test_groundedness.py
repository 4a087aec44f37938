from math import isnan, log, log1p

import pytest

from syncheck.features.sentence import groundedness
from syncheck.reading.claim import says_not_stated
from syncheck.reading.evidence import ContextChunks
from syncheck.text.words import Rarity, packaged_rarity

RARITY = Rarity(1, {"the": 1})  # the: 0, any other stem: ln 2
CHUNKS = ContextChunks.from_texts(["The bridge opened in 1967.", "It has two lanes.", "Norra Bridge is blue."])


def of(sentence, best=(0, 1), rarity=RARITY, chunks=CHUNKS):
    return groundedness(sentence, chunks, best, rarity=rarity)


def test_shares_are_those_counted_by_hand():
    found = of("The bridge has 3 lanes")  # the 0, bridge, has, 3, lanes: ln 2 each
    assert found["rarity_best"] == pytest.approx(1 / 4)  # bridge
    assert found["rarity_nearby"] == pytest.approx(3 / 4)  # chunks 0 to 2: all but 3
    assert found["missing_rarity"] == pytest.approx(log1p(log(2)))  # 3
    assert found["stems_2"] == pytest.approx(2 / 3)  # bridge, lanes of bridge, 3, lanes
    assert found["stems_1"] == pytest.approx(1 / 3)
    assert found["bigrams_2"] == pytest.approx(1 / 4)  # the bridge
    assert found["missing_numbers"] == 1
    assert found["missing_names"] == 0


def test_pieces_are_five_characters_of_the_padded_text():
    found = of("Blue lanes", best=(2, 1))  # " blue", "blue ", "lue l", "ue la", "e lan", " lane", "lanes", "anes "
    assert found["pieces_1"] == pytest.approx(2 / 8)
    assert found["pieces_2"] == found["pieces_4"] == pytest.approx(5 / 8)


def test_a_spelled_number_is_the_number():
    assert of("It has 2 lanes")["missing_numbers"] == 0
    assert of("It has three lanes")["missing_numbers"] == 1


def test_a_name_is_capitalised_after_a_lower_case_letter():
    assert of("The bridge of Norra and Selma")["missing_names"] == 1
    assert of("Selma")["missing_names"] == 0


def test_only_what_says_that_something_is_not_stated_has_absence():
    assert of("The passages do not mention a price or bridge.")["absence"] == pytest.approx(2 / 3)  # mentions, price
    assert of("The price is high.")["absence"] == 0


@pytest.mark.parametrize("sentence", ["", "!"])
def test_a_sentence_without_words_is_not_measured(sentence):
    found = of(sentence)
    assert isnan(found["rarity_best"]) and isnan(found["stems_2"]) and isnan(found["bigrams_2"])
    assert found["missing_rarity"] == 0


def test_a_context_without_text_holds_nothing():
    found = of("The bridge", best=(), chunks=ContextChunks.from_texts([]))
    assert (found["rarity_nearby"], found["pieces_4"], found["stems_1"], found["bigrams_2"]) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("sentence", "says"),
    [
        ("The passages do not mention a price.", True),
        ("No information about costs is given.", True),
        ("It is unclear who paid.", True),
        ("I am unable to answer.", True),
        ("The price isn't specified.", True),
        ("The price is not given.", True),
        ("The shop is not open.", False),
        ("Aspirin must not be given at the same time.", False),
        ("He did not win.", False),
    ],
)
def test_sentences_that_something_is_not_stated_are_recognised(sentence, says):
    assert says_not_stated(sentence) is says


def test_rarity_is_the_formula_and_the_packaged_table_is_whole():
    assert Rarity(3, {"cat": 1})("cat") == pytest.approx(log(4 / 2))
    assert Rarity(3, {"cat": 1})("dog") == pytest.approx(log(4))
    packaged = packaged_rarity()
    assert packaged.articles == 4000
    assert packaged("the") < 0.05 < packaged("bridg") < packaged("norad") == pytest.approx(log(4001))
