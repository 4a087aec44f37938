"""Several rows at once: what comes back, in which order, when it is judged, and what is refused."""

import numpy as np
import pytest
import torch
from doubles import ANSWER, PASSAGES, QUESTION
from transformers.generation import LogitsProcessor, LogitsProcessorList

from syncheck.base.errors import InputError, PromptError, WrongTypeError
from syncheck.testing import WordAligner


class RowScripts(LogitsProcessor):
    """Leaves row i one token possible at each step: the next of its script, then its last one again."""

    def __init__(self, scripts):
        self.scripts, self.width = scripts, None

    def __call__(self, input_ids, scores):
        self.width = self.width or input_ids.shape[1]
        step = input_ids.shape[1] - self.width
        forced = torch.full_like(scores, -torch.inf)
        for row, script in enumerate(self.scripts):
            forced[row, script[min(step, len(script) - 1)]] = 0.0
        return forced


class CountingAligner(WordAligner):
    def __init__(self):
        self.claims = []

    def align(self, passages, claims):
        self.claims.append(list(claims))
        return super().align(passages, claims)


@pytest.fixture
def golden(llama):
    return llama


@pytest.fixture
def prompts(monitor):
    return [monitor.prompt(question=question, context=PASSAGES) for question in (QUESTION, "Where did he grow up?")]


def encoded(monitor, text, *, end=True):
    ids = monitor.tokenizer(text, add_special_tokens=False)["input_ids"]
    return [*ids, monitor.tokenizer.eos_token_id] if end else ids


def scripts(*rows):
    return LogitsProcessorList([RowScripts(rows)])


class TestWhatComesBack:
    def test_one_report_for_one_prompt_and_a_list_for_a_list(self, monitor, prompts):
        assert monitor.generate(prompts[0], max_new_tokens=2).prompt == prompts[0]
        assert [r.prompt for r in monitor.generate(prompts[:1], max_new_tokens=2)] == prompts[:1]
        assert [r.prompt for r in monitor.generate(prompts, max_new_tokens=2)] == prompts

    def test_the_responses_to_each_prompt_come_together(self, monitor, prompts):
        reports = monitor.generate(prompts, max_new_tokens=4, do_sample=True, num_return_sequences=2)
        assert [r.prompt for r in reports] == [prompts[0], prompts[0], prompts[1], prompts[1]]

    def test_each_row_says_why_it_stopped(self, monitor, prompts):
        first, second = encoded(monitor, " He played."), encoded(monitor, ANSWER)
        reports = monitor.generate(prompts, logits_processor=scripts(first, second), max_new_tokens=20)
        assert [r.stop for r in reports] == ["end_of_text", "length"]
        assert [len(r.tokens) for r in reports] == [len(first) - 1, 20]
        assert all(s.latency_ms > 0 for r in reports for s in r.sentences)

    def test_a_row_without_a_context_beside_one_that_has_one(self, monitor, prompts):
        bare = monitor.prompt(question=QUESTION, context="")
        ids = encoded(monitor, ANSWER, end=False)
        with_context, without = monitor.score_batch([prompts[0], bare], response_token_ids=[ids, ids])
        assert np.isnan(without.tokens.kl).all() and not np.isnan(with_context.tokens.kl).any()
        assert {s.status for s in without.sentences} == {"no_context"}
        assert {s.status for s in with_context.sentences} == {"scored"}


