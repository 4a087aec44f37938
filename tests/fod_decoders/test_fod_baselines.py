"""What FOD is compared with: each does what its definition says."""

import numpy as np
import pytest
import torch
from doubles import PASSAGES, QUESTION, Script
from test_fod_generator import decoder, grammar, response_of

from fod import (
    AbstainGenerator,
    BacktrackGenerator,
    BestOfNGenerator,
    CADGenerator,
    FLAREQuery,
    PassageIndex,
    contrast_scores,
)
from syncheck import Monitor, MonitorConfig
from syncheck.base.errors import InputError, NotReadyError, WrongTypeError

NEAR = 1e-5
"""Distance of scores of the same text that were read token by token, and several tokens at once."""


def run(generator, prompt, **options):
    options = {"max_new_tokens": 60, "logits_processor": grammar(generator.monitor, prompt)} | options
    return generator.generate(prompt, return_dict_in_generate=True, **options)


def models(monitor):
    return monitor.model, monitor.tokenizer, monitor


def greedy_scores(monitor, prompt):
    return [s.score for s in run(decoder(monitor, 0.0), prompt).report.sentences]


class TestBacktrack:
    def test_the_answer_ends_before_the_first_sentence_below(self, monitor, prompt):
        scores = greedy_scores(monitor, prompt)
        for threshold in (0.0, *scores, 1.0):
            out = run(BacktrackGenerator(*models(monitor), backtrack_threshold=threshold), prompt)
            kept = next((i for i, score in enumerate(scores) if score < threshold), len(scores))
            assert [s.score for s in out.report.sentences] == pytest.approx(scores[:kept])
            stop = "backtracked" if kept else "abstained"
            assert out.search.rounds == () and (out.report.stop == stop) == (kept < len(scores))
            assert [s.score for s in out.dropped] == pytest.approx(scores[kept : kept + 1])


class TestAbstain:
    def test_an_answer_that_passes_is_greedys(self, monitor, prompt):
        threshold = min(greedy_scores(monitor, prompt))
        out = run(AbstainGenerator(*models(monitor), threshold=threshold - NEAR), prompt)
        assert torch.equal(out.sequences, run(decoder(monitor, 0.0), prompt).sequences)
        assert (out.dropped, out.message) == ((), None)

    @pytest.mark.parametrize("message", ["", "No answer."])
    def test_one_sentence_below_takes_all_of_it(self, monitor, prompt, message):
        scores = greedy_scores(monitor, prompt)
        lowest = int(np.argmin(scores))
        generator = AbstainGenerator(*models(monitor), threshold=scores[lowest] + NEAR, message=message)
        out = run(generator, prompt)
        assert (out.report.response, out.report.sentences, out.report.stop) == (message, (), "abstained")
        assert len(out.report.tokens) == 0
        first = next(i for i, score in enumerate(scores) if score < scores[lowest] + NEAR)
        assert [s.score for s in out.dropped] == pytest.approx(scores[: first + 1], abs=NEAR)
        assert monitor.tokenizer.decode(response_of(prompt, out.sequences)).strip() == message
        assert out.message == (message or None)
        events = list(generator.stream(prompt, max_new_tokens=60, logits_processor=grammar(monitor, prompt)))
        assert [event.type for event in events] == (["notice", "end"] if message else ["end"])

    @pytest.mark.parametrize(
        ("sentences", "scores"),
        [
            ((" Angus Scott is a rugby player.", " It"), [1.0, 0.0]),
            ((" No one knows.", " He"), [0.0, 1.0]),
            ((" Angus Scott is a rugby player.", " He"), [1.0, 1.0]),
        ],
    )
    def test_each_sentence_of_a_round_must_pass(self, golden, make_monitor, sentences, scores):
        """The token that closes one sentence is the last that is allowed, so that the next ends with it."""
        monitor = make_monitor(golden, formula=lambda values: values["align_score"])
        prompt = monitor.prompt(question=QUESTION, context=PASSAGES)
        *ids, last = monitor.tokenizer("".join(sentences), add_special_tokens=False)["input_ids"]
        assert monitor.tokenizer.decode([last]) == sentences[1]
        script = [Script(len(prompt.with_context_ids), [*ids, last])]
        generator = AbstainGenerator(*models(monitor), threshold=0.5)
        out = run(generator, prompt, max_new_tokens=len(ids) + 1, logits_processor=script)
        given, other = (out.report.sentences, out.dropped) if min(scores) else (out.dropped, out.report.sentences)
        assert ([s.score for s in given], other) == (scores, ())
        assert (out.report.stop == "abstained") == (min(scores) == 0.0)

    def test_errors(self, monitor, llama):
        with pytest.raises(InputError, match="threshold"):
            AbstainGenerator(*models(monitor), threshold=2)
        bare = Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))
        with pytest.raises(NotReadyError, match="aggregator"):
            AbstainGenerator(*models(bare))


