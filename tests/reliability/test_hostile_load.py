"""A small run of one hostile client beside small requests; the figures of docs/reliability.md are made by more."""

import asyncio

import hostile_load
import pytest


@pytest.mark.slow
def test_no_hostile_client_delays_the_others():
    found = asyncio.run(hostile_load.run(1.5))
    assert hostile_load.broken(found, limit=15.0) == []  # the machine may have other work
    assert set(found["40,000 passages"]["hostile"]) == {"413"}
