"""Streams of a monitor and of decoders, told by the protocol."""

import subprocess
import sys

import pytest

from fod import AbstainGenerator, CADGenerator, FODConfig, FODGenerator
from syncheck.results import fold, protocol_events
from syncheck.testing import scripted_monitor

ANSWERS = {
    "Lyon is large.\n\nIt is in Spain. It has a river.": 4.0,
    "Lyon is large.\n\nIt is in France.\tIt has a river.": 1.0,
}
SEED = 0
"""Of a search that finds nothing to go on with at first."""
PASSAGES = ["Lyon is large. It is in France.", "It has a river."]


@pytest.fixture(scope="module")
def monitor():
    return scripted_monitor(ANSWERS, supports={"It is in Spain.": 0.1})


@pytest.fixture(scope="module")
def prompt(monitor):
    return monitor.prompt(question="Where is Lyon?", context=PASSAGES)


def sources(monitor):
    fod = FODGenerator(
        monitor.model, monitor.tokenizer, monitor, config=FODConfig(temperature=2.0), samples_per_step=12
    )
    args = (monitor.model, monitor.tokenizer, monitor)
    return {
        "monitor": lambda p, reveal: monitor.stream(p, reveal=reveal, max_new_tokens=30),
        "fod": lambda p, reveal: fod.stream(p, max_new_tokens=30),
        "cad": lambda p, reveal: CADGenerator(*args).stream(p, max_new_tokens=30),
        "abstain": lambda p, reveal: AbstainGenerator(*args, message="No.").stream(p, max_new_tokens=30),
    }


@pytest.mark.parametrize("reveal", ["verified", "immediate"])
@pytest.mark.parametrize("name", ["monitor", "fod", "cad", "abstain"])
def test_every_producer_speaks_it(monitor, prompt, name, reveal):
    source = list(sources(monitor)[name](prompt, reveal))
    report = source[-1].report
    answer = fold(protocol_events(source, prompt.passages, reveal=reveal))
    assert answer.text == report.response == answer.report["response"]
    assert [(s.start, s.end, s.score) for s in answer.sentences] == [
        (s.start, s.end, s.score) for s in report.sentences
    ]
    assert [answer.text[s.start : s.end] for s in answer.sentences] == [s.text for s in report.sentences]


def test_a_reader_of_the_protocol_needs_no_torch():
    check = "import sys, syncheck.results as s; s.fold, s.EventWriter; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)
