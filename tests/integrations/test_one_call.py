"""``score`` and ``assert_faithful``: the bundled monitor in one call, and a monitor of one's own."""

import pytest

from syncheck import Monitor, MonitorConfig, load_kit
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.integrations import assert_faithful, generic, score
from syncheck.testing import scripted_monitor

PASSAGES = ["The Avon bridge opened in 1967. It has two lanes.", "Bristol lies on the Avon."]
ANSWER = "It opened in 1967. It has six lanes."
SUPPORTS = {"It opened in 1967.": 0.9, "It has six lanes.": 0.3}


@pytest.fixture(scope="module")
def scripted():
    return scripted_monitor(ANSWER, supports=SUPPORTS)


@pytest.fixture
def counted(monkeypatch, scripted):
    """The monitors that were loaded; the bundled one is replaced by a double."""
    loaded = []

    def load(purpose):
        loaded.append(purpose)
        return scripted

    generic._loaded.cache_clear()
    monkeypatch.setattr(generic, "load_kit", load)
    yield loaded
    generic._loaded.cache_clear()


def test_the_bundled_monitor_tells_a_true_sentence_from_a_false_one():
    monitor = load_kit("generic")
    true, false = score(PASSAGES[0], ["The Avon bridge opened in 1967.", "It has six lanes."], monitor=monitor)
    assert true.score > 0.8 > 0.5 > false.score
    report = assert_faithful("The Avon bridge opened in 1967.", PASSAGES, monitor=monitor)
    assert report.sentences[0].score > 0.8
    with pytest.raises(AssertionError) as failed:
        assert_faithful("The Avon bridge opened in 1967. It has six lanes.", PASSAGES, monitor=monitor)
    text = str(failed.value)
    assert "six lanes" in text and "It has two lanes." in text and "opened in 1967" not in text


def test_a_phrase_of_conversation_claims_nothing():
    monitor = load_kit("generic")
    answer = "The Avon bridge opened in 1967. I hope this helps!"
    report = assert_faithful(answer, PASSAGES, monitor=monitor)
    assert [sentence.status for sentence in report.sentences] == ["scored", "not_a_claim"]
    assert report.unscored == 1
    with pytest.raises(AssertionError, match="nothing to check"):
        assert_faithful("I hope this helps!", PASSAGES, monitor=monitor)


def test_it_is_loaded_by_the_first_call_and_once(counted):
    assert counted == []
    first = score(PASSAGES[0], ["It opened in 1967."])
    assert_faithful("It opened in 1967.", PASSAGES)
    assert counted == ["generic"] and first[0].score == pytest.approx(0.9)


def test_each_sentence_has_passages_of_its_own(scripted):
    found = score([PASSAGES, PASSAGES[1]], ["It opened in 1967.", "It has six lanes."], monitor=scripted)
    assert [s.score for s in found] == pytest.approx([0.9, 0.3])
    assert score([], [], monitor=scripted) == []


def test_text_after_an_end_of_text_token_is_not_taken_for_faithful(scripted):
    with pytest.raises(AssertionError, match="end-of-text.*six lanes"):
        assert_faithful("It opened in 1967.</s> It has six lanes.", PASSAGES, monitor=scripted)
    for sentence in ("It opened in 1967.</s> It has six lanes.", "</s>"):
        with pytest.raises(InputError, match="end-of-text"):
            score(PASSAGES[0], [sentence], monitor=scripted)


def test_a_mark_without_words_has_a_status_and_no_score(scripted):
    (found,) = score(PASSAGES[0], ["..."], monitor=scripted)
    assert found.score is None and found.status != "scored"


@pytest.mark.parametrize(
    ("passages", "sentences", "error"),
    [
        (PASSAGES, ["one"], InputError),
        (PASSAGES[0], [" "], InputError),
        (PASSAGES[0], "one", WrongTypeError),
        (7, ["one"], WrongTypeError),
        ([7], ["one"], WrongTypeError),
    ],
)
def test_what_cannot_be_scored_is_refused(scripted, passages, sentences, error):
    with pytest.raises(error):
        score(passages, sentences, monitor=scripted)


def test_an_answer_that_is_no_text_is_refused(scripted):
    with pytest.raises(WrongTypeError, match="answer"):
        assert_faithful(None, PASSAGES, monitor=scripted)


def test_the_threshold_is_reached_or_not(scripted):
    assert len(assert_faithful(ANSWER, PASSAGES, at_least=0.3, monitor=scripted).sentences) == 2
    with pytest.raises(AssertionError, match="1 of 2"):
        assert_faithful(ANSWER, PASSAGES, at_least=0.31, monitor=scripted)


@pytest.mark.parametrize(
    ("answer", "at_least", "said"),
    [
        (ANSWER, 0.8, "1 of 2 sentences does not reach 0.8:\n  0.30  It has six lanes.\n"),
        ("It has six lanes.", 0.8, "1 of 1 sentence does not reach 0.8:\n  0.30  It has six lanes.\n"),
        (ANSWER, 0.95, "2 of 2 sentences do not reach 0.95:\n  0.90  It opened in 1967.\n"),
    ],
)
def test_the_failure_counts_the_sentences_and_names_them(scripted, answer, at_least, said):
    with pytest.raises(AssertionError) as failed:
        assert_faithful(answer, PASSAGES, at_least=at_least, monitor=scripted)
    assert str(failed.value).startswith(said)


def test_a_sentence_of_several_lines_stands_on_one_in_the_failure():
    double = scripted_monitor("It has\nsix lanes.", supports={"It has\nsix lanes.": 0.3})
    with pytest.raises(AssertionError) as failed:
        assert_faithful("It has\nsix lanes.", ["It has\ntwo lanes."], monitor=double)
    lines = str(failed.value).splitlines()
    assert lines[1:] == ["  0.30  It has six lanes.", "    nearest: It has two lanes."]


@pytest.mark.parametrize("answer", ["", "..."])
def test_an_answer_with_nothing_to_check_fails(scripted, answer):
    with pytest.raises(AssertionError, match="nothing"):
        assert_faithful(answer, PASSAGES, monitor=scripted)


def test_a_sentence_that_could_not_be_checked_fails(scripted):
    with pytest.raises(AssertionError, match="no_context"):
        assert_faithful("It opened in 1967.", [], monitor=scripted)


def test_the_failure_says_why_a_sentence_could_not_be_checked():
    monitor = load_kit("generic")
    with pytest.raises(AssertionError, match="unsupported_language: .*'de'"):
        assert_faithful("Die Brücke wurde im Jahr 1967 eröffnet und hat zwei Spuren.", PASSAGES, monitor=monitor)


def test_a_name_in_place_of_a_monitor_is_refused_with_what_loads_it():
    for refused in (
        lambda: score(PASSAGES[0], ["One."], monitor="generic"),
        lambda: assert_faithful("One.", PASSAGES, monitor="generic"),
    ):
        with pytest.raises(WrongTypeError, match="load_kit"):
            refused()


def test_a_threshold_outside_its_range_and_a_monitor_without_scores_are_refused(scripted):
    with pytest.raises(InputError):
        assert_faithful("It opened in 1967.", PASSAGES, at_least=80, monitor=scripted)
    bare = Monitor(scripted.model, scripted.tokenizer, config=MonitorConfig())
    with pytest.raises(InputError):
        assert_faithful("It opened in 1967.", PASSAGES, monitor=bare)
