import pytest
from whole_texts import sentences

from syncheck.text.sentences import ENGLISH_ABBREVIATIONS, IncrementalSegmenter
from syncheck.text.sentences.boundaries import SegmenterConfig


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Lee met Mrs. Ray. They spoke.", ["Dr. Lee met Mrs. Ray.", "They spoke."]),
        ("It eats e.g. fish, i.e. meat vs. corn. So.", ["It eats e.g. fish, i.e. meat vs. corn.", "So."]),
        ("The U.S. army left. See Fig. 3 there.", ["The U.S. army left.", "See Fig. 3 there."]),
        ("Is it No. 5? No. He left.", ["Is it No. 5?", "No.", "He left."]),
        ("On Jan. 5 it ended. It was in Jan. He left.", ["On Jan. 5 it ended.", "It was in Jan.", "He left."]),
        ("From pp. 3 to p. 4. In vol. 2. End.", ["From pp. 3 to p. 4.", "In vol. 2.", "End."]),
        ("(cf. Smith et al. 2003) shows. It does.", ["(cf. Smith et al. 2003) shows.", "It does."]),
        (
            "Take 4 g. Do not add 5 m. or J. Fox. It has 10 m. Rest.",
            ["Take 4 g.", "Do not add 5 m. or J. Fox.", "It has 10 m.", "Rest."],
        ),
        ("Keep it at 85 °C. Cool it. Fill in 4 °C. Salt.", ["Keep it at 85 °C.", "Cool it.", "Fill in 4 °C.", "Salt."]),
        ("It has 60 W. It lasts. In 1962 J. Fox came.", ["It has 60 W.", "It lasts.", "In 1962 J. Fox came."]),
        (
            "Park in zone B. It is free. Call J. The line by K. He is old, as is D. C. The rest.",
            ["Park in zone B.", "It is free.", "Call J.", "The line by K. He is old, as is D. C. The rest."],
        ),
        (
            "**Opening hours.** It opens at 6. *Note.* Bring a towel. **Do not run.",
            ["**Opening hours.**", "It opens at 6.", "*Note.*", "Bring a towel.", "**Do not run."],
        ),
        ("It is 5 p.m. He left etc. She stayed.", ["It is 5 p.m.", "He left etc.", "She stayed."]),
        ("From 4 p.m. to 10 P.M. it is open. So.", ["From 4 p.m. to 10 P.M. it is open.", "So."]),
        ("Nuts etc. are sold, by Al Ray Jr. and Ann.", ["Nuts etc. are sold, by Al Ray Jr. and Ann."]),
        ("It left the team. it lost.", ["It left the team.", "it lost."]),
    ],
)
def test_english_abbreviations(text, expected):
    assert sentences(text, abbreviations=ENGLISH_ABBREVIATIONS) == expected


@pytest.mark.parametrize("entry", ["z.B.", "z.b", "Z.B."])
def test_case_and_last_full_stop_do_not_matter(entry):
    text = "Das ist z.B. hier so. Und Z.B. da."
    assert sentences(text) == ["Das ist z.B.", "hier so.", "Und Z.B.", "da."]
    assert sentences(text, abbreviations=(entry,)) == ["Das ist z.B. hier so.", "Und Z.B. da."]


def test_a_sentence_that_ends_in_a_known_abbreviation_is_joined_with_the_next():
    assert sentences("He is in the U.S. She left.", abbreviations=("U.S.",)) == ["He is in the U.S. She left."]
    assert sentences("In the U.S.! She left.", abbreviations=("U.S.",)) == ["In the U.S.!", "She left."]


def test_before_a_number_only():
    text = "Take no. 5th or no. 5. Say no. Then no. 7"
    assert sentences(text, abbreviations=("No.#",)) == ["Take no.", "5th or no. 5.", "Say no.", "Then no. 7"]
    assert sentences(text, abbreviations=("No.",)) == ["Take no. 5th or no. 5.", "Say no. Then no. 7"]


def test_before_a_small_letter_only():
    text = "At 4 p.m. on Monday. At 4 p.m. Monday. At 4 p.m. 5 left. It is xp.m. so."
    expected = ["At 4 p.m. on Monday.", "At 4 p.m.", "Monday.", "At 4 p.m.", "5 left.", "It is xp.m.", "so."]
    assert sentences(text, abbreviations=("p.m.~",)) == expected


def test_a_prefix_with_a_hyphen_does_not_hide_one():
    assert sentences("The ex-Dr. Lee left.", abbreviations=("Dr.",)) == ["The ex-Dr. Lee left."]


def test_the_constant_is_a_tuple_of_different_words():
    assert len(set(ENGLISH_ABBREVIATIONS)) == len(ENGLISH_ABBREVIATIONS)
    assert {"Dr.", "Mr.", "e.g.", "i.e.", "vs.", "U.S.", "No.#", "Fig."} <= set(ENGLISH_ABBREVIATIONS)


def test_what_the_whole_next_word_decides_is_reported_with_the_word_after_it():
    segmenter = IncrementalSegmenter(SegmenterConfig(abbreviations=("No.#",)))
    tokens = ["Say", " no", ".", " 5", "th", " is", " it"]
    assert [index for index, token in enumerate(tokens) if segmenter.push(token)] == [5]
