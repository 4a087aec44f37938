"""Abstention at another decoder's coverage."""

from dataclasses import replace

import pytest
from decoding import ABSTAIN_MATCHED, CAD_PASSING, JudgedProposition, Verdict, passing, withheld, withheld_below
from judged import judged

from syncheck.base.errors import InputError


def _scored(prompt, *scores, text=None):
    cut = tuple((i, i) for i in range(1, len(scores) + 1))
    found = judged(prompt, cut, decoder="Greedy", tokens=7, sampled=8)
    response = found.answer.response if text is None else text
    return replace(found, answer=replace(found.answer, scores=scores, response=response))


ANSWERS = [
    _scored("a", 0.9, 0.4),
    _scored("b", 0.8),
    _scored("c", None, text="...."),
    _scored("d", 0.4, 0.6, 0.7),
    _scored("e", 0.1),
    _scored("f", None),
]


@pytest.mark.parametrize(
    ("sentences", "given"),
    [(0, ""), (1, "c"), (2, "bc"), (3, "abcd"), (7, "abcd"), (8, "abcde"), (9, "abcdef"), (99, "abcdef")],
)
def test_the_surest_answers_are_given_until_they_have_the_sentences(sentences, given):
    found = withheld(ANSWERS, sentences=sentences)
    assert [each.prompt for each in found] == list("abcdef")
    assert "".join(each.prompt for each in found if each.answer.response) == given
    assert {each.answer.decoder for each in found} == {ABSTAIN_MATCHED}


def test_an_answer_that_is_given_is_whole_and_one_that_is_not_has_cost_its_tokens():
    _, given, _, held, *_ = withheld(ANSWERS, sentences=2)
    assert given == replace(ANSWERS[1], answer=replace(ANSWERS[1].answer, decoder=ABSTAIN_MATCHED))
    assert (held.answer.response, held.answer.scores, held.answer.tokens, held.answer.sampled_tokens) == ("", (), 0, 8)
    assert (held.faithfulness, held.informativeness, held.verdict.cut) == (None, 0, ())


def test_an_answer_with_a_sentence_below_the_threshold_or_unchecked_is_held_back():
    found = withheld_below(ANSWERS, 0.4, name="n")
    assert "".join(each.prompt for each in found if each.answer.response) == "abcd"


def test_sentences_below_the_threshold_are_dropped_with_their_propositions():
    verdict = Verdict(
        tuple(JudgedProposition(text, support) for text, support in (("p", 0.9), ("q", 0.1), ("r", 0.9))),
        2,
        ((1, 1), (2, 1), (3, 2)),
    )
    whole = replace(judged("a", [(1, 1), (2, 1), (3, 2)], tokens=12), verdict=verdict)
    whole = replace(whole, answer=replace(whole.answer, scores=(0.9, 0.2, 0.7)))
    (kept,) = passing([whole], 0.7)
    assert (kept.answer.decoder, kept.answer.response, kept.answer.scores) == (CAD_PASSING, "A b. A b.", (0.9, 0.7))
    assert kept.answer.sentence_ends == (4, 9) and kept.answer.tokens == 8
    assert [p.text for p in kept.verdict.propositions] == ["p", "r"]
    assert (kept.verdict.faithful, kept.verdict.cut) == (2, ((1, 1), (2, 2)))
    (none,) = passing([whole], 0.95)
    assert none.answer.is_empty and none.informativeness == 0 and none.faithfulness is None


def test_fewer_than_none_is_refused():
    with pytest.raises(InputError, match="-1"):
        withheld(ANSWERS, sentences=-1)
