import numpy as np
import pytest
from span_doubles import Answers, one, table

from syncheck.base.errors import (
    InputError,
    PromptError,
    TextGeneratorError,
)
from syncheck.results import SpanItem
from syncheck.results.types import TokenSignals
from syncheck.spans import (
    HalluRagDetector,
    far_sentences,
    joined_spans,
    listed_spans,
    unlikely_words,
)
from syncheck.spans.hallurag import asked_spans

RESPONSE = "It is a red fox. Born in 1999."

ITEM = SpanItem(id="1", lang="en", question="?", response=RESPONSE, passages=("It is a red fox.",))


def signals(spans, probabilities):
    log_prob = np.log(np.array(probabilities)).astype(np.float32)
    rest = [np.zeros(len(spans), dtype=np.float32)] * 3
    return TokenSignals(RESPONSE, np.arange(len(spans)), np.array(spans), log_prob, *rest)


def test_only_content_words_below_one_percent_are_unlikely():
    # is, red, fox, Born, in, 19, 99
    spans = [[3, 5], [8, 11], [12, 15], [17, 21], [22, 24], [25, 27], [27, 29]]
    found = unlikely_words(RESPONSE, signals(spans, [0.001, 0.001, 0.02, 0.009, 0.001, 0.5, 0.0099]))
    assert [RESPONSE[a:b] for a, b in found] == ["Born", "1999"]


def test_sentences_below_one_half_are_far():
    vectors = {"It is a red fox.": [1, 0], "Born in 1999.": [0.49, 0.87], "x": [1, 0], "y": [0.6, 0.8]}
    encoder = table(vectors | {RESPONSE[:16]: [1, 0]})
    assert far_sentences(RESPONSE, ["x"], encoder) == [(17, 30)]
    assert far_sentences(RESPONSE, ["x", "y"], encoder) == []
    assert far_sentences(RESPONSE, [], encoder) == [(0, 16), (17, 30)]


def test_the_spans_asked_for_are_found_as_written():
    asked = Answers('Sure: ["1999", "red ", "blue"]')
    found = HalluRagDetector(asked=asked).detect(ITEM)
    assert [RESPONSE[a:b] for a, b in found.hard] == ["red", "1999"]
    assert asked.prompt.startswith(f"Text: {RESPONSE}\n\nFactual Information: It is a red fox.\n\nCompare the text")


def test_what_any_system_marks_is_marked_and_the_share_that_does_is_the_risk():
    detector = HalluRagDetector(lambda item: signals([[25, 29]], [0.001]), asked=Answers('["Born", "1999"]'))
    found = detector.detect(ITEM)
    assert [(RESPONSE[s.start : s.end], s.prob) for s in found.soft] == [("Born", 0.5), ("1999", 1.0)]
    assert found.hard == ((17, 21), (25, 29))


def no_room(item):
    raise PromptError("too long")


def test_systems_that_could_look_go_on_without_one_that_has_no_room():
    far = table({"It is a red fox.": [1, 0], "Born in 1999.": [0, 1]})  # 17 to 30
    asked = Answers('["1999", "red"]')
    found = HalluRagDetector(no_room, encoder=far, asked=asked).detect(ITEM)
    assert [(s.start, s.end, s.prob) for s in found.soft] == [(8, 11, 0.5), (17, 25, 0.5), (25, 29, 1.0), (29, 30, 0.5)]
    assert found.hard == ((8, 11), (17, 30))
    alone = HalluRagDetector(no_room, asked=asked).detect(ITEM)
    assert [(s.start, s.end, s.prob) for s in alone.soft] == [(8, 11, 1.0), (25, 29, 1.0)]
    # With room, and nothing unlikely, the same marks are those of two systems out of three.
    measured = HalluRagDetector(lambda item: signals([[25, 29]], [0.5]), encoder=far, asked=asked).detect(ITEM)
    assert [s.prob for s in measured.soft] == pytest.approx([1 / 3, 1 / 3, 2 / 3, 1 / 3])


def test_a_system_without_room_and_without_others_is_an_error():
    with pytest.raises(PromptError, match="long"):
        HalluRagDetector(no_room).detect(ITEM)


@pytest.mark.parametrize("answer", ["", "none", "[1, 2]", '["a"', "['a']"])
def test_an_answer_without_a_list_is_an_error(answer):
    with pytest.raises(TextGeneratorError, match="list"):
        listed_spans(answer)


def test_the_first_list_of_strings_is_taken():
    assert listed_spans('[sic] ["a b", "c"] ["d"]') == ["a b", "c"]
    assert listed_spans("[]") == []


def test_close_spans_are_joined_and_white_space_left_outside():
    text = "ab cd  ef    gh "
    assert joined_spans([(7, 9), (0, 2), (3, 5), (13, 16)], text) == [(0, 9), (13, 15)]
    assert joined_spans([(0, 4), (1, 2)], text) == [(0, 4)]
    assert joined_spans([(9, 12)], text) == []


def test_a_detector_of_nothing_is_refused():
    with pytest.raises(InputError, match="asked"):
        HalluRagDetector()


def test_a_model_is_asked_with_the_passages_for_a_list():
    asked = Answers('["in 1950", "fox"]')
    text = "Built in 1950, fox."
    assert asked_spans(one(text, passages=("Built in 1342.",)), asked) == [(6, 13), (15, 18)]
    assert "Text: Built in 1950, fox.\n\nFactual Information: Built in 1342." in asked.prompt
    with pytest.raises(TextGeneratorError, match="list"):
        asked_spans(one(text), Answers("I do not know."))
