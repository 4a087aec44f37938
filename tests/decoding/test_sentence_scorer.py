"""Several answers scored together: each sentence is held against the earlier ones of its own answer."""

import numpy as np
import pytest

from syncheck import MonitorConfig, RagPrompt, SegmenterConfig, load_aligner
from syncheck.results.types import SentenceSignals, SentenceSpan
from syncheck.scoring import SentenceScorer
from syncheck.testing import WordAligner

PROMPT = RagPrompt("Who?", ("Ann met Bob.",), "with", "without", (1, 2), (2,))
SCORER = SentenceScorer(PROMPT, config=MonitorConfig("syncheck.v3"), aggregator=None, aligner=WordAligner())


def sentence(text):
    ones = np.full(1, -1, np.float32)
    return SentenceSignals(text, SentenceSpan(0, 0, len(text), 0, 1), np.ones(1, np.int64), ones, ones, -ones, -ones)


def scores_of(texts, earlier=()):
    return SCORER.answers([[sentence(text) for text in texts]], earlier=[earlier])[0]


def earlier_of(score):
    names = ("align_score", "sentence_index", "earlier_support_mean", "earlier_support_min")
    return [score.features[name] for name in names]


def test_answers_are_held_apart_and_go_on_where_they_were():
    first, second = SCORER.answers(
        [[sentence("Ann met Bob."), sentence("Ann met Eve Fox.")], [sentence("Eve met Ann.")]], earlier=[[], []]
    )
    supports = [first[0].features["align_score"], first[1].features["align_score"], second[0].features["align_score"]]
    assert supports == [1.0, 0.5, pytest.approx(2 / 3)]
    assert earlier_of(first[0]) == [1.0, 0.0, None, None]
    assert earlier_of(first[1]) == [0.5, pytest.approx(np.log(2)), 1.0, 1.0]
    assert earlier_of(second[0])[1:] == [0.0, None, None]
    ((third,), nothing) = SCORER.answers([[sentence("Bob met Ann.")], []], earlier=[first, second])
    assert earlier_of(third) == [1.0, pytest.approx(np.log(3)), 0.75, 0.5]
    assert nothing == []
    assert scores_of(["Bob met Ann."], first) == [third]


def test_the_number_of_a_list_item_is_no_earlier_sentence():
    scores = scores_of(["1.", "Ann met Bob.", "2.", "Bob met Ann."])
    assert [score.features["sentence_index"] for score in scores] == pytest.approx([0, 0, np.log(2), np.log(2)])
    assert earlier_of(scores[3])[2:] == [1.0, 1.0]
    assert earlier_of(scores_of(["Bob met Ann."], scores[:3])[0]) == earlier_of(scores[3])


def test_the_number_of_a_list_item_inherits_from_the_sentence_before_it():
    scores = scores_of(["Ann met Eve Fox.", "2.", "3.", "Bob met Ann."])
    inherited = [score.features["inherited_support"] for score in scores]
    assert inherited == [None, 0.5, 0.5, None]
    assert [score.features["previous_support"] for score in scores] == [None, 0.5, 0.5, 0.5]
    (later,) = scores_of(["4."], scores)
    assert (later.features["inherited_support"], later.features["previous_pair_overlap"]) == (1.0, 1.0)


def test_the_passages_are_cut_with_the_same_abbreviations_as_an_answer():
    prompt = RagPrompt("Who?", ("Dr. Lee met Bob.",), "with", "without", (1, 2), (2,))
    quoted = []
    for abbreviations in ((), ("Dr.",)):
        scorer = SentenceScorer(
            prompt,
            config=MonitorConfig("syncheck.v5", segmenter=SegmenterConfig(abbreviations=abbreviations)),
            aggregator=None,
            aligner=load_aligner("bundled"),
        )
        quoted += [score.evidence.text for score in scorer.answers([[sentence("Lee met Bob.")]], earlier=[()])[0]]
    assert quoted == ["Lee met Bob.", "Dr. Lee met Bob."]


def test_no_answers():
    assert SCORER.answers([[], []], earlier=[[], []]) == [[], []]
    assert scores_of([]) == []
