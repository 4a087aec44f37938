"""``assert_faithful``: a gate by the bundled verifier in one call, or by a verifier of one's own."""

import pytest

from syncheck import MonitorConfig, Verifier
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.integrations import assert_faithful, generic
from syncheck.testing import ScriptedAligner

PASSAGES = ["The Avon bridge opened in 1967. It has two lanes.", "Bristol lies on the Avon."]
ANSWER = "It opened in 1967. It has six lanes."
SUPPORTS = {"It opened in 1967.": 0.9, "It has six lanes.": 0.3}


@pytest.fixture(scope="module")
def scripted():
    return Verifier(ScriptedAligner(SUPPORTS))


@pytest.fixture
def counted(monkeypatch, scripted):
    """One entry for each verifier that was made; the bundled one is replaced by a double."""
    loaded = []

    def load():
        loaded.append("generic")
        return scripted

    generic._generic.cache_clear()
    monkeypatch.setattr(generic, "Verifier", load)
    yield loaded
    generic._generic.cache_clear()


def test_the_bundled_verifier_tells_a_true_sentence_from_a_false_one():
    verifier = Verifier()
    report = assert_faithful("The Avon bridge opened in 1967.", PASSAGES, verifier=verifier)
    assert report.sentences[0].score > 0.8
    with pytest.raises(AssertionError) as failed:
        assert_faithful("The Avon bridge opened in 1967. It has six lanes.", PASSAGES, verifier=verifier)
    text = str(failed.value)
    assert "six lanes" in text and "It has two lanes." in text and "opened in 1967" not in text


def test_a_phrase_of_conversation_claims_nothing():
    verifier = Verifier()
    answer = "The Avon bridge opened in 1967. I hope this helps!"
    report = assert_faithful(answer, PASSAGES, verifier=verifier)
    assert [sentence.status for sentence in report.sentences] == ["scored", "not_a_claim"]
    assert report.unscored == 1
    with pytest.raises(AssertionError, match="nothing to check"):
        assert_faithful("I hope this helps!", PASSAGES, verifier=verifier)


def test_what_repeats_itself_fails():
    with pytest.raises(AssertionError, match="degenerate"):
        assert_faithful("The Avon bridge opened in 1967. Lanes lanes lanes lanes.", PASSAGES, verifier=Verifier())


def test_it_is_loaded_by_the_first_call_and_once(counted):
    assert counted == []
    reports = [assert_faithful("It opened in 1967.", PASSAGES) for _ in range(2)]
    assert counted == ["generic"] and reports[0].sentences[0].score == pytest.approx(0.9)


def test_text_after_an_end_of_text_token_is_checked_too(scripted):
    with pytest.raises(AssertionError, match="six lanes"):
        assert_faithful("It opened in 1967.</s> It has six lanes.", PASSAGES, verifier=scripted)


def test_an_answer_that_is_no_text_is_refused(scripted):
    with pytest.raises(WrongTypeError, match="answer"):
        assert_faithful(None, PASSAGES, verifier=scripted)


def test_the_threshold_is_reached_or_not(scripted):
    assert len(assert_faithful(ANSWER, PASSAGES, at_least=0.3, verifier=scripted).sentences) == 2
    with pytest.raises(AssertionError, match="1 of 2"):
        assert_faithful(ANSWER, PASSAGES, at_least=0.31, verifier=scripted)


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
        assert_faithful(answer, PASSAGES, at_least=at_least, verifier=scripted)
    assert str(failed.value).startswith(said)


def test_a_sentence_of_several_lines_stands_on_one_in_the_failure():
    double = Verifier(ScriptedAligner({"It has\nsix lanes.": 0.3}))
    with pytest.raises(AssertionError) as failed:
        assert_faithful("It has\nsix lanes.", ["It has\ntwo lanes."], verifier=double)
    lines = str(failed.value).splitlines()
    assert lines[1:] == ["  0.30  It has six lanes.", "    nearest: It has two lanes."]


@pytest.mark.parametrize("answer", ["", "..."])
def test_an_answer_with_nothing_to_check_fails(scripted, answer):
    with pytest.raises(AssertionError, match="nothing"):
        assert_faithful(answer, PASSAGES, verifier=scripted)


def test_a_sentence_that_could_not_be_checked_fails(scripted):
    with pytest.raises(AssertionError, match="no_context"):
        assert_faithful("It opened in 1967.", [], verifier=scripted)


def test_the_failure_says_why_a_sentence_could_not_be_checked():
    verifier = Verifier()
    with pytest.raises(AssertionError, match="unsupported_language: .*'de'"):
        assert_faithful("Die Brücke wurde im Jahr 1967 eröffnet und hat zwei Spuren.", PASSAGES, verifier=verifier)


def test_a_name_in_place_of_a_verifier_is_refused_with_what_loads_it():
    with pytest.raises(WrongTypeError, match="Verifier"):
        assert_faithful("One.", PASSAGES, verifier="generic")


def test_a_threshold_outside_its_range_and_a_verifier_without_scores_are_refused(scripted):
    with pytest.raises(InputError):
        assert_faithful("It opened in 1967.", PASSAGES, at_least=80, verifier=scripted)
    bare = Verifier(scripted.aligner, config=MonitorConfig(schema="aligner.v1"))
    with pytest.raises(InputError):
        assert_faithful("It opened in 1967.", PASSAGES, verifier=bare)


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        (
            {"id": "a"},
            InputError,
            r"^records\[1\] must have .*passages, answer or sentences.*'id'\. Leave out",
        ),
        ({"response": ANSWER}, InputError, r"^records\[1\] .*'response'"),
        ({"passages": None}, WrongTypeError, "^passages must be"),
        (None, WrongTypeError, r"^records\[1\] must be a mapping .* found NoneType"),
        ({7: ""}, InputError, r"^records\[1\] .*found 'passages', 'answer', 7\."),
    ],
)
def test_a_record_that_cannot_be_used_is_named_in_its_turn(scripted, more, error, said):
    record = {"passages": PASSAGES, "answer": ANSWER}
    reports = scripted.check_many([record, None if more is None else record | more])
    assert len(next(reports).sentences) == 2
    with pytest.raises(error, match=said):
        next(reports)


def test_a_record_without_passages_is_told_what_it_needs(scripted):
    with pytest.raises(InputError, match=r"^records\[0\] must have .*passages.*found 'answer'"):
        list(scripted.check_many([{"answer": ANSWER}]))