class TestWhenItIsJudged:
    def test_rows_of_one_prompt_are_judged_together(self, golden, make_monitor):
        aligner = CountingAligner()
        monitor = make_monitor(golden, aligner=aligner)
        prompt = monitor.prompt(question=QUESTION, context=PASSAGES)
        rows = [encoded(monitor, f" {name} played. He grew up on a farm.") for name in ("Angus", "Scott", "He")]
        options = {"do_sample": True, "num_return_sequences": 3, "max_new_tokens": 30}
        reports = monitor.generate(prompt, logits_processor=scripts(*rows), **options)
        assert [len(r.sentences) for r in reports] == [2, 2, 2]
        assert aligner.claims == [
            ["Angus played.", "Scott played.", "He played."],
            ["He grew up on a farm."] * 3,
        ]

    def test_a_sentence_waits_for_the_other_rows_but_not_for_long(self, monitor, prompts):
        short = encoded(monitor, " He played. He played. He played.", end=False)
        endless = [encoded(monitor, " farm", end=False)[0]] * 100
        with monitor.session(prompts) as watched:
            judged_at = []
            for step in range(80):
                watched.decoding.push(torch.tensor([short[step % len(short)], endless[step]]))
                if watched.is_due():
                    judged_at.append(step + 1)
                    assert watched.score_round()[1] == []
        assert judged_at[0] == 64
        assert len(watched.answers[0].sentences) > 10


class TestScoreBatch:
    def test_the_order_is_that_of_the_prompts_whatever_the_batches(self, monitor, prompts):
        texts = [ANSWER, " He played.", "", ANSWER[:40]]
        rows = [prompts[0], prompts[1], prompts[0], prompts[1]]
        alone = [monitor.score(prompt, text) for prompt, text in zip(rows, texts, strict=True)]
        for size in (1, 3, 16):
            together = monitor.score_batch(rows, texts, batch_size=size)
            for report, expected in zip(together, alone, strict=True):
                assert (report.prompt, report.response) == (expected.prompt, expected.response)
                assert [s.text for s in report.sentences] == [s.text for s in expected.sentences]
                np.testing.assert_allclose(report.tokens.kl, expected.tokens.kl, rtol=0, atol=1e-4)
                np.testing.assert_allclose(
                    [s.score for s in report.sentences], [s.score for s in expected.sentences], rtol=0, atol=1e-3
                )

    def test_answers_about_the_same_passages_come_together_and_their_prompt_is_read_once(self, monitor):
        rome, oslo = (monitor.prompt(question=QUESTION, context=[f"{name} {PASSAGES[0]}"]) for name in ("Rome", "Oslo"))
        shapes = []
        hook = monitor.model.register_forward_pre_hook(
            lambda module, args, kwargs: shapes.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
        )
        try:  # by length alone, each batch would have both prompts
            monitor.score_batch([rome, oslo, rome, oslo], [" He.", " He.", ANSWER, ANSWER], batch_size=2)
        finally:
            hook.remove()
        lengths = sorted(len(prompt.with_context_ids) for prompt in (rome, oslo))
        assert sorted(shape for shape in shapes if shape[1] >= lengths[0]) == [(1, length) for length in lengths]

    def test_a_response_that_is_fed_in_parts(self, monitor, prompts):
        """More tokens than are fed at once: sentences, and rows, end before, at and after the end of a part."""
        long, short = ANSWER * 12, ANSWER * 5
        widths = []
        hook = monitor.model.register_forward_pre_hook(
            lambda module, args, kwargs: widths.append(kwargs["input_ids"].shape[1]), with_kwargs=True
        )
        try:
            together = monitor.score_batch(prompts, [long, short])
        finally:
            hook.remove()
        tokens = len(together[0].tokens)
        parts = [min(256, tokens - first) for first in range(0, tokens, 256)]
        fed = [width for part in parts for width in (part, part)]  # of each branch
        assert len(parts) > 2 and widths[-len(fed) :] == fed  # after the prompts
        for prompt, report, text in zip(prompts, together, [long, short], strict=True):
            whole = monitor.score(prompt, sentences=[text])  # one sentence, held until all of it is there
            assert len(report.sentences) == 5 * text.count(" Angus") and len(whole.sentences) == 1
            for name in ("log_prob", "log_prob_without_context", "entropy", "kl"):
                found, expected = getattr(report.tokens, name), getattr(whole.tokens, name)
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4, err_msg=name)

    def test_sentences_that_the_caller_cut(self, monitor, prompts):
        cut = [[ANSWER[:20], ANSWER[20:]], [" He played. He", " did."]]
        reports = monitor.score_batch(prompts, sentences=cut)
        assert [[s.text for s in r.sentences] for r in reports] == [[t.strip() for t in row] for row in cut]

    def test_nothing_to_score(self, monitor):
        assert monitor.score_batch([], []) == []

    @pytest.mark.parametrize("given", [{"responses": ["a"]}, {"response_token_ids": [[1]]}, {"sentences": [["a"]]}])
    def test_other_numbers_of_responses_than_prompts(self, monitor, prompts, given):
        with pytest.raises(InputError, match=next(iter(given))):
            monitor.score_batch(prompts, **given)

    def test_batches_of_nothing(self, monitor, prompts):
        with pytest.raises(InputError, match="batch_size"):
            monitor.score_batch(prompts, ["a", "b"], batch_size=0)

    def test_a_response_that_does_not_fit_is_refused_before_anything_is_run(self, monitor, prompts, monkeypatch):
        monkeypatch.setattr(monitor.model.config, "max_position_embeddings", len(prompts[0].with_context_ids) + 6)
        ran = []
        hook = monitor.model.register_forward_hook(lambda *args: ran.append(1))
        try:
            with pytest.raises(PromptError, match="window"):
                monitor.score_batch(prompts, [" He.", ANSWER])
        finally:
            hook.remove()
        assert not ran


