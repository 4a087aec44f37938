import asyncio

import httpx
import numpy as np
import pytest
from upstreams import ANSWER, SUPPORTS

from syncheck import Monitor, RagPrompt, Report
from syncheck.results.types import TokenSignals
from syncheck.serving.app import create_app
from syncheck.serving.gateway import Gateway
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


@pytest.fixture
def posted(monitor):
    """Sends one request to a gateway before an upstream; returns its response."""

    def post(upstream, body=None, *, path="/v1/chat/completions", config=None, headers=None, method="POST", **options):
        async def send():
            gateway = Gateway(monitor, "http://up/v1", transport=upstream, **options)
            transport = httpx.ASGITransport(create_app(gateway, config), raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
                sent = {"json": body} if body is None or isinstance(body, dict) else {"content": body}
                return await client.request(method, path, **sent)

        return asyncio.run(send())

    return post
