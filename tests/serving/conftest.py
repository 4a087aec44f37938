import numpy as np
import pytest
from upstreams import ANSWER, SUPPORTS

from syncheck import Monitor, RagPrompt, Report
from syncheck.results.types import TokenSignals
from syncheck.testing import scripted_monitor


@pytest.fixture
def report_of():
    """Makes a report without sentences."""

    def made(response):
        prompt = RagPrompt("Q?", ("A passage.",), "with", "without", (1, 2), (1,))
        return Report(prompt, response, (), TokenSignals.concatenate([], text=response, char_spans=np.empty((0, 2))))

    return made


@pytest.fixture(scope="session")
def monitor() -> Monitor:
    """Writes the answer of the upstream."""
    return scripted_monitor(ANSWER, supports=SUPPORTS)