class TestBestOfN:
    def test_the_best_by_its_own_measure(self, monitor, prompt):
        out = run(BestOfNGenerator(*models(monitor), samples=5), prompt, seed=3)
        assert len(out.samples) == 5 and out.report is out.samples[out.chosen]
        worth = [np.mean([s.score for s in r.sentences if s.score is not None]) for r in out.samples]
        assert out.rewards == pytest.approx(worth)
        assert out.chosen == int(np.argmax(out.rewards)) and len(set(out.rewards)) > 1
        assert out.sampled_tokens == sum(len(r.tokens) for r in out.samples)
        ids = [i for i in response_of(prompt, out.sequences) if i != monitor.tokenizer.eos_token_id]
        assert out.report.tokens.token_ids.tolist() == ids

    def test_scores_are_those_of_a_replay(self, monitor, prompt):
        out = run(BestOfNGenerator(*models(monitor), samples=3), prompt)
        again = monitor.score(prompt, response_token_ids=out.report.tokens.token_ids.tolist())
        np.testing.assert_allclose(out.report.tokens.kl, again.tokens.kl, rtol=0, atol=1e-4)

    def test_a_reward_of_the_callers(self, monitor, prompt):
        generator = BestOfNGenerator(*models(monitor), reward=lambda report: -len(report.response), samples=4)
        out = run(generator, prompt)
        assert len(out.report.response) == min(len(r.response) for r in out.samples)

    def test_rewards_by_name(self, monitor, prompt, llama):
        def rewards(report):
            scores = [s.score for s in report.sentences]
            return {"mean": sum(scores) / len(scores), "lowest": min(scores)}

        for name in ("mean", "lowest"):
            out = run(BestOfNGenerator(*models(monitor), reward=name, samples=4), prompt)
            expected = [rewards(report)[name] for report in out.samples]
            assert out.rewards == pytest.approx(expected, abs=1e-12) and out.chosen == expected.index(max(expected))
        with pytest.raises(InputError, match="reward"):
            BestOfNGenerator(*models(monitor), reward="best")
        bare = Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))
        with pytest.raises(NotReadyError, match="aggregator"):
            BestOfNGenerator(*models(bare), reward="lowest")

    def test_no_reward_is_worse_than_any(self, monitor, prompt):
        rewards = iter([None, -5.0, None, -7.0])
        out = run(BestOfNGenerator(*models(monitor), reward=lambda report: next(rewards), samples=4), prompt)
        assert (out.chosen, out.rewards) == (1, (None, -5.0, None, -7.0))

    def test_errors(self, monitor, llama):
        with pytest.raises(InputError, match="samples"):
            BestOfNGenerator(*models(monitor), samples=0)
        bare = Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema="paper-no-lid.v1"))
        with pytest.raises(NotReadyError, match="aggregator"):
            BestOfNGenerator(*models(bare))


class TestContrastScores:
    def test_by_hand(self):
        known, other = torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[0.0, 1.0, 4.0]])
        # 1.5 * 2 - 0, 1.5 - 0.5, 0 - 2
        assert contrast_scores(known, other, alpha=0.5).tolist() == [[3.0, 1.0, -2.0]]

    def test_it_is_the_ratio_of_the_distributions(self):
        generator = torch.Generator().manual_seed(0)
        known, other = torch.randn(2, 3, 50, generator=generator).unbind(0)
        found = contrast_scores(known, other, alpha=0.7).softmax(-1)
        ratio = known.softmax(-1) * (known.softmax(-1) / other.softmax(-1)) ** 0.7
        torch.testing.assert_close(found, ratio / ratio.sum(-1, keepdim=True))

    def test_plausibility(self):
        known, other = torch.tensor([[0.6, 0.3, 0.1]]).log(), torch.tensor([[0.98, 0.01, 0.01]]).log()
        free = contrast_scores(known, other, alpha=1.0)
        assert free.argmax() == 1
        bound = contrast_scores(known, other, alpha=1.0, plausibility=0.4)
        assert bound[0, 2] == -torch.inf and torch.equal(bound[0, :2], free[0, :2])
        assert contrast_scores(known, other, alpha=1.0, plausibility=1.0).isneginf().tolist() == [[False, True, True]]

    def test_what_has_no_chance_keeps_none(self):
        masked = torch.tensor([[1.0, -torch.inf]])
        assert contrast_scores(masked, masked, alpha=0.5).tolist() == [[1.0, -torch.inf]]


