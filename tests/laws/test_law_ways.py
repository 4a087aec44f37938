"""Live = attached = replay = first principles, for every family, those whose state cannot be rewound as well."""

import numpy as np
import pytest
from families import REWINDABLE, STATEFUL
from first_principles import NATS, SIGNALS, assert_signals, assert_states, from_scratch
from watched import TEXT, RecordingMonitor, scripted

SENTENCES = ["He is a player.", "Did he?", "He played."]


def live(monitor, prompt, script, length):
    return monitor.generate(prompt, logits_processor=script, max_new_tokens=length)


def replay(monitor, prompt, script, length):
    (ids,) = script[0].scripts
    return monitor.score(prompt, response_token_ids=ids)


def attached(monitor, prompt, script, length):
    with monitor.attach(prompt) as watch:
        output = monitor.model.generate(
            **prompt.inputs(), logits_processor=watch.processors + script, max_new_tokens=length
        )
    return watch.report(output)


@pytest.mark.parametrize("any_family", [*REWINDABLE, *STATEFUL], indirect=True)
@pytest.mark.parametrize("way", [live, replay, attached], ids=lambda way: way.__name__)
def test_every_way_measures_the_same(any_family, prompt, way):
    """The text ends at ``max_new_tokens``: its last token is never fed by ``generate``, but has its state."""
    monitor = RecordingMonitor.of(any_family)
    (ids,), script = scripted(any_family, TEXT)
    report = way(monitor, prompt, script, len(ids))
    assert report.tokens.token_ids.tolist() == ids
    assert [s.text for s in report.sentences] == SENTENCES
    expected = from_scratch(any_family, prompt, ids)
    assert_signals(report.tokens, expected)
    (scorer,) = [scorer for scorer in monitor.scorers if scorer.signals]
    for sentence, score in zip(scorer.signals, report.sentences, strict=True):
        assert_states(sentence, score.token_end - 1, expected)


def test_the_passages_matter_and_no_distribution_is_flat(any_family, prompt):
    """Or else the laws would hold of anything."""
    expected = from_scratch(any_family, prompt, any_family.encode(TEXT))
    assert 0.05 < np.median(expected.kl) < 10
    assert np.median(expected.entropy) < np.log(any_family.model.config.vocab_size) - 1
    assert {len(getattr(expected, name)) for name in SIGNALS} == {len(any_family.encode(TEXT))}
    assert (expected.kl > 10 * NATS).all()


def test_windows_are_shorter_than_the_prompts(any_family, prompt):
    config = any_family.model.config
    windows = [getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size")]
    for window in filter(None, windows):
        assert window < len(prompt.without_context_ids) + len(any_family.encode(TEXT)) < len(prompt.with_context_ids)
