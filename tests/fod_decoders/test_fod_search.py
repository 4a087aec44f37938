"""Algorithm 1 line by line, on sentences that are only names with scores."""

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fod import Beam, Candidate, FODConfig, Thresholds, search
from syncheck import MonitorConfig, SentenceScore
from syncheck.base.errors import InputError


def sentence(text, score, status=None):
    status = status or ("not_checkable" if score is None else "scored")
    return SentenceScore(text, 0, 0, 0, 0, score, status, {})


@dataclass
class Scripted:
    """Proposes what a table says: text so far -> its continuations, each (text, score) or (text, score, stop)."""

    greedy: list
    samples: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)

    def __call__(self, beams, *, samples, waiting=()):
        self.asked.append((tuple(text(beam) for beam in beams), samples))
        round_ = len(self.asked)
        if samples is None:
            rows = [[self.greedy[len(beams[0].sentences)]]]
        else:
            rows = [self.samples.get(text(beam), []) for beam in beams]
        flat = [(parent, row) for parent, row_set in enumerate(rows) for row in row_set]
        return [candidate(parent, *row, handle=(round_, i)) for i, (parent, row) in enumerate(flat)]


def candidate(parent, name, score, stop=None, handle=(0, 0)):
    sentences = () if name is None else (sentence(name, score),)
    return Candidate(parent, sentences, (ord(name[0]),) if name else (), stop, handle)


def text(beam):
    return "".join(s.text for s in beam.sentences)


def config(*, tau_1=0.5, tau_2=0.6, **options):
    """What a search is given beside what proposes."""
    return FODConfig(**{"beam_size": 2, "samples_per_step": 4, **options}), Thresholds(tau_1, tau_2)


def run(greedy, samples=None, **options):
    propose = Scripted(greedy, samples or {})
    return search(propose, *config(**options)), propose


def test_a_sentence_that_claims_nothing_does_not_outrank_one_that_passes():
    samples = {"a": [("?", None), ("c", 0.7), ("d", 0.65)], "ac": [("e", 0.9, "end_of_text")]}
    result, _ = run([("a", 0.9), ("b", 0.1)], samples, beam_size=1)
    assert text(result.beam) == "ace"


class TestStage1:
    def test_greedy_sentences_that_reach_the_threshold_are_the_answer(self):
        result, propose = run([("a", 0.9), ("b", 0.8), ("c", 0.7, "end_of_text")])
        assert (text(result.beam), result.stop, result.backtracked, result.dropped, result.rounds) == (
            "abc",
            "end_of_text",
            False,
            (),
            (),
        )
        assert propose.asked == [(("",), None), (("a",), None), (("ab",), None)]
        assert result.beam.token_ids == (97, 98, 99) and result.beam.handles == ((1, 0), (2, 0), (3, 0))

    def test_equality_keeps(self):
        result, _ = run([("a", 0.5), ("b", 0.5, "end_of_text")])
        assert (text(result.beam), result.backtracked) == ("ab", False)

    def test_the_first_sentence_below_is_taken_back_and_stage_2_begins_before_it(self):
        result, propose = run([("a", 0.9), ("b", 0.499)], {"a": [("c", 0.8, "end_of_text")]})
        assert text(result.beam) == "ac" and result.backtracked
        assert [s.text for s in result.dropped] == ["b"]
        assert propose.asked == [(("",), None), (("a",), None), (("a",), 2)]

    def test_the_very_first_sentence_may_fall(self):
        result, _ = run([("a", 0.1)], {"": [("b", 0.9, "end_of_text")]})
        assert text(result.beam) == "b"

    def test_a_last_sentence_below_is_taken_back_too(self):
        result, _ = run([("a", 0.9), ("b", 0.2, "end_of_text")], {"a": [("c", 0.7, "end_of_text")]})
        assert (text(result.beam), [s.text for s in result.dropped]) == ("ac", ["b"])

    def test_a_sentence_that_claims_nothing_passes(self):
        result, _ = run([("-", None), ("a", 0.5, "end_of_text")])
        assert (text(result.beam), result.backtracked) == ("-a", False)

    @pytest.mark.parametrize("status", ["failed", "no_aggregator", "no_context"])
    def test_a_sentence_without_a_score_for_another_reason_does_not(self, status):
        def propose(beams, *, samples, waiting=()):
            if samples is None:
                return [Candidate(0, (sentence("a", None, status),), (1,), None, (1, 0))]
            return []

        result = search(propose, *config())
        assert (text(result.beam), result.stop, result.backtracked) == ("", "nothing_passed", True)

    def test_an_end_without_a_sentence_ends_the_answer(self):
        result, _ = run([("a", 0.9), (None, None, "end_of_text")])
        assert (text(result.beam), result.stop) == ("a", "end_of_text")

    @pytest.mark.parametrize("stop", ["end_of_text", "length"])
    def test_the_reason_is_the_candidates(self, stop):
        assert run([("a", 0.9, stop)])[0].stop == stop

    def test_several_sentences_at_the_end_pass_when_each_does(self):
        def propose(beams, *, samples, waiting=()):
            if samples is None:
                pair = (sentence("a", 0.9), sentence("b", 0.4))
                return [Candidate(0, pair, (1, 2), "end_of_text", (1, 0))]
            return [candidate(0, "c", 0.9, "end_of_text", (2, 0))]

        result = search(propose, *config())
        assert (text(result.beam), [s.text for s in result.dropped]) == ("c", ["a", "b"])

    def test_most_sentences(self):
        result, propose = run([("a", 0.9)] * 5, max_sentences=3)
        assert (text(result.beam), result.stop, len(propose.asked)) == ("aaa", "max_sentences", 3)


