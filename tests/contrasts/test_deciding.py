"""Words that decide, found by leaving one out."""

from dataclasses import replace

import pytest

from syncheck import Verifier
from syncheck.contrasts.contrast import deciding_words
from syncheck.results.types import Contrast, Evidence, Support

LAKE = "Guests may swim in the lake only in summer."
CLAIM = "Guests may swim in the lake in winter."


class Reader:
    """Finds a contradiction where the claim has one word and the passages another."""

    name = "reads two words"

    def __init__(self, ours="winter", theirs="summer", without=0.1):
        self.ours, self.theirs, self.without, self.asked = ours, theirs, without, 0

    def align(self, passages, claims):
        self.asked += len(claims)
        held = self.theirs in " ".join(passages)
        against = [0.9 if held and self.ours in claim else self.without for claim in claims]
        return [Support(0.05, Evidence(0, passages[0], 0.05), log_odds=-3.0, contradicted=one) for one in against]


def test_the_words_without_which_nothing_is_contradicted_stand_side_by_side():
    words = deciding_words(CLAIM, Evidence(0, LAKE, 0.05), [LAKE], Reader().align)
    assert words == Contrast("reading", "winter", "summer", 0)


def test_evidence_that_does_not_contradict_by_itself_has_no_word():
    words = deciding_words(CLAIM, Evidence(0, "It is a lake.", 0.05), ["It is a lake.", LAKE], Reader().align)
    assert words == Contrast("reading", "winter", "", 0)


def test_nothing_is_said_where_no_single_word_decides():
    assert deciding_words(CLAIM, Evidence(0, LAKE, 0.05), [LAKE], Reader(ours="").align) is None


def test_a_word_without_which_much_of_the_contradiction_stays_does_not_decide():
    assert deciding_words(CLAIM, Evidence(0, LAKE, 0.05), [LAKE], Reader(without=0.4).align) is None


def test_a_word_is_not_shown_beside_itself():
    reader = Reader(ours="summer")
    words = deciding_words("Nobody may swim there in summer.", Evidence(0, LAKE, 0.05), [LAKE], reader.align)
    assert words == Contrast("reading", "summer", "", 0)


@pytest.mark.parametrize("text", [CLAIM, "Guests may swim in the lake in summer."])
def test_a_report_is_explained_on_demand_alone(text):
    verifier = Verifier(reader := Reader())
    report = verifier.check(text, question="When may guests swim?", passages=[LAKE])
    assert reader.asked == 1 and report.sentences[0].contrasts == ()
    (sentence,) = verifier.explain(report).sentences
    expected = (Contrast("reading", "winter", "summer", 0),) if text == CLAIM else ()
    assert sentence.contrasts == expected
    assert (reader.asked > 1) == bool(expected)


def test_the_mark_of_a_citation_is_not_a_word_that_decides():
    verifier = Verifier(Reader(ours="[1]"))
    report = verifier.check("Guests may swim in the lake [1].", question="When?", passages=[LAKE])
    contradicted = replace(report.sentences[0], verdict="contradicted")
    (sentence,) = verifier.explain(replace(report, sentences=(contradicted,))).sentences
    assert sentence.contrasts == ()
