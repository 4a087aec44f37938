"""The starter kit: sizes and cards, where the model's weights come from, and the laws on the model itself."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from syncheck import SentenceEvent, kit
from syncheck.base import pretrained
from syncheck.base.errors import CheckpointError, InputError
from syncheck.kit import demo_questions, load_kit

ASSETS = Path(str(files("syncheck") / "assets"))
MEGABYTE = 1e6
LIMITS = {"aligner": 25, "reader": 22, "kit_model": 2, "monitor-generation": 2}
TOKENS = 40


def size(folder):
    return sum(f.stat().st_size for f in (ASSETS / folder).rglob("*") if f.is_file())


def test_sizes_are_within_the_limits():
    for folder, most in LIMITS.items():
        assert size(folder) <= most * MEGABYTE, folder
    assert sum(size(f.name) for f in ASSETS.iterdir() if f.is_dir() and f.name not in LIMITS) <= 2 * MEGABYTE


def test_a_monitor_knows_what_it_was_trained_on_by_content():
    digests = json.loads((ASSETS / "monitor-generation" / "config.json").read_text())["trained_on"]
    assert digests and all(digest.startswith("sha256:") for digest in digests)


@pytest.mark.parametrize("part", [f.name for f in ASSETS.iterdir() if f.is_dir()])
def test_every_part_has_a_short_card(part):
    card = (ASSETS / part / "README.md").read_text(encoding="utf-8")
    assert len(card) > 300 and len(card.splitlines()) <= 90


def test_nothing_in_the_kit_is_a_pickle():
    kinds = {f.suffix for f in ASSETS.rglob("*") if f.is_file()}
    assert kinds <= {".json", ".md", ".safetensors", ".txt"}


def test_unknown_purpose_is_refused():
    with pytest.raises(InputError, match="generation"):
        load_kit("other")  # type: ignore[arg-type]


def test_the_demo_asks_six_questions_of_passages_with_titles():
    questions = demo_questions()
    assert len(questions) == len({asked.question for asked in questions}) == 6
    for asked in questions:
        assert len(asked.titles) == len(asked.passages) >= 3 and all(asked.titles)


def test_the_generic_monitor_tells_support_from_invention():
    question = demo_questions()[-1]
    passage = max(question.passages, key=len)
    supported = passage.split(". ")[0] + "."
    invented = "The Emperor Otto bought 4711 elephants in Antwerp."
    good, bad = (
        load_kit("generic").check(answer, question=question.question, passages=question.passages).sentences[0]
        for answer in (supported, invented)
    )
    assert good.score > bad.score
    assert good.evidence.text in passage


@pytest.fixture
def empty_cache(with_the_kit, tmp_path, monkeypatch):
    """No arrays were made before, and none are made where users have theirs."""
    monkeypatch.setattr(pretrained.constants, "HF_ASSETS_CACHE", str(tmp_path / "cache"))


def test_without_the_weights_the_error_names_both_commands(empty_cache, monkeypatch):
    monkeypatch.setattr(kit, "installed_weights", lambda: None)
    with pytest.raises(CheckpointError) as refused:
        load_kit("generation")
    for command in (kit.INSTALL_PACKAGE, kit.INSTALL_FILE, kit.INSTALL_READER):
        assert command in str(refused.value)


def test_other_weights_are_refused_by_their_digest(empty_cache, tmp_path, monkeypatch):
    other = tmp_path / kit.WEIGHTS_NAME
    other.write_bytes(b"GGUF of something else")
    monkeypatch.setattr(kit, "installed_weights", lambda: other)
    with pytest.raises(CheckpointError, match=kit.WEIGHTS.sha256) as refused:
        load_kit("generation")
    assert kit.INSTALL_PACKAGE in str(refused.value) and kit.INSTALL_FILE in str(refused.value)
    assert not [f for f in (tmp_path / "cache").rglob("*.safetensors")]


def test_without_the_package_that_reads_the_weights_the_error_names_its_command(empty_cache, tmp_path, monkeypatch):
    weights = tmp_path / kit.WEIGHTS_NAME
    weights.touch()
    monkeypatch.setattr(kit, "installed_weights", lambda: weights)
    monkeypatch.setattr(kit, "WEIGHTS", pretrained.ModelFile(pretrained.file_sha256(weights), "no remedy"))
    monkeypatch.setattr(kit, "find_spec", lambda name: None)
    with pytest.raises(CheckpointError, match="gguf") as refused:
        load_kit("generation")
    assert kit.INSTALL_READER in str(refused.value)


@pytest.fixture(scope="module")
def prompt(kit_monitor):
    asked = demo_questions()[1]
    return kit_monitor.prompt(question=asked.question, context=asked.passages)


@pytest.fixture(scope="module")
def live(kit_monitor, prompt):
    return kit_monitor.generate(prompt, max_new_tokens=TOKENS, do_sample=False)


def test_arrays_begin_where_made_ones_do_so_that_results_have_the_same_bits(kit_monitor):
    assert all(weight.data_ptr() % kit.ALIGNMENT == 0 for weight in kit_monitor.model.parameters())


def test_live_is_attached_is_replay(kit_monitor, prompt, live):
    with kit_monitor.attach(prompt) as watch:
        out = kit_monitor.model.generate(
            **prompt.inputs(), logits_processor=watch.processors, max_new_tokens=TOKENS, do_sample=False
        )
    replayed = kit_monitor.score(prompt, response_token_ids=live.tokens.token_ids.tolist())
    for other in (watch.report(out), replayed):
        assert other.response == live.response
        assert [(s.start, s.end, s.token_start, s.token_end) for s in other.sentences] == [
            (s.start, s.end, s.token_start, s.token_end) for s in live.sentences
        ]
        for name in ("log_prob", "log_prob_without_context", "entropy", "kl"):
            np.testing.assert_allclose(getattr(other.tokens, name), getattr(live.tokens, name), atol=1e-3)
        for mine, theirs in zip(live.sentences, other.sentences, strict=True):
            np.testing.assert_allclose(mine.score, theirs.score, atol=1e-3)


def test_stream_gives_the_scores_of_generate(kit_monitor, prompt, live):
    events = list(kit_monitor.stream(prompt, max_new_tokens=TOKENS, do_sample=False))
    streamed = [event.sentence for event in events if isinstance(event, SentenceEvent)]
    assert [(s.text, s.score) for s in streamed] == [(s.text, s.score) for s in live.sentences]
