"""The thresholds of decoders that release sentences: which apply, and what reaches them."""

import math
from dataclasses import replace

import pytest
from doubles import FormulaAggregator, wavy
from test_fod_generator import grammar

from fod import AbstainGenerator, BacktrackGenerator, FODConfig, FODGenerator, RepairConfig, Thresholds
from syncheck.base.errors import InputError, WrongTypeError


@pytest.fixture
def monitor(llama, make_monitor):
    """A monitor with tau_1 = 0.7 and tau_2 = 0.85."""
    monitor = make_monitor(llama, backtrack_threshold=0.7, prune_threshold=0.85)
    monitor.aggregator = FormulaAggregator(monitor.schema, wavy)
    return monitor


def models(monitor):
    return monitor.model, monitor.tokenizer, monitor


def run(generator, prompt, **options):
    options = {"max_new_tokens": 60, "logits_processor": grammar(generator.monitor, prompt)} | options
    return generator.generate(prompt, return_dict_in_generate=True, **options)


class TestChoice:
    @pytest.mark.parametrize(
        ("backtrack", "prune", "search", "repair"),
        [
            (None, None, (0.7, 0.85), (0.7, 0.85)),
            (0.9, None, (0.9, 0.85), (0.9, 0.9)),
            (0.9, 0.6, (0.9, 0.6), (0.9, 0.6)),
            (None, 0.0, (0.7, 0.0), (0.7, 0.0)),
        ],
    )
    def test_of_fod(self, monitor, backtrack, prune, search, repair):
        for propose, expected in (("sample", search), ("branch", repair)):
            asked = {"propose": propose, "backtrack_threshold": backtrack, "prune_threshold": prune}
            assert FODGenerator(*models(monitor), **asked).thresholds == Thresholds(*expected)

    def test_a_keyword_overrides_the_config(self, monitor):
        config = FODConfig(backtrack_threshold=0.3, prune_threshold=0.4, beam_size=3, until="all")
        given = {"prune_threshold": 0.2, "samples_per_step": 4}
        fod = FODGenerator(*models(monitor), config=config, **given)
        assert fod.config == replace(config, **given)
        assert fod.thresholds == Thresholds(0.3, 0.2)

    def test_a_keyword_names_the_default_config(self, monitor):
        given = models(monitor)
        assert FODGenerator(*given).config == FODGenerator(*given, propose="sample").config == FODConfig()
        repairing = FODGenerator(*given, propose="branch", backtrack_threshold=0.3)
        assert repairing.config == RepairConfig(backtrack_threshold=0.3)

    @pytest.mark.parametrize(
        ("options", "word"),
        [
            ({"propose": "beam"}, "propose"),
            ({"propose": "branch", "config": FODConfig()}, "FODConfig"),
            ({"propose": "sample", "config": RepairConfig()}, "RepairConfig"),
            ({"propose": "branch", "beam_size": 2}, "beam_size"),
            ({"config": RepairConfig(), "samples_per_step": 2}, "samples_per_step"),
        ],
    )
    def test_what_contradicts_the_config_is_refused(self, monitor, options, word):
        with pytest.raises(InputError, match=word):
            FODGenerator(*models(monitor), **options)

    def test_of_decoders_with_one(self, monitor):
        assert BacktrackGenerator(*models(monitor)).thresholds == Thresholds(0.7, None)
        assert BacktrackGenerator(*models(monitor), backtrack_threshold=0.2).thresholds == Thresholds(0.2, None)
        assert AbstainGenerator(*models(monitor)).thresholds == Thresholds(0.7, None)
        assert AbstainGenerator(*models(monitor), threshold=0.25).thresholds == Thresholds(0.25, None)

    def test_what_is_no_threshold_is_refused(self, monitor):
        with pytest.raises(WrongTypeError, match="threshold must be a number in .* found 'release'"):
            AbstainGenerator(*models(monitor), threshold="release")
        with pytest.raises(InputError, match="backtrack_threshold must be in"):
            BacktrackGenerator(*models(monitor), backtrack_threshold=1.5)
        with pytest.raises(WrongTypeError, match="prune_threshold"):
            FODGenerator(*models(monitor), prune_threshold="high")


class TestRelease:
    @pytest.mark.slow
    def test_a_sentence_at_the_threshold_is_released_and_one_below_is_not(self, monitor):
        prompt = monitor.prompt(question="Who is Angus Scott?", context="Angus Scott is a farmer.")
        greedy = monitor.generate(prompt, max_new_tokens=60, do_sample=False, logits_processor=grammar(monitor, prompt))
        # the first sentence, and the threshold at its very score; the rest of the answer at 0 or 1
        first, *others = [s.score for s in greedy.sentences]
        reached = next((i for i, score in enumerate(others, 1) if score < first), len(others) + 1)
        at = run(BacktrackGenerator(*models(monitor), backtrack_threshold=first), prompt)
        assert [s.score for s in at.report.sentences] == [first, *others][:reached]
        assert at.thresholds == Thresholds(first, None)
        above = math.nextafter(first, 1.0)
        out = run(BacktrackGenerator(*models(monitor), backtrack_threshold=above), prompt)
        assert out.report.sentences == () and [s.score for s in out.dropped] == [first]
        lowest = min(first, *others)
        given = run(AbstainGenerator(*models(monitor), threshold=lowest), prompt)
        assert given.report.response == greedy.response and given.thresholds.backtrack == lowest
        refused = run(AbstainGenerator(*models(monitor), threshold=math.nextafter(lowest, 1.0)), prompt)
        assert refused.report.stop == "abstained"

    @pytest.mark.slow
    @pytest.mark.parametrize("least", [0.75, 0.9])
    def test_every_sentence_of_a_search_reaches_it(self, monitor, least):
        prompt = monitor.prompt(question="Who is Angus Scott?", context="Angus Scott is a farmer.")
        thresholds = {"backtrack_threshold": least, "prune_threshold": least}
        fod = FODGenerator(*models(monitor), **thresholds, samples_per_step=8)
        outs = [run(fod, prompt, seed=seed) for seed in range(3)]
        scores = [s.score for out in outs for s in out.report.sentences]
        assert scores and min(scores) >= least
        assert any(out.search.backtracked for out in outs)
