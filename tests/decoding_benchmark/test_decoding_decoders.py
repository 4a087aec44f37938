"""The decoders of a comparison are those that users call, and FOD's guarantee is checked on each answer."""

from dataclasses import replace

import pytest
from decoding import (
    ABSTAIN,
    BACKTRACK,
    CAD,
    FOD,
    FOD_BRANCH,
    GREEDY,
    RERANKINGS,
    DecodingLimits,
    UnverifiedSentenceError,
    branching_name,
    branching_over_thresholds,
    candidates_for,
    compared_decoders,
    require_verified,
    reranking,
    swept_decoders,
)
from doubles import PASSAGES, QUESTION

from fod import BestOfNGenerator, FODGenerator, RepairConfig, Thresholds
from syncheck.base.errors import InputError

LIMITS = DecodingLimits(max_new_tokens=24, backtrack_threshold=0.5, prune_threshold=0.4, best_of=3, seed=5)


@pytest.fixture(scope="module")
def monitor(llama, make_monitor):
    return make_monitor(llama)


@pytest.fixture(scope="module")
def prompt(monitor):
    return monitor.prompt(question=QUESTION, context=PASSAGES)


@pytest.fixture(scope="module")
def answers(monitor, prompt):
    return {name: decode(prompt, "p")[0] for name, decode in compared_decoders(monitor, LIMITS).items()}


@pytest.mark.slow
def test_each_decoder_answers_under_its_name(answers, monitor, prompt):
    assert list(answers) == [GREEDY, CAD, ABSTAIN, "Best of 3", BACKTRACK, FOD, FOD_BRANCH]
    assert all(name == found.decoder for name, found in answers.items())
    report = monitor.generate(prompt, do_sample=False, max_new_tokens=24)
    greedy = answers[GREEDY]
    assert (greedy.response, greedy.tokens) == (report.response, len(report.tokens)) and greedy.tokens > 0
    assert greedy.scores == tuple(s.score for s in report.sentences)
    assert greedy.sentence_ends == tuple(s.end for s in report.sentences)
    assert greedy.sampled_tokens == greedy.tokens and not greedy.backtracked
    assert answers["Best of 3"].sampled_tokens > answers["Best of 3"].tokens
    fell = any(score is not None and score < 0.5 for score in greedy.scores)
    assert answers[ABSTAIN].is_empty == fell == answers[BACKTRACK].backtracked == answers[FOD].backtracked


def test_fod_is_the_generator_with_these_settings(answers, monitor, prompt):
    generator = FODGenerator(monitor.model, monitor.tokenizer, monitor, backtrack_threshold=0.5, prune_threshold=0.4)
    out = generator.generate(prompt, seed=5, do_sample=False, max_new_tokens=24, return_dict_in_generate=True)
    assert (answers[FOD].response, answers[FOD].sampled_tokens) == (out.report.response, out.sampled_tokens)


@pytest.mark.slow
def test_one_sampling_gives_what_each_reranker_would(monitor, prompt):
    found = reranking(monitor, LIMITS, candidates=4)(prompt, "p")
    assert [each.decoder for each in found] == list(RERANKINGS)
    for each, by in zip(found, RERANKINGS.values(), strict=True):
        ranker = BestOfNGenerator(monitor.model, monitor.tokenizer, monitor, reward=by, samples=4)
        out = ranker.generate(prompt, seed=5, do_sample=False, max_new_tokens=24, return_dict_in_generate=True)
        assert (each.response, each.sampled_tokens) == (out.report.response, out.sampled_tokens)


@pytest.mark.parametrize(
    ("fod_tokens", "answer_tokens", "candidates"),
    [([100, 50], [50, 25], 2), ([101, 50], [50, 25], 3), ([10], [40], 1), ([0, 0], [4], 1), ([240], [40.0, 40.0], 6)],
)
def test_candidates_decode_at_least_fods_tokens(fod_tokens, answer_tokens, candidates):
    assert candidates_for(fod_tokens, answer_tokens) == candidates


def test_candidates_need_tokens_to_match():
    with pytest.raises(InputError, match="tokens"):
        candidates_for([10], [0, 0])


def test_a_sweep_has_fod_with_each_pair(monitor, prompt, answers):
    found = swept_decoders(monitor, LIMITS, pairs=[(1, 2), (2, 6)])
    assert list(found) == ["FOD K=1 S=2", "FOD K=2 S=6"]
    (same,) = found["FOD K=2 S=6"](prompt, "p")
    assert (same.response, same.scores) == (answers[FOD].response, answers[FOD].scores)


@pytest.mark.slow
def test_branching_at_several_thresholds_is_branching_at_each(monitor, prompt):
    found = branching_over_thresholds(monitor, LIMITS, alpha=0.5)(prompt, "p")
    thresholds = sorted(LIMITS.branch_thresholds, reverse=True)
    assert [each.decoder for each in found] == [branching_name(0.5, tau) for tau in thresholds]
    for each, tau in zip(found, thresholds, strict=True):
        config = RepairConfig(alpha=0.5, backtrack_threshold=tau)
        fod = FODGenerator(monitor.model, monitor.tokenizer, monitor, config=config)
        alone = fod.generate(prompt, max_new_tokens=24, return_dict_in_generate=True)
        own = "" if alone.report.stop == "abstained" else alone.report.response
        assert (each.response, each.sampled_tokens) == (own, alone.sampled_tokens)


def test_a_sentence_below_both_thresholds_is_an_error_that_names_the_prompt(monitor, prompt):
    report = monitor.score(prompt, " Scott ran far. He won 3 games.")
    first, second = report.sentences

    def scored(*scores, status="scored"):
        return replace(
            report,
            sentences=(replace(first, score=scores[0], status=status), replace(second, score=scores[1])),
        )

    thresholds = Thresholds(0.7, 0.6)
    require_verified(scored(0.6, 0.9), thresholds, prompt="p7")
    require_verified(scored(None, 0.9, status="not_checkable"), thresholds, prompt="p7")
    with pytest.raises(UnverifiedSentenceError, match="p7"):
        require_verified(scored(0.9, 0.59), thresholds, prompt="p7")
    with pytest.raises(UnverifiedSentenceError, match="None"):
        require_verified(scored(None, 0.9, status="failed"), thresholds, prompt="p7")