class TestStage2:
    def greedy_falls(self):
        return [("x", 0.0)]

    def test_samples_per_beam_are_rounded_up(self):
        for samples, beams, each in ((6, 2, 3), (5, 2, 3), (4, 3, 2), (1, 2, 1)):
            _, propose = run(self.greedy_falls(), samples_per_step=samples, beam_size=beams)
            assert propose.asked[-1] == (("",), each)

    def test_what_falls_below_tau_2_is_pruned_before_the_cut(self):
        result, _ = run(
            self.greedy_falls(),
            {
                "": [("a", 0.59), ("b", 0.6), ("c", 0.7)],
                "b": [("d", 1.0, "end_of_text")],
                "c": [("e", 0.599, "end_of_text")],
            },
        )
        assert [s.text for c in result.rounds[0].passed for s in c.sentences] == ["b", "c"]
        assert [text(b) for b in result.rounds[0].beams] == ["c", "b"]
        assert (text(result.beam), result.stop) == ("bd", "end_of_text")

    def test_the_cut_to_k_is_by_the_mean_of_all_sentences(self):
        result, _ = run(
            [("g", 0.9), ("x", 0.0)],
            {
                "g": [("a", 0.6), ("b", 0.9)],
                "ga": [("c", 1.0, "end_of_text")],  # mean of .9 .6 1.0 is .833
                "gb": [("d", 0.61, "end_of_text"), ("e", 0.9, "end_of_text")],  # .803 and .9
            },
        )
        assert [text(b) for b in result.rounds[1].beams] == ["gbe", "gac"]
        assert text(result.beam) == "gbe" and result.beam.faithfulness == pytest.approx(0.9)

    def test_ties_go_to_the_one_proposed_earlier(self):
        result, _ = run(self.greedy_falls(), {"": [(name, 0.7, "end_of_text") for name in "abc"]}, beam_size=2)
        assert [text(b) for b in result.rounds[0].beams] == ["a", "b"]
        assert text(result.beam) == "a"

    def test_an_empty_round_returns_the_best_of_the_round_before(self):
        result, _ = run(self.greedy_falls(), {"": [("a", 0.7), ("b", 0.8)], "a": [("c", 0.1)], "b": []})
        assert (text(result.beam), result.stop) == ("b", "nothing_passed")
        assert [text(b) for b in result.rounds[-1].beams] == ["b", "a"]
        assert len(result.rounds) == 2 and result.rounds[-1].passed == ()

    def test_nothing_passes_at_all(self):
        result, _ = run([("a", 0.9), ("x", 0.0)], {"a": [("b", 0.59)]})
        assert (text(result.beam), result.stop, result.backtracked) == ("a", "nothing_passed", True)

    def test_what_is_asked_next_are_the_kept_beams_in_rank_order(self):
        _, propose = run(self.greedy_falls(), {"": [("a", 0.7), ("b", 0.8), ("c", 0.9)]})
        assert propose.asked[-1] == (("c", "b"), 2)

    def test_one_ended_beam_ends_the_search(self):
        result, _ = run(self.greedy_falls(), {"": [("a", 0.9), ("b", 0.7, "end_of_text")]})
        # the paper's stop, then the most faithful of all beams, ended or not
        assert (result.stop, text(result.beam), len(result.rounds)) == ("other_beam_ended", "a", 1)

    def test_an_ended_sample_that_is_cut_does_not(self):
        result, _ = run(
            self.greedy_falls(),
            {"": [("a", 0.9), ("b", 0.7, "end_of_text"), ("c", 0.8)], "a": [("d", 0.9, "length")]},
        )
        assert (result.stop, text(result.beam), len(result.rounds)) == ("length", "ad", 2)

    def test_until_all_waits_for_the_others(self):
        result, propose = run(
            self.greedy_falls(),
            {"": [("a", 0.9), ("b", 0.95, "end_of_text")], "a": [("c", 0.99, "end_of_text")]},
            until="all",
        )
        assert propose.asked[-1] == (("a",), 2)  # the ended one is not continued
        assert (result.stop, text(result.beam)) == ("end_of_text", "b")
        assert {text(b) for b in result.rounds[-1].beams} == {"b", "ac"}

    def test_an_ended_beam_can_be_overtaken_while_it_waits(self):
        result, _ = run(
            self.greedy_falls(),
            {"": [("a", 0.9), ("b", 0.7, "end_of_text")], "a": [("c", 0.9, "end_of_text"), ("d", 0.8, "length")]},
            until="all",
        )
        assert [text(b) for b in result.rounds[-1].beams] == ["ac", "ad"]
        assert text(result.beam) == "ac"

    def test_until_all_with_nothing_left_to_pass(self):
        result, _ = run(
            self.greedy_falls(), {"": [("a", 0.9), ("b", 0.95, "end_of_text")], "a": [("c", 0.1)]}, until="all"
        )
        assert (result.stop, text(result.beam)) == ("nothing_passed", "b")

    def test_a_sample_that_claims_nothing_passes_and_does_not_rank(self):
        result, _ = run([("g", 0.8), ("x", 0.0)], {"g": [("-", None), ("a", 0.6)], "g-": [("b", 0.9, "end_of_text")]})
        assert [text(b) for b in result.rounds[0].beams] == ["g-", "ga"]
        assert result.rounds[0].beams[0].faithfulness == pytest.approx(0.8)
        assert text(result.beam) == "g-b"

    def test_an_end_without_a_sentence_keeps_the_beam(self):
        result, _ = run([("g", 0.8), ("x", 0.0)], {"g": [(None, None, "end_of_text"), ("a", 0.7)]})
        assert (text(result.beam), result.stop) == ("g", "end_of_text")

    def test_most_sentences(self):
        endless = {"a" * n: [("a", 0.9)] for n in range(9)}
        result, _ = run(self.greedy_falls(), endless, max_sentences=3)
        assert (text(result.beam), result.stop) == ("aaa", "max_sentences")


