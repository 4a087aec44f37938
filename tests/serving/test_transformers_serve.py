"""The gateway before `transformers serve`, with the bundled model."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time

import httpx
import openai
import pytest
from copying import MODEL
from transformers.utils.import_utils import is_serve_available
from upstreams import running

from syncheck import load_kit
from syncheck.results import fold, from_dict
from syncheck.serving.app import create_app
from syncheck.serving.gateway import Gateway

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not is_serve_available(), reason="transformers serve needs `pip install transformers[serving]`"),
]

PASSAGES = ["Lyon is a city in France. It has 520,000 people and two rivers."]


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    """Address and model of a running server."""
    folder = tmp_path_factory.mktemp("upstream")
    model = shutil.copytree(MODEL, folder / "model")
    config = json.loads((model / "tokenizer_config.json").read_text(encoding="utf-8"))
    config["chat_template"] = (
        "{% for m in messages %}{{ m['content'] }}\n{% endfor %}Answer:"  # the bundled model has none
    )
    (model / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "hub").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(model), "--host", "127.0.0.1"]
    environment = {**os.environ, "HF_HUB_CACHE": str(folder / "hub"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with (folder / "log").open("wb") as log:
        options = ["--port", str(port), "--device", "cpu", "--dtype", "float32"]
        served = subprocess.Popen([*command, *options], stdout=log, stderr=log, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 180
        while True:
            try:
                httpx.get(f"{address}/health")
                break
            except httpx.ConnectError:
                assert served.poll() is None and time.monotonic() < until, (folder / "log").read_text()
                time.sleep(0.2)
        yield address, str(model)
    finally:
        served.terminate()
        served.wait(60)


def test_its_answers_are_checked_on_their_way(upstream):
    address, model = upstream
    content = f"Passage 1: {PASSAGES[0]}\n\nQuestion: Where is Lyon?"
    asked = {"model": model, "messages": [{"role": "user", "content": content}], "max_tokens": 24, "temperature": 0}
    own = {"context": PASSAGES}
    with (
        running(create_app(Gateway(load_kit("generic"), f"{address}/v1"))) as gateway,
        openai.OpenAI(base_url=f"{gateway}/v1", api_key="-", max_retries=0, timeout=120) as checked,
        openai.OpenAI(base_url=f"{address}/v1", api_key="-", max_retries=0, timeout=120) as plain,
    ):
        expected = plain.chat.completions.create(**asked).choices[0].message.content
        whole = checked.chat.completions.create(**asked, extra_body=own).choices[0]
        parts = list(checked.chat.completions.create(**asked, stream=True, extra_body=own))
    choices = [choice for part in parts for choice in part.choices]
    answer = fold(from_dict(event) for choice in choices for event in choice.syncheck.get("events", ()))
    assert whole.message.content == expected
    assert "".join(choice.delta.content or "" for choice in choices) == answer.text == expected
    assert whole.syncheck["status"] == choices[-1].syncheck["status"] in ("verified", "checked")
    assert [s["score"] for s in whole.syncheck["sentences"]] == [s.score for s in answer.sentences] != []
