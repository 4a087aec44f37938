"""Abstention at another decoder's coverage."""

from dataclasses import replace

import pytest
from decoding import ABSTAIN_MATCHED, withheld
from judged import judged

from syncheck.errors import InputError


def _scored(prompt, *scores):
    cut = tuple((i, i) for i in range(1, len(scores) + 1))
    found = judged(prompt, cut, decoder="Greedy", tokens=7, sampled=8)
    return replace(found, answer=replace(found.answer, scores=scores))


ANSWERS = [
    _scored("a", 0.9, 0.4),
    _scored("b", 0.8),
    _scored("c", None),
    _scored("d", 0.4, 0.6, 0.7),
    _scored("e", 0.1),
]


@pytest.mark.parametrize(
    ("sentences", "given"),
    [(0, ""), (1, "c"), (2, "bc"), (3, "abcd"), (7, "abcd"), (8, "abcde"), (99, "abcde")],
)
def test_the_surest_answers_are_given_until_they_have_the_sentences(sentences, given):
    found = withheld(ANSWERS, sentences=sentences)
    assert [each.prompt for each in found] == list("abcde")
    assert "".join(each.prompt for each in found if not each.answer.is_empty) == given
    assert {each.answer.decoder for each in found} == {ABSTAIN_MATCHED}


def test_an_answer_that_is_given_is_whole_and_one_that_is_not_has_cost_its_tokens():
    _, given, _, held, _ = withheld(ANSWERS, sentences=2)
    assert given == replace(ANSWERS[1], answer=replace(ANSWERS[1].answer, decoder=ABSTAIN_MATCHED))
    assert (held.answer.response, held.answer.scores, held.answer.tokens, held.answer.sampled_tokens) == ("", (), 0, 8)
    assert (held.faithfulness, held.informativeness, held.verdict.cut) == (None, 0, ())


def test_fewer_than_none_is_refused():
    with pytest.raises(InputError, match="-1"):
        withheld(ANSWERS, sentences=-1)
