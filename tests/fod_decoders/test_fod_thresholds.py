"""The threshold that a calibration guarantees, taken by the decoders that release sentences."""

import math
from dataclasses import dataclass, replace

import pytest
from doubles import wavy
from test_fod_generator import grammar

from fod import AbstainGenerator, BacktrackGenerator, FODConfig, FODGenerator, RepairConfig, Thresholds
from syncheck import Monitor, MonitorConfig, RiskControlledThreshold
from syncheck.base.errors import InputError, NotReadyError
from syncheck.testing import FormulaAggregator


def guarantee(threshold):
    """What 100 released sentences, one of them unfaithful, support."""
    return RiskControlledThreshold(threshold, 0.05, 0.9, sentences=200, released=100, unfaithful=1, bound=0.0383)


@dataclass(frozen=True)
class PromisingAggregator(FormulaAggregator):
    calibrated_threshold: RiskControlledThreshold | None = None

    def at_prior(self, scores):
        return scores


@pytest.fixture
def guaranteeing(llama, make_monitor):
    """Build a monitor with tau_1 = 0.7, tau_2 = 0.85 and a calibrated threshold, None for none."""

    def make(threshold):
        monitor = make_monitor(llama, backtrack_threshold=0.7, prune_threshold=0.85)
        calibrated = None if threshold is None else guarantee(threshold)
        monitor.aggregator = PromisingAggregator(monitor.schema, wavy, calibrated_threshold=calibrated)
        return monitor

    return make


def models(monitor):
    return monitor.model, monitor.tokenizer, monitor


def run(generator, prompt, **options):
    options = {"max_new_tokens": 60, "logits_processor": grammar(generator.monitor, prompt)} | options
    return generator.generate(prompt, return_dict_in_generate=True, **options)


class TestChoice:
    @pytest.mark.parametrize(
        ("guaranteed", "backtrack", "prune", "expected"),
        [
            (0.8, "calibrated", None, (0.8, 0.85)),  # the monitor's own tau_2 is above the guarantee
            (0.9, "calibrated", None, (0.9, 0.9)),  # and here below it
            (0.8, None, "calibrated", (0.8, 0.8)),
            (0.6, None, "calibrated", (0.7, 0.6)),
            (0.6, "calibrated", "calibrated", (0.6, 0.6)),
            (0.6, "calibrated", 0.75, (0.6, 0.75)),
            (0.6, 0.6, "calibrated", (0.6, 0.6)),  # equal is enough
        ],
    )
    def test_of_fod(self, guaranteeing, guaranteed, backtrack, prune, expected):
        fod = FODGenerator(*models(guaranteeing(guaranteed)), backtrack_threshold=backtrack, prune_threshold=prune)
        assert fod.thresholds == Thresholds(*expected, guarantee(guaranteed))

    def test_a_keyword_overrides_the_config(self, guaranteeing):
        config = FODConfig(backtrack_threshold=0.3, prune_threshold=0.4, beam_size=3, until="all")
        given = {"prune_threshold": "calibrated", "samples_per_step": 4}
        fod = FODGenerator(*models(guaranteeing(0.2)), config=config, **given)
        assert fod.config == replace(config, **given)
        assert fod.thresholds == Thresholds(0.3, 0.2, guarantee(0.2))

    def test_a_keyword_names_the_default_config(self, guaranteeing):
        given = models(guaranteeing(0.2))
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
    def test_what_contradicts_the_config_is_refused(self, guaranteeing, options, word):
        with pytest.raises(InputError, match=word):
            FODGenerator(*models(guaranteeing(0.2)), **options)

    def test_of_decoders_with_one(self, guaranteeing):
        monitor = guaranteeing(0.625)
        expected = Thresholds(0.625, None, guarantee(0.625))
        backtrack = BacktrackGenerator(*models(monitor), backtrack_threshold="calibrated")
        assert backtrack.thresholds == expected
        assert AbstainGenerator(*models(monitor), threshold="calibrated").thresholds == expected

    def test_numbers_make_no_guarantee(self, guaranteeing):
        monitor = guaranteeing(0.625)
        assert FODGenerator(*models(monitor)).thresholds == Thresholds(0.7, 0.85, None)
        assert BacktrackGenerator(*models(monitor)).thresholds == Thresholds(0.7, None, None)
        assert AbstainGenerator(*models(monitor), threshold=0.25).thresholds == Thresholds(0.25, None, None)