@st.composite
def worlds(draw):
    """Deterministic samplers over a tree of sentences with random scores."""
    seed = draw(st.integers(0, 10**6))
    tau_1, tau_2 = draw(st.floats(0, 1)), draw(st.floats(0, 1))
    beams, samples = draw(st.integers(1, 3)), draw(st.integers(1, 7))
    until = draw(st.sampled_from(["any", "all"]))
    config_ = FODConfig(beam_size=beams, samples_per_step=samples, until=until, max_sentences=5)
    return seed, config_, Thresholds(tau_1, tau_2)


@settings(deadline=None, max_examples=200)
@given(worlds())
def test_every_sentence_released_reaches_the_threshold_of_its_stage(world):
    seed, settings_, thresholds = world
    stage_1 = []

    def propose(beams, *, samples, waiting=()):
        found = []
        for parent, beam in enumerate(beams):
            for j in range(samples or 1):
                chance = random.Random(f"{seed} {text(beam)} {j} {samples}")
                stop = "end_of_text" if chance.random() < 0.2 else None
                found.append(candidate(parent, f"{len(beam.sentences)}{j};", chance.random(), stop, (len(stage_1), j)))
        if samples is None:
            stage_1.append(beams[0])
        return found

    result = search(propose, settings_, thresholds)
    greedy = len(stage_1) - 1 if result.backtracked else len(result.beam.sentences)
    for index, released in enumerate(result.beam.sentences):
        limit = thresholds.backtrack if index < greedy else thresholds.prune
        assert released.score >= limit
    for dropped in result.dropped[-1:]:
        assert dropped.score < thresholds.backtrack
    for round_ in result.rounds:
        assert len(round_.beams) <= max(settings_.beam_size, 1)
        assert len(round_.candidates) <= settings_.samples_per_beam * settings_.beam_size
    last = result.rounds[-1].beams if result.rounds else [result.beam]
    assert result.beam.faithfulness == max(b.faithfulness for b in last)


class TestConfig:
    def test_the_papers_values(self):
        paper, monitors = FODConfig(), MonitorConfig()
        assert (paper.backtrack_threshold, paper.prune_threshold) == (None, None)
        assert (monitors.backtrack_threshold, monitors.prune_threshold) == (0.7, 0.85)
        assert (paper.beam_size, paper.samples_per_step, paper.samples_per_beam) == (2, 6, 3)
        assert (paper.temperature, paper.top_p, paper.until) == (0.9, 0.95, "any")

    @pytest.mark.parametrize(
        "options",
        [
            {"backtrack_threshold": -0.1},
            {"prune_threshold": 1.01},
            {"prune_threshold": float("nan")},
            {"beam_size": 0},
            {"samples_per_step": 0},
            {"max_sentences": 0},
            {"temperature": 0.0},
            {"temperature": float("nan")},
            {"top_p": 0.0},
            {"top_p": 1.5},
            {"until": "some"},
        ],
        ids=str,
    )
    def test_values_outside_their_range(self, options):
        with pytest.raises(InputError, match=next(iter(options))):
            FODConfig(**options)


def test_an_empty_beam_has_no_faithfulness():
    assert Beam().faithfulness == -1.0


def test_annotate_ends_where_nothing_is_proposed():
    result, _ = run([("a", 0.1)], {"": []}, on_exhausted="annotate")
    assert (result.stop, result.beam.sentences) == ("nothing_passed", ())
