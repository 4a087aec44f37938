import pytest
from span_doubles import Answers

from syncheck.base.errors import TextGeneratorError
from syncheck.results import SpanItem
from syncheck.spans import FavaDetector, edited_text, removed_words

RESPONSE = "It is a red fox. Born in 1999."

ITEM = SpanItem(id="1", lang="en", question="?", response=RESPONSE, passages=("It is a red fox.",))


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
