"""Text generators: a model that is asked, in the process or behind an endpoint on this machine."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from syncheck.aligners import EndpointTextGenerator, LocalTextGenerator
from syncheck.base.errors import InputError, TextGeneratorError


class TestLocal:
    def test_answers_are_those_of_greedy_generate(self, llama):
        prompt = "Is Angus Scott a player?"
        inputs = llama.tokenizer(prompt, return_tensors="pt")
        output = llama.model.generate(**inputs, do_sample=False, max_new_tokens=12)
        expected = llama.tokenizer.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        assert expected
        assert LocalTextGenerator(llama.model, llama.tokenizer, max_new_tokens=12)(prompt) == expected

    def test_a_chat_template_is_used(self, llama, monkeypatch):
        asked = []
        generate = llama.model.generate
        monkeypatch.setattr(llama.model, "generate", lambda ids, **kw: asked.append(ids) or generate(ids, **kw))
        template = "{% for m in messages %}USER {{ m.content }} END{% endfor %}"
        monkeypatch.setattr(llama.tokenizer, "chat_template", template)
        LocalTextGenerator(llama.model, llama.tokenizer, max_new_tokens=2)("Is he?")
        templated = llama.tokenizer("USER Is he? END", add_special_tokens=False)["input_ids"]
        assert asked[0].tolist() == [templated]

    def test_what_does_not_fit_is_refused(self, llama):
        window = llama.model.config.max_position_embeddings
        with pytest.raises(InputError, match=str(window)):
            LocalTextGenerator(llama.model, llama.tokenizer, max_new_tokens=window)("Is he?")


class Endpoint(ThreadingHTTPServer):
    """Answers as it is told, and keeps what it was sent."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = (200, {"choices": [{"message": {"content": "In 1982."}}]})
        self.headers = {}
        self.requests = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, dict(self.headers), body))
        status, answer = self.server.answer
        if status is None:
            self.server.held.wait(30)
            return
        content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def endpoint(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Endpoint()
    server.held = threading.Event()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.held.set()
    server.shutdown()
    thread.join()
    server.server_close()


class TestEndpoint:
    def test_what_is_sent_and_read(self, endpoint, monkeypatch):
        monkeypatch.setenv("SOME_KEY", "secret")
        evaluator = EndpointTextGenerator(f"{endpoint.url}/", "judge", api_key_variable="SOME_KEY", max_tokens=50)
        assert evaluator.name == f"{endpoint.url}#judge" and evaluator("When did he grow up?") == "In 1982."
        ((path, headers, body),) = endpoint.requests
        assert path == "/v1/chat/completions"
        assert headers["Authorization"] == "Bearer secret"
        assert (body["model"], body["temperature"], body["max_tokens"]) == ("judge", 0, 50)
        assert body["messages"] == [{"role": "user", "content": "When did he grow up?"}]

    def test_no_key_is_sent_unless_given(self, endpoint):
        EndpointTextGenerator(endpoint.url, "judge")("hello")
        assert "Authorization" not in endpoint.requests[0][1]

    @pytest.mark.parametrize(
        ("status", "answer", "message"),
        [
            (500, "out of order", "500"),
            (401, {"error": "who are you?"}, "401"),
            (200, "not json", "no JSON object"),
            (200, {"choices": []}, "choices"),
            (200, {"choices": [{"message": {"content": None}}]}, "choices"),
            (200, [1], "no JSON object"),
        ],
    )
    def test_faulty_answers_are_errors_without_the_key(self, endpoint, status, answer, message):
        endpoint.answer = (status, answer)
        with pytest.raises(TextGeneratorError, match=message) as caught:
            EndpointTextGenerator(endpoint.url, "judge", api_key="secret")("hello")
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_no_redirect_is_followed(self, endpoint, status):
        endpoint.answer = (status, "elsewhere")
        endpoint.headers = {"Location": f"{endpoint.url}/other"}
        with pytest.raises(TextGeneratorError, match=str(status)):
            EndpointTextGenerator(endpoint.url, "judge", api_key="secret")("hello")
        assert len(endpoint.requests) == 1

    def test_a_silent_endpoint_times_out(self, endpoint):
        endpoint.answer = (None, None)
        with pytest.raises(TextGeneratorError, match="timed"):
            EndpointTextGenerator(endpoint.url, "judge", timeout_s=0.05)("hello")

    def test_an_endpoint_that_is_not_there(self, endpoint):
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        free = server.server_port
        server.server_close()
        with pytest.raises(TextGeneratorError, match="base_url"):
            EndpointTextGenerator(f"http://127.0.0.1:{free}/v1", "judge")("hello")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"base_url": "file:///etc"}, "base_url"),
            ({"api_key": "a", "api_key_variable": "B"}, "api_key_variable"),
            ({"api_key_variable": "NO_SUCH_VARIABLE"}, "NO_SUCH_VARIABLE"),
        ],
    )
    def test_unusable_options_are_refused(self, options, message):
        with pytest.raises(InputError, match=message):
            EndpointTextGenerator(**{"base_url": "http://127.0.0.1/v1", "model": "judge", **options})
