"""One monitor for each family, and a prompt."""

import pytest
from doubles import PASSAGES, QUESTION
from families import REWINDABLE, Family, family
from watched import RecordingMonitor

from syncheck import RagPrompt


@pytest.fixture(scope="session", params=REWINDABLE)
def any_family(request: pytest.FixtureRequest) -> Family:
    """Every family whose state can be rewound, if a test names no others."""
    return family(request.param)


@pytest.fixture
def monitor(any_family: Family) -> RecordingMonitor:
    return RecordingMonitor.of(any_family)


@pytest.fixture
def prompt(any_family: Family) -> RagPrompt:
    return any_family.prompt(QUESTION, PASSAGES)
