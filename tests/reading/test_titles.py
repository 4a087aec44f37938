"""Titles of passages, which are read with each of their chunks and never quoted."""

import pytest

from syncheck import Passage, Verifier
from syncheck.aligners import load_aligner
from syncheck.aligners.classifier import ClassifierAligner
from syncheck.reading import Context
from syncheck.reading.evidence import MAX_TITLE_WORDS, EvidenceIndex, split_passages
from syncheck.results.types import Query

TEXT = "It costs 9 euros a month. The Pro plan has 20 GB.\n| Part | Weight |\n|---|---|\n| Lid | 2 kg |"
TITLED = Passage(TEXT, title="Pro plan", id="p1")


def _read(passage):
    return [chunk.read for chunk in split_passages([passage])]


def test_each_chunk_without_the_title_is_read_after_it():
    assert _read(TITLED) == [
        "Pro plan: It costs 9 euros a month.",
        "The Pro plan has 20 GB.",
        "Pro plan: Lid (Part) has Weight 2 kg.",
    ]
    plain, titled = split_passages([TEXT]), split_passages([TITLED])
    assert [(one.text, one.place) for one in titled] == [(one.text, one.place) for one in plain]


@pytest.mark.parametrize("title", [None, "", " ", "7", "--", "x " * (MAX_TITLE_WORDS + 1)])
def test_without_a_title_to_read_chunks_are_read_as_they_stand(title):
    passage = Passage(TEXT, title=title)
    assert split_passages([passage]) == split_passages([TEXT])
    assert EvidenceIndex([passage]).lexicon == EvidenceIndex([TEXT]).lexicon


@pytest.mark.parametrize("first", ["Pro plan", "# Pro Plan", "\n**Pro plan**:"])
def test_a_title_that_is_the_first_line_is_not_repeated(first):
    text = f"{first}\nIt costs 9 euros a month."
    assert split_passages([Passage(text, title="Pro plan")]) == split_passages([text])


def test_a_title_inside_other_words_is_read():
    assert _read(Passage("Propose a plan. Pro planning is over.", title="Pro plan")) == [
        "Pro plan: Propose a plan.",
        "Pro plan: Pro planning is over.",
    ]


def test_an_answer_is_read_with_its_question_alone():
    assert _read(Passage("And is it free of any charge? No. It is not.", title="Plan")) == [
        "Plan: And is it free of any charge?",
        "No.",
        "Plan: It is not.",
    ]


def test_words_of_a_title_are_found_and_never_quoted():
    index = EvidenceIndex(["It opened in 1967.", Passage("It opened in 1932.", title="Avon  bridge:")])
    (best,) = index.best("The Avon bridge opened.", 1)
    assert index.quoted(best) == "It opened in 1932." and index.coverage("Avon bridge") == 1
    context = Context(Query("When?", index.passages))
    assert {"avon", "bridge"} <= context.lexicon.words and ("avon", "bridge") in context.lexicon.bigrams
    assert context.wordings.texts == ("It opened in 1967.", "Avon bridge: It opened in 1932.")


def test_a_classifier_reads_a_title_once_before_chunks_that_follow_each_other():
    class Scorer:
        window = 200
        premises = []

        def length(self, premise, claim):
            return len(premise) + len(claim)

        def score(self, pairs):
            self.premises += [premise for premise, _ in pairs]
            return [0.5] * len(pairs)

    passages = ["It rains.", Passage("It costs 9. It is new.", title="Pro plan")]
    (support,) = ClassifierAligner(Scorer()).align(passages, ["The Pro plan costs 9."])
    assert Scorer.premises == ["It rains. Pro plan: It costs 9. It is new."]
    assert (support.evidence.passage, support.evidence.text) == (1, "It costs 9.")
    Scorer.premises.clear()
    ClassifierAligner(Scorer()).align([Passage("It costs 9 euros. " * 20, title="Pro plan")], ["It costs 9."])
    assert len(Scorer.premises) > 1 and all(one.startswith("Pro plan: It") for one in Scorer.premises)
    assert all(len(one) < Scorer.window for one in Scorer.premises)


def test_claims_about_what_a_title_names_are_told_apart():
    verifier, claims = (
        Verifier(load_aligner("bundled")),
        ["The Avon bridge opened in 1967.", "The mill opened in 1967."],
    )
    plain, titled = (
        verifier.check(passages=[Passage("It opened in 1967.", title=title)], sentences=claims).sentences
        for title in (None, "Avon bridge")
    )
    assert titled[0].score > titled[1].score and titled[0].score - titled[1].score > plain[0].score - plain[1].score
    assert titled[0].features["content_overlap"] == 1 > plain[0].features["content_overlap"]
    assert {one.evidence.text for one in titled} == {"It opened in 1967."}


def test_titles_tell_passages_with_the_same_words_apart():
    passages = [Passage("It costs 9 euros.", title="Pro plan"), Passage("It costs 5 euros.", title="Basic plan")]
    claims = ["The Pro plan costs 9 euros.", "The Basic plan costs 5 euros."]
    report = Verifier(load_aligner("bundled")).check(passages=passages, sentences=claims)
    assert [(one.evidence.passage, one.evidence.text) for one in report.sentences] == [
        (0, "It costs 9 euros."),
        (1, "It costs 5 euros."),
    ]
