import numpy as np
import pytest

from syncheck.errors import InputError, PromptError, TextGeneratorError
from syncheck.spans import (
    ChunkRetriever,
    FavaDetector,
    HalluRagDetector,
    LetterEncoder,
    SpanItem,
    edited_text,
    far_sentences,
    joined_spans,
    listed_spans,
    removed_words,
    unlikely_words,
)
from syncheck.types import TokenSignals

RESPONSE = "It is a red fox. Born in 1999."
ITEM = SpanItem(id="1", lang="en", question="?", response=RESPONSE, passages=("It is a red fox.",))


class Answers:
    """Says what it is told to, and keeps the prompt."""

    name = "answers"

    def __init__(self, answer):
        self.answer = answer
        self.prompt = None

    def __call__(self, prompt):
        self.prompt = prompt
        return self.answer


def table(vectors):
    """An encoder that knows its texts."""
    return lambda texts: np.array([vectors[text] for text in texts])


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


def test_letters_tell_equal_sentences_from_other_ones():
    assert far_sentences(RESPONSE, ["It is a red fox."], LetterEncoder()) == [(17, 30)]


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
    with pytest.raises(PromptError, match="too long"):
        HalluRagDetector(no_room).detect(ITEM)


@pytest.mark.parametrize("answer", ["", "none", "[1, 2]", '["a"', "['a']"])
def test_an_answer_without_a_list_is_an_error(answer):
    with pytest.raises(TextGeneratorError, match="expected an answer with a list"):
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
    with pytest.raises(InputError, match="at least one"):
        HalluRagDetector()


def test_words_that_an_edit_takes_out_are_marked():
    editor = Answers("It is a <entity><delete>red</delete><mark>grey</mark></entity> fox. Born in 1999.")
    assert FavaDetector(editor).detect(ITEM).hard == ((8, 11),)
    assert editor.prompt.endswith(f"[Text] {RESPONSE}\n[Edited] ")


def test_sentences_that_fava_calls_invented_are_taken_out():
    assert edited_text("[Edited] A fox. <invented>Born in 1999.</invented> Yes.") == " A fox.  Yes."


def test_an_edit_that_adds_marks_nothing():
    assert removed_words("a fox", "a red fox ran") == []
    assert removed_words("a red fox", "the fox") == [(0, 5)]


def test_an_editor_without_an_answer_is_an_error():
    with pytest.raises(TextGeneratorError, match="empty"):
        FavaDetector(Answers(" \n")).detect(ITEM)


def test_bm25_finds_and_the_encoder_orders():
    texts = ["The fox is red. The fox sleeps.", "A hen is white."]
    assert ChunkRetriever(texts).best("Is the fox red?", count=1) == ("The fox is red.",)
    vectors = {
        "Is the fox red?": [1, 0],
        "The fox is red.": [0, 1],
        "The fox sleeps.": [1, 0],
        "A hen is white.": [0, 1],
    }
    assert ChunkRetriever(texts, encoder=table(vectors)).best("Is the fox red?", count=1) == ("The fox sleeps.",)
    with pytest.raises(InputError, match="count"):
        ChunkRetriever(texts).best("fox", count=11)


@pytest.mark.parametrize(
    ("texts", "question", "best"),
    [
        (["城堡建于1342年。", "狐狸是红色的。"], "狐狸是什么颜色？", "狐狸是红色的。"),
        (["किला 1342 में बना।", "कैदी भाग गए।"], "कैदी कहाँ गए?", "कैदी भाग गए।"),
        (["بُنيت القلعة عام 1342.", "الثعلب أحمر."], "ما لون الثعلب؟", "الثعلب أحمر."),
    ],
)
def test_texts_of_any_script_are_found(texts, question, best):
    assert ChunkRetriever(texts).best(question)[0] == best


def test_a_vowel_sign_is_no_border_of_a_word():
    # Cut at the vowels, both would be the letters k and l.
    assert ChunkRetriever(["कोला।", "किला।"]).best("किला?") == ("किला।",)
