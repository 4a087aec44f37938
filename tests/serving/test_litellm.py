"""LiteLLM's generic guardrail against the server, called as LiteLLM's proxy calls it, over HTTP."""

import asyncio
import uuid
from types import SimpleNamespace

import httpx
import pytest
from upstreams import ANSWER, PASSAGES, Upstream, running

from syncheck.serving.app import ServerConfig, create_app
from syncheck.serving.gateway import Gateway

pytestmark = pytest.mark.slow  # LiteLLM takes seconds to import

MESSAGES = [{"role": "user", "content": f"<context>{PASSAGES[0]}</context>\n\nWhere is Lyon?"}]


@pytest.fixture(scope="module")
def litellm():
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it asks the network for prices otherwise
        import litellm

        patched.setattr(litellm, "disable_aiohttp_transport", True)  # which leaves its sessions open
        yield litellm


@pytest.fixture
def served(monitor):
    def served(*, failing="closed", **options):
        gateway = Gateway(monitor, "http://up/v1", transport=Upstream(), failing=failing)
        return running(create_app(gateway, ServerConfig(**options)))

    return served


@pytest.fixture
def guarded(litellm):
    """Shows a request and its answer to the guardrail as LiteLLM's proxy does; returns the text that it lets pass."""
    from litellm.llms.openai.chat.guardrail_translation.handler import OpenAIChatCompletionsHandler
    from litellm.proxy.guardrails.guardrail_hooks.generic_guardrail_api import GenericGuardrailAPI

    def guarded(address, text, messages=MESSAGES, **options):
        async def call():
            guardrail = GenericGuardrailAPI(api_base=address, guardrail_name="syncheck", **options)
            data = {"model": "m", "messages": messages}
            call = SimpleNamespace(litellm_call_id=str(uuid.uuid4()), litellm_trace_id=None, model_call_details={})
            handler = OpenAIChatCompletionsHandler()
            answer = litellm.ModelResponse(choices=[{"message": {"role": "assistant", "content": text}}])
            try:
                asked = await handler.process_input_messages(data, guardrail, call)
                assert asked["messages"] == messages
                passed = await handler.process_output_response(answer, guardrail, call, request_data=data)
            finally:
                await guardrail.async_handler.close()
            return passed.choices[0].message.content

        litellm.in_memory_llm_clients_cache.flush_cache()
        return asyncio.run(call())

    return guarded


def test_a_faithful_answer_passes_and_another_is_blocked(litellm, guarded, served):
    from litellm.exceptions import GuardrailRaisedException

    with served() as address:
        assert guarded(address, "Lyon is large.") == "Lyon is large."
        with pytest.raises(GuardrailRaisedException, match="It is in Spain.*0.10"):
            guarded(address, ANSWER)
        assert guarded(address, ANSWER, additional_provider_specific_params={"at_least": 0.05}) == ANSWER


@pytest.mark.parametrize("text", ["<think>It is in Spain.</think>Lyon is large.", "<think>It is in Spain."])
def test_reasoning_is_no_reason_to_block(served, text):
    values = {"input_type": "response", "texts": [text], "structured_messages": MESSAGES}
    with served() as address:
        response = httpx.post(f"{address}/beta/litellm_basic_guardrail_api", json=values)
    assert response.json() == {"action": "NONE"}


def test_without_passages_it_fails_closed_or_open(guarded, served):
    from litellm.exceptions import GuardrailRaisedException

    bare = [{"role": "user", "content": "Where is Lyon?"}]
    with served() as address:
        with pytest.raises(GuardrailRaisedException, match="passages"):
            guarded(address, ANSWER, bare)
        given = {"context": PASSAGES}
        assert guarded(address, "Lyon is large.", bare, additional_provider_specific_params=given) == "Lyon is large."
    with served(failing="open") as address:
        assert guarded(address, ANSWER, bare) == ANSWER


def test_text_after_an_end_of_text_token_is_blocked_unless_it_fails_open(guarded, served):
    from litellm.exceptions import GuardrailRaisedException

    text = "Lyon is large.</s> It is in Spain."
    with served() as address, pytest.raises(GuardrailRaisedException, match="not read.*It is in Spain"):
        guarded(address, text)
    with served(failing="open") as address:
        assert guarded(address, text) == text


def test_it_takes_the_key_of_litellm(guarded, served):
    with served(api_key="right") as address:
        assert guarded(address, "Lyon is large.", api_key="right") == "Lyon is large."
        with pytest.raises(Exception, match="401"):
            guarded(address, "Lyon is large.", api_key="wrong")


@pytest.mark.parametrize(
    "values",
    [
        [],
        {"input_type": "other"},
        {"input_type": "request", "structured_messages": [{"role": "user"}]},
        {"input_type": "response", "structured_messages": MESSAGES, "texts": [1]},
        {"input_type": "response", "additional_provider_specific_params": "at_least"},
        {
            "input_type": "response",
            "structured_messages": MESSAGES,
            "texts": ["It."],
            "additional_provider_specific_params": {"at_least": 2},
        },
    ],
)
def test_what_it_cannot_read_is_refused(served, values):
    with served() as address:
        refused = httpx.post(f"{address}/beta/litellm_basic_guardrail_api", json=values, timeout=60)
    assert refused.status_code == 400
