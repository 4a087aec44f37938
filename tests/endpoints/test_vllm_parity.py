"""The parity script runs, against servers that answer as vLLM and SGLang do, and tells a server that is off."""

import pytest
import vllm_parity
from copying import copying_model
from inference_servers import InferenceServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model():
    return copying_model()[0]


@pytest.fixture(autouse=True)
def directly(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


QUICK = [
    "--subject",
    "copying",
    "--questions",
    "1",
    "--tokens",
    "20",
    "--count",
    "1",
    "--context",
    "200",
    "--answer",
    "20",
]


@pytest.mark.parametrize(("kind", "path"), [("vllm", "/v1"), ("sglang", "")])
def test_a_server_of_the_same_model_agrees(model, capsys, kind, path):
    with InferenceServer(model) as server:
        assert vllm_parity.main(["--server", kind, "--url", server.url + path, *QUICK]) == 0
    assert "scores on endpoint.v1: at most" in capsys.readouterr().out


def test_a_server_that_is_off_is_told(model, monkeypatch):
    exact = InferenceServer.log_probs
    monkeypatch.setattr(InferenceServer, "log_probs", lambda self, ids: (exact(self, ids) * 1.05).log_softmax(-1))
    with InferenceServer(model) as server:
        assert vllm_parity.main(["--url", f"{server.url}/v1", *QUICK]) == 1