class TestRelease:
    @pytest.mark.slow
    def test_a_sentence_at_the_threshold_is_released_and_one_below_is_not(self, guaranteeing, llama):
        monitor = guaranteeing(None)
        prompt = monitor.prompt(question="Who is Angus Scott?", context="Angus Scott is a farmer.")
        greedy = monitor.generate(prompt, max_new_tokens=60, do_sample=False, logits_processor=grammar(monitor, prompt))
        # the first sentence, and the guarantee at its very score; the rest of the answer at 0 or 1
        first, *others = [s.score for s in greedy.sentences]
        reached = next((i for i, score in enumerate(others, 1) if score < first), len(others) + 1)
        at = run(BacktrackGenerator(*models(guaranteeing(first)), backtrack_threshold="calibrated"), prompt)
        assert [s.score for s in at.report.sentences] == [first, *others][:reached]
        assert at.thresholds == Thresholds(first, None, guarantee(first))
        above = math.nextafter(first, 1.0)
        out = run(BacktrackGenerator(*models(guaranteeing(above)), backtrack_threshold="calibrated"), prompt)
        assert out.report.sentences == () and [s.score for s in out.dropped] == [first]
        lowest = min(first, *others)
        given = run(AbstainGenerator(*models(guaranteeing(lowest)), threshold="calibrated"), prompt)
        assert given.report.response == greedy.response and given.thresholds.backtrack == lowest
        refused = run(
            AbstainGenerator(*models(guaranteeing(math.nextafter(lowest, 1.0))), threshold="calibrated"), prompt
        )
        assert refused.report.stop == "abstained"

    @pytest.mark.slow
    @pytest.mark.parametrize("guaranteed", [0.75, 0.9])
    def test_every_sentence_of_a_search_reaches_it(self, guaranteeing, guaranteed):
        monitor = guaranteeing(guaranteed)
        monitor.config = replace(monitor.config, backtrack_threshold=0.0, prune_threshold=0.0)
        prompt = monitor.prompt(question="Who is Angus Scott?", context="Angus Scott is a farmer.")
        fod = FODGenerator(*models(monitor), prune_threshold="calibrated", samples_per_step=8)
        outs = [run(fod, prompt, seed=seed) for seed in range(3)]
        scores = [s.score for out in outs for s in out.report.sentences]
        assert scores and min(scores) >= guaranteed
        assert any(out.search.backtracked for out in outs)


class TestErrors:
    @pytest.mark.parametrize("name", ["fod", "backtrack", "abstain"])
    def test_a_monitor_without_a_guarantee(self, guaranteeing, name):
        monitor = guaranteeing(None)
        make = {
            "fod": lambda: FODGenerator(*models(monitor), prune_threshold="calibrated"),
            "backtrack": lambda: BacktrackGenerator(*models(monitor), backtrack_threshold="calibrated"),
            "abstain": lambda: AbstainGenerator(*models(monitor), threshold="calibrated"),
        }
        with pytest.raises(NotReadyError, match="--risk"):
            make[name]()

    def test_a_monitor_without_an_aggregator(self, llama):
        bare = Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))
        with pytest.raises(NotReadyError, match="aggregator"):
            AbstainGenerator(*models(bare), threshold="calibrated")

    def test_a_number_below_the_guarantee(self, guaranteeing):
        monitor = guaranteeing(0.8)
        with pytest.raises(InputError, match="prune_threshold=0.79"):
            FODGenerator(*models(monitor), backtrack_threshold="calibrated", prune_threshold=0.79)
        with pytest.raises(InputError, match="backtrack_threshold=0.5"):
            FODGenerator(*models(monitor), backtrack_threshold=0.5, prune_threshold="calibrated")

    def test_annotating_would_break_it(self, guaranteeing):
        config = FODConfig(backtrack_threshold="calibrated", on_exhausted="annotate")
        with pytest.raises(InputError, match="annotate"):
            FODGenerator(*models(guaranteeing(0.8)), config=config)

    def test_another_word(self, guaranteeing):
        with pytest.raises(InputError, match="'release'"):
            AbstainGenerator(*models(guaranteeing(0.8)), threshold="release")
        with pytest.raises(InputError, match="prune_threshold"):
            FODGenerator(*models(guaranteeing(0.8)), prune_threshold="high")
