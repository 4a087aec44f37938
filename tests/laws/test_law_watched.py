"""Watched = scored: text that arrives in pieces has the signals of the whole, although both branches are one batch."""

import pytest
from doubles import PASSAGES, QUESTION

ANSWER = "Lyon is large. It is in Spain. It has a river. Ann met Bob there in 1999."


def test_both_branches_of_watched_text_are_measured_as_in_a_replay(any_family, make_monitor):
    if any_family.name.endswith("longrope"):
        pytest.skip("prompt and answer would cross the length at which it encodes again, which is refused")
    monitor = make_monitor(any_family, schema="paper-no-lid.v1")
    prompt = monitor.prompt(question=QUESTION, context=PASSAGES)
    with monitor.watch_text(prompt) as watch:
        for character in ANSWER:
            watch.feed(character)
        watch.close()
    watched, whole = watch.report.tokens, monitor.score(prompt, ANSWER).tokens
    assert watched.log_prob == pytest.approx(whole.log_prob, abs=1e-3)
    assert watched.log_prob_without_context == pytest.approx(whole.log_prob_without_context, abs=1e-3)
    assert watched.kl == pytest.approx(whole.kl, abs=1e-3)