class TestReplayBatch:
    def test_each_has_the_signals_and_scores_it_has_alone(self, monitor, prompts):
        texts = [ANSWER, monitor.read(prompts[1], " He played.")]
        answers = dict(monitor.replay_batch(prompts, texts, batch_size=1))
        for place, alone in enumerate([monitor.replay(prompts[0], ANSWER), monitor.replay(prompts[1], " He played.")]):
            assert [s.score for s in answers[place].sentences] == [s.score for s in alone.sentences]
            for found, expected in zip(answers[place].signals, alone.signals, strict=True):
                np.testing.assert_array_equal(found.kl, expected.kl)

    def test_what_fails_alone_is_told_and_the_others_are_replayed(self, monitor, prompts, monkeypatch, caplog):
        whole = monitor.given_session

        def small(rows):
            if len(rows) > 1 or rows[0] == prompts[1]:
                raise RuntimeError("no memory")
            return whole(rows)

        monkeypatch.setattr(monitor, "given_session", small)
        failed = []
        rows = [prompts[0], prompts[1], prompts[0]]
        found = monitor.replay_batch(
            rows, [ANSWER] * 3, on_failure=lambda place, reason: failed.append((place, reason))
        )
        assert sorted(place for place, _ in found) == [0, 2]
        assert failed == [(1, "RuntimeError: no memory")] and "3 responses at once" in caplog.text
        with pytest.raises(RuntimeError, match="memory"):
            list(monitor.replay_batch(rows, [ANSWER] * 3))

    def test_arguments_are_checked_before_anything_is_replayed(self, monitor, prompts):
        with pytest.raises(InputError, match="batch_size"):
            monitor.replay_batch(prompts, ["a", "b"], batch_size=0)


class TestErrors:
    def test_no_prompt(self, monitor):
        with pytest.raises(InputError, match="prompt"):
            monitor.generate([], max_new_tokens=2)

    @pytest.mark.parametrize("prompts", ["Who?", ["Who?"], None, 5], ids=repr)
    def test_what_is_no_prompt(self, monitor, prompts):
        with pytest.raises(WrongTypeError, match="RagPrompt"):
            monitor.generate(prompts, max_new_tokens=2)

    def test_a_loop_of_other_rows_than_attached(self, monitor, prompts):
        with pytest.raises(InputError, match="attached"), monitor.attach(prompts):
            monitor.model.generate(**prompts[0].inputs(), max_new_tokens=2)

    def test_beam_search_in_a_watched_loop(self, monitor, prompts):
        watch = monitor.attach([prompts[0]] * 2)
        with pytest.raises(InputError, match="beam"), watch:
            monitor.model.generate(
                **prompts[0].inputs(), max_new_tokens=8, num_beams=2, logits_processor=watch.processors
            )
