"""What a sentence says is absent is looked for in the passages."""

import pytest

from syncheck import Verifier
from syncheck.aligners.absence import absence_in, probes
from syncheck.results.types import Evidence, Support


@pytest.mark.parametrize(
    ("sentence", "text", "wanted"),
    [
        ("The passages do not say when it opened.", "it opened", "time"),
        ("The price of a ticket is not stated in the passages.", "The price of a ticket", "amount"),
        ("The FAQ does not say whether there is a fee.", "there is a fee", "truth"),
        ("The report does not give a vitamin value.", "a vitamin value", "thing"),
        ("Nothing in the log says which host was backed up.", "host was backed up", "which"),
        ("I could not find how long the tour takes.", "the tour takes", "duration"),
        ("It is not mentioned who heads the department.", "heads the department", "person"),
        ("There is no information about where she was born.", "she was born", "place"),
        ("However, the text doesn\u2019t say if the hotel has a pool.", "the hotel has a pool", "truth"),
        ("Based on the passages, it is unclear why he left.", "he left", "reason"),
        ("There is no mention of a lift.", "a lift", "thing"),
        ("The documentation does not explain how to install it.", "install it", "manner"),
        ("Unable to answer based on given passages.", "did it open", "time"),
        ("There is not enough information to answer the question.", "did it open", "time"),
        ("Not stated.", "did it open", "time"),
        ("Nothing is said about a lift.", "a lift", "thing"),
        ("There is nothing about the founder in the passages.", "the founder", "person"),
        ("No mention is made of a lift.", "a lift", "thing"),
        ("The passages are silent on the price.", "the price", "amount"),
        ("A lift is nowhere mentioned.", "A lift", "thing"),
        ("Neither passage says when the mill opened.", "the mill opened", "time"),
        ("None of the provided passages mentions a lift.", "a lift", "thing"),
        ("Neither the FAQ nor the log states the price.", "the price", "amount"),
        ("No phone number is given in the passages.", "phone number", "amount"),
        ("No price is given for groups.", "price for groups", "amount"),
        ("No information is available about a lift.", "a lift", "thing"),
    ],
)
def test_what_is_said_to_be_absent(sentence, text, wanted):
    absence = absence_in(sentence, "When did it open?")
    assert (absence.text, absence.wanted) == (text, wanted)


@pytest.mark.parametrize(
    "sentence",
    [
        "The bridge opened in 1967.",
        "The drug is not available in Norway.",
        "The policy does not cover dental care.",
        "He did not say when.",
        "Nothing was left of the mill.",
        "There is nothing on the table.",
        "Nothing is for sale in May.",
        "Neither passage is open to cyclists.",
        "No towels are provided.",
        "No refund is given after 14 days.",
        "Nausea may occur, although this is not mentioned in the passages.",
    ],
)
def test_other_sentences_with_a_negation_call_nothing_absent(sentence):
    assert absence_in(sentence, "When did it open?") is None


def test_a_refusal_names_nothing_without_a_question_and_what_follows_but_is_apart():
    assert absence_in("Unable to answer based on given passages.", "") is None
    absence = absence_in("It has two lanes, but the passages do not say who built it.", "")
    assert (absence.text, absence.rest, absence.is_loose) == ("built it", "It has two lanes", False)
    assert absence_in("The passages do not give further details on the bridge.", "").is_loose


@pytest.mark.parametrize(
    ("sentence", "claims"),
    [
        ("The passages do not say when it opened.", ["It opened in 1967.", "It opened on Mondays."]),
        ("No information is given about the opening hours.", ["The opening hours is from 9."]),
        ("The passages do not say who built it.", ["The Avon built it.", "Ann Lee built it.", "Mondays built it."]),
        ("The number of lanes is not given.", ["The number of lanes is 1967.", "The number of lanes is two."]),
        ("The passages do not say whether it is closed.", ["It is closed."]),
        ("The passages do not say why it is closed.", []),
    ],
)
def test_each_answer_that_the_passages_may_have_is_tried(sentence, claims):
    chunks = [
        "The Avon bridge opened in 1967.",
        "Ann Lee drew its two lanes.",
        "It is shut on Mondays, and open from 9.",
    ]
    tried = probes(absence_in(sentence, ""), chunks)
    assert set(claims) <= set(tried) and bool(claims) == bool(tried)


class Reads:
    """Supports what it was told to, and distinguishes contradicted from not stated."""

    name = "reads"

    def __init__(self, *supported):
        self.supported = supported

    def align(self, passages, claims):
        scores = [0.98 if claim in self.supported else 0.02 for claim in claims]
        return [
            Support(s, Evidence(0, passages[0], s), log_odds=4.0 if s > 0.5 else -4.0, contradicted=0.01)
            for s in scores
        ]


PASSAGES = ["The Avon bridge opened in 1967. Ann Lee drew its two lanes."]


def checked(sentence, *supported, question="When did it open?"):
    (found,) = Verifier(Reads(*supported)).check(sentence, passages=PASSAGES, question=question).sentences
    return found


@pytest.mark.parametrize("sentence", ["The passages do not say when it opened.", "It is not stated when it opened."])
def test_it_is_true_unless_the_passages_tell(sentence):
    true, false = checked(sentence), checked(sentence, "It opened in 1967.")
    assert true.score > 0.9 and true.verdict == "supported"
    assert false.score < 0.1 and false.verdict == "contradicted" and false.evidence.score > 0.9
    assert true.remarks == false.remarks == ("says_not_stated",)


def test_a_refusal_passes_a_gate():
    refusal = "Unable to answer based on given passages."
    assert checked(refusal).score > 0.9 and 0.5 < checked(refusal, "Did it open in 1967.").score
    assert 0.5 < checked(refusal, "It open in 1967.").score < 0.7


def test_what_it_states_beside_counts_too():
    sentence = "It has six lanes, but the passages do not say who drew it."
    alone = checked("It has six lanes.")
    assert checked(sentence).score == pytest.approx(alone.score) and checked(sentence, "Ann Lee drew it.").score < 0.1
