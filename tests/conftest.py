"""The golden models, loaded once, and monitors on them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from copying import MONITOR, copying_model
from doubles import LAYERS, PASSAGES, QUESTION, FormulaAggregator, wavy
from hypothesis import settings
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from syncheck import (
    LidReferences,
    Monitor,
    MonitorConfig,
    RagPrompt,
    checkpoint,
    feature_schema,
    kit,
    load_kit,
    prompt_from_texts,
)
from syncheck.testing import WordAligner

settings.register_profile("untimed", deadline=None)  # a busy machine must not fail a test
settings.register_profile("core", deadline=None, max_examples=30)
settings.load_profile("untimed")

torch.set_num_threads(1)  # the models are so small that a second thread costs more than it saves

GOLDEN = Path(__file__).parent / "golden" / "signals"


SLOW = frozenset(
    """
    laws test_calibrate_command test_cli test_evaluate_command test_examples test_fod_baselines
    test_generate_command
    test_fod_cost_benchmark test_fod_drop_in test_fod_flare test_fod_on_exhausted test_kit test_overhead_benchmark
    test_resumed
    """.split()
)
"""Folders and files of tests that `make quick` leaves out: commands, benchmarks, the bundled kit, every family."""

CORE = frozenset(
    """
    features test_aggregator test_assignment test_cache test_exports test_fod_generator test_fod_search
    test_golden_signals test_laws test_lid test_monitor test_monitor_laws test_prompts test_segmenter_config
    test_session test_taps test_text_schema test_tokenwise
    """.split()
)
"""Those of `make core`: the way from a prompt to a score and the search, in less than a minute of one core."""


def _is_core(config: pytest.Config) -> bool:
    return config.option.markexpr.startswith("core")


def pytest_configure(config: pytest.Config) -> None:
    if _is_core(config):
        settings.load_profile("core")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of every other file where only core tests are asked for: it would take longer than they do."""
    if collection_path.is_dir() or not _is_core(config):
        return None
    return None if {collection_path.stem, collection_path.parent.name} & CORE else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {item.path.stem, item.path.parent.name} & CORE:
            item.add_marker(pytest.mark.core)
        if {item.path.stem, item.path.parent.name} & SLOW:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True, scope="session")
def without_the_reader():
    """Make ``generic`` mean ``generic-bundled``: the reader's encoder need not be here, and takes its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "can_read", lambda: False)
        yield


@pytest.fixture
def with_the_reader(monkeypatch):
    """Make ``generic`` mean ``generic-reader``, as for a user who has the encoder."""
    monkeypatch.setattr(checkpoint, "can_read", lambda: True)


_KIT = kit.kit_language_model, kit.packaged_monitor


@pytest.fixture(autouse=True, scope="session")
def with_a_small_kit():
    """Make ``generation`` mean a small model with its monitor: the kit's own takes its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kit, "kit_language_model", copying_model)
        packaged = kit.packaged_monitor
        patch.setattr(kit, "packaged_monitor", lambda name: MONITOR if name == "generation" else packaged(name))
        yield


def as_for_users(patch):
    """Make ``generation`` and ``generic`` mean what they mean for users."""
    patch.setattr(kit, "kit_language_model", _KIT[0])
    patch.setattr(kit, "packaged_monitor", _KIT[1])
    patch.setattr(checkpoint, "can_read", lambda: True)


@pytest.fixture
def with_the_kit(monkeypatch):
    """Make ``generation`` mean what it means for users."""
    as_for_users(monkeypatch)


@pytest.fixture(scope="session")
def kit_monitor():
    """Load the kit's monitor as users have it, once."""
    with pytest.MonkeyPatch.context() as patch:
        as_for_users(patch)
        return load_kit("generation")


@dataclass(frozen=True)
class Golden:
    """A small random model with its tokenizer, reference values and LID references."""

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    records: list[dict[str, Any]]
    lid_references: LidReferences

    def prompt(self, record: dict[str, Any]) -> RagPrompt:
        return prompt_from_texts(
            self.tokenizer,
            question="?",
            context=record["prompt_with_context"],
            with_context=record["prompt_with_context"],
            without_context=record["prompt_without_context"],
        )


def load_golden(name: str) -> Golden:
    logging.disable_progress_bar()
    folder = GOLDEN / name
    return Golden(
        name,
        AutoModelForCausalLM.from_pretrained(folder).eval(),
        AutoTokenizer.from_pretrained(folder),
        json.loads((folder / "expected.json").read_text(encoding="utf-8")),
        LidReferences.load(folder / "lid_reference.npz"),
    )


@pytest.fixture(scope="session")
def llama() -> Golden:
    return load_golden("llama")


@pytest.fixture(scope="session")
def mistral() -> Golden:
    """Its sliding window of 48 tokens is shorter than the prompts."""
    return load_golden("mistral")


@pytest.fixture(scope="session", params=["llama", pytest.param("mistral", marks=pytest.mark.slow)])
def golden(request: pytest.FixtureRequest) -> Golden:
    """Both golden models in turn; the quick suite has the first alone."""
    found: Golden = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def make_monitor() -> Callable[..., Monitor]:
    """Build a monitor whose scores are a formula of the features."""

    def make(golden: Golden, *, schema="syncheck.v3", formula=wavy, aligner=None, **options: Any) -> Monitor:
        layers = () if schema == "paper-no-lid.v1" else LAYERS
        config = MonitorConfig(schema=schema, layers=layers, **options)
        aggregator = None if formula is None else FormulaAggregator(feature_schema(schema, layers), formula)
        return Monitor(
            golden.model,
            golden.tokenizer,
            config=config,
            aggregator=aggregator,
            lid_references=golden.lid_references if layers else None,
            aligner=WordAligner() if aligner is None else aligner,
        )

    return make


@pytest.fixture
def monitor(golden: Golden, make_monitor: Callable[..., Monitor]) -> Monitor:
    return make_monitor(golden)


@pytest.fixture
def prompt(monitor: Monitor) -> RagPrompt:
    return monitor.prompt(question=QUESTION, context=PASSAGES)
