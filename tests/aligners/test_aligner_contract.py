"""What every aligner keeps to, whatever its network says."""

from __future__ import annotations

from math import isfinite

import pytest

from syncheck.base.errors import InputError, WrongTypeError

PASSAGES = [
    "The bridge was built in 1903. It spans the river Avon.",
    "Tom Smith designed it. He died in 1911, aged 70.",
]
CLAIMS = ["The bridge was built in 1903.", "Tom Smith was a painter.", "It spans the Thames. He died young."]


def test_one_support_for_each_claim_in_range(aligner):
    supports = aligner.align(PASSAGES, CLAIMS)
    assert len(supports) == 3
    assert all(0.0 <= s.score <= 1.0 for s in supports)
    assert all(s.log_odds is None or isfinite(s.log_odds) for s in supports)
    assert all(s.contradicted is None or 0.0 <= s.contradicted <= 1.0 for s in supports)


def test_no_claims_give_an_empty_list(aligner):
    assert aligner.align(PASSAGES, []) == []


@pytest.mark.parametrize("passages", [[], [""], ["  \n", ""]])
def test_context_without_text_supports_nothing(aligner, passages):
    supports = aligner.align(passages, CLAIMS[:2])
    assert [(s.score, s.evidence) for s in supports] == [(0.0, None), (0.0, None)]


@pytest.mark.parametrize("claim", ["", " \n"])
def test_blank_claim_is_refused(aligner, claim):
    with pytest.raises(InputError, match="blank"):
        aligner.align(PASSAGES, ["Fine.", claim])


@pytest.mark.parametrize("one", [(p for p in ["Fine."]), "Fine.", {"Fine."}])
def test_what_is_no_list_of_strings_is_refused(aligner, one):
    with pytest.raises(WrongTypeError, match="claims"):
        aligner.align(PASSAGES, one)
    with pytest.raises(WrongTypeError, match="passages"):
        aligner.align(one, CLAIMS)


def test_half_a_character_is_refused(aligner):
    for asked in (["The bridge \ud800."], CLAIMS), (PASSAGES, ["The bridge \ud800."]):
        with pytest.raises(InputError, match="surrogate"):
            aligner.align(*asked)


LONG = (
    [" ".join(f"a{i % 10} is {i % 7}" for i in range(110))],
    ["a7 is 3.", " ".join(f"b{i % 9} is {i % 5}" for i in range(30)), "a1 is 1."],
)
"""A context that few windows hold, least of all beside the second claim."""


@pytest.mark.parametrize(
    ("passages", "claims"), [(PASSAGES, CLAIMS), pytest.param(*LONG, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_batched_is_single(aligner, passages, claims):
    batched = aligner.align(passages, claims)
    single = [aligner.align(passages, [claim])[0] for claim in claims]
    assert [s.score for s in batched] == pytest.approx([s.score for s in single], abs=1e-5)
    assert [s.evidence.text for s in batched] == [s.evidence.text for s in single]


def test_permuted_claims_give_permuted_supports(aligner):
    forward = aligner.align(PASSAGES, CLAIMS)
    backward = aligner.align(PASSAGES, CLAIMS[::-1])
    assert [s.score for s in backward[::-1]] == pytest.approx([s.score for s in forward], abs=1e-5)


def test_repeated_calls_agree_exactly(aligner):
    assert aligner.align(PASSAGES, CLAIMS) == aligner.align(PASSAGES, CLAIMS)


def test_evidence_is_text_of_the_passage_it_names(aligner):
    for support in aligner.align(PASSAGES, CLAIMS):
        first_words = support.evidence.text.split()[:3]
        assert " ".join(first_words) in PASSAGES[support.evidence.passage]


@pytest.mark.slow
def test_claim_far_longer_than_the_window_is_scored(aligner):
    claim = "The bridge was built in 1903 " * 120
    (support,) = aligner.align(PASSAGES, [claim])
    assert 0.0 <= support.score <= 1.0


@pytest.mark.slow
def test_unbroken_text_is_scored(aligner):
    (support,) = aligner.align(["x" * 900], ["y" * 700])
    assert 0.0 <= support.score <= 1.0


@pytest.mark.parametrize("text", ["東京は日本の首都です。人口は多い。", "«Ωραία» — ½ ﬁ 🌉!", "\u0000\u0001 a"])
def test_any_script_is_scored(aligner, text):
    (support,) = aligner.align([text], [text])
    assert 0.0 <= support.score <= 1.0
