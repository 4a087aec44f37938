"""Chat templates: written as transformers writes them, and stopped where they do not end or build too much."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from syncheck.base import chats
from syncheck.base.chats import write_chat
from syncheck.base.errors import InputError
from syncheck.prompts import build_prompt

TURNS = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who? 年 😀 <s>"}]
TEMPLATES = {
    "plain": "{% for m in messages %}[{{ m.role }}] {{ m['content'] | trim }}\n{% endfor %}",
    "special tokens": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ unk_token }}",
    "beginning": "{{ messages|length }}{% if add_generation_prompt %}<|assistant|>{% endif %}",
    "namespace": "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
    "tools": "{% if tools is none %}none{% endif %}{{ messages | tojson }}{% generation %}x{% endgeneration %}",
    "blocks": "{% for m in messages %}\n  {%- if loop.last %}\n    last\n  {% endif %}\n{% break %}{% endfor %}",
}
HOSTILE = {
    "never ends": "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}"
    "{% endfor %}{% endfor %}",
    "a product of strings": "{{ 'x' * 10**11 }}",
    "a power": "{{ 10 ** (10 ** 10) }}",
    "doubled": "{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    "padding": "{{ '%01000000000000d' % 1 }}",
    "shared lists": "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}"
    "{{ ns.a | tojson }}",
    "long": "{{ 'x' * 10**8 }}",
    "a range": "{{ range(10**9) | list | length }}",
    "division": "{{ 1 // 0 }}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "recursion that branches": "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "syntax": "{% for %}",
    "refusal": "{{ raise_exception('no') }}",
}


@pytest.fixture
def templated(llama, monkeypatch):
    tokenizer = llama.tokenizer

    def with_template(template):
        monkeypatch.setattr(tokenizer, "chat_template", template)
        return tokenizer

    return with_template


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(chats, "MAX_SECONDS", 1.0)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_a_chat_is_written_as_transformers_writes_it(templated, template):
    tokenizer = templated(template)
    expected = tokenizer.apply_chat_template(TURNS, tokenize=False, add_generation_prompt=True)
    assert write_chat(tokenizer, TURNS) == expected


@pytest.mark.slow
@pytest.mark.parametrize("template", HOSTILE.values(), ids=HOSTILE)
def test_a_template_that_uses_too_much_is_refused_within_seconds(templated, soon, template):
    start = time.monotonic()
    with pytest.raises(InputError, match="template"):
        write_chat(templated(template), TURNS)
    assert time.monotonic() - start < 10  # one for the chat, the rest to start the process where it had been stopped
    assert write_chat(templated(TEMPLATES["plain"]), TURNS).startswith("[system] Be brief.\n[user] Who?")


@pytest.mark.slow
def test_on_other_threads_too(templated, soon):
    def ask(number):
        template = HOSTILE["never ends"] if number == 3 else TEMPLATES["plain"] + str(number)
        try:
            return write_chat(Tokenizer(template), TURNS)[-1]
        except InputError:
            return "refused"

    class Tokenizer:
        special_tokens_map = {}

        def __init__(self, template):
            self.get_chat_template = lambda: template

    before = threading.active_count()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(8))) == ["0", "1", "2", "refused", "4", "5", "6", "7"]
    assert threading.active_count() == before


def test_one_process_serves_all_chats(templated):
    write_chat(templated("a"), TURNS)
    process = chats._worker._process
    with pytest.raises(InputError):
        write_chat(templated(HOSTILE["division"]), TURNS)
    assert write_chat(templated("b"), TURNS) == "b"
    assert chats._worker._process is process
    process.kill()
    process.wait()
    assert write_chat(templated("c"), TURNS) == "c"  # and is started again when it is gone


def test_a_prompt_of_a_hostile_template_is_refused(templated):
    with pytest.raises(InputError, match="template"):
        build_prompt(templated(HOSTILE["a product of strings"]), question="Who?", context="One.")


def test_several_templates_without_a_default_are_refused(templated):
    with pytest.raises(InputError, match="template"):
        write_chat(templated({"rag": "a", "tool_use": "b"}), TURNS)