class TestCAD:
    def test_without_contrast_it_is_greedy(self, monitor, prompt):
        out = run(CADGenerator(*models(monitor), alpha=0.0), prompt)
        assert torch.equal(out.sequences, run(decoder(monitor, 0.0), prompt).sequences)

    @pytest.mark.parametrize("plausibility", [0.0, 0.2])
    def test_ids_are_those_of_the_formula(self, monitor, prompt, plausibility):
        """Second implementation: two full passes for every token."""
        out = run(
            CADGenerator(*models(monitor), alpha=2.0, plausibility=plausibility),
            prompt,
            max_new_tokens=12,
            logits_processor=None,
        )
        ids = []
        for _ in range(12):
            with torch.no_grad():
                known, other = (
                    monitor.model(torch.tensor([[*before, *ids]]), use_cache=False).logits[0, -1].double()
                    for before in (prompt.with_context_ids, prompt.without_context_ids)
                )
            scores = 3.0 * known - 2.0 * other
            if plausibility:
                scores[known.softmax(-1) < plausibility * known.softmax(-1).max()] = -torch.inf
            ids.append(int(scores.argmax()))
        assert response_of(prompt, out.sequences) == ids
        greedy = decoder(monitor, 0.0).generate(prompt, max_new_tokens=12)
        assert response_of(prompt, greedy) != ids

    def test_one_plausible_token_needs_no_second_look(self, monitor, prompt):
        widths: list[int] = []

        def noted(model, args, given, output):
            widths.append(given["input_ids"].shape[1])

        handle = monitor.model.register_forward_hook(noted, with_kwargs=True)
        cad = CADGenerator(*models(monitor), alpha=2.0, plausibility=1.0)
        ids = cad.generate(prompt, max_new_tokens=12)
        handle.remove()
        assert torch.equal(ids, decoder(monitor, 0.0).generate(prompt, max_new_tokens=12))
        assert 0 < widths.count(1) <= 12

    def test_signals_are_those_of_the_raw_logits(self, monitor, prompt):
        out = run(CADGenerator(*models(monitor), alpha=2.0), prompt)
        again = monitor.score(prompt, response_token_ids=out.report.tokens.token_ids.tolist())
        for name in ("log_prob", "log_prob_without_context", "entropy", "kl"):
            np.testing.assert_allclose(getattr(out.report.tokens, name), getattr(again.tokens, name), rtol=0, atol=1e-4)

    @pytest.mark.parametrize("options", [{"alpha": -1.0}, {"plausibility": 1.5}, {"alpha": float("inf")}])
    def test_errors(self, monitor, options):
        with pytest.raises(InputError, match=next(iter(options))):
            CADGenerator(*models(monitor), **options)


class TestPassageIndex:
    PASSAGES = ("Bern lies on a river.", "Red pandas eat bamboo.", "The river at Bern is the Aare.")

    def query(self, question, text):
        return FLAREQuery(question=question, written="", sentence=None, tokens=(), text=text)

    def test_the_nearest_passages_come_first(self):
        index = PassageIndex(self.PASSAGES, count=2)
        assert index(self.query("What do pandas eat?", "They eat bamboo.")) == [self.PASSAGES[1]]
        assert set(index(self.query("Which river?", "Bern lies on the Aare."))) == {self.PASSAGES[0], self.PASSAGES[2]}
        assert index(self.query("Xylophone", "zzz")) == []

    def test_errors(self):
        with pytest.raises(InputError, match="passages"):
            PassageIndex(["..."])
        with pytest.raises(InputError, match="count"):
            PassageIndex(self.PASSAGES, count=0)


@pytest.mark.parametrize("reward", ["0.5", float("nan")])
def test_a_reward_that_is_no_number_is_refused(monitor, prompt, reward):
    with pytest.raises(WrongTypeError, match="must return a number, or None for the worst"):
        run(BestOfNGenerator(*models(monitor), reward=lambda report: reward, samples=2), prompt)


def test_a_decoder_without_a_monitor_is_refused(monitor):
    with pytest.raises(WrongTypeError, match="monitor must be a Monitor.*found NoneType"):
        AbstainGenerator(monitor.model, monitor.tokenizer, None)
