"""Chat templates: written as transformers writes them, and refused where they fail."""

import pytest

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
FAILING = {
    "division": "{{ 1 // 0 }}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "syntax": "{% for %}",
    "refusal": "{{ raise_exception('no') }}",
    "a way out of the sandbox": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "a range": "{{ range(10**9) | list | length }}",
}


@pytest.fixture
def templated(llama, monkeypatch):
    tokenizer = llama.tokenizer

    def with_template(template):
        monkeypatch.setattr(tokenizer, "chat_template", template)
        return tokenizer

    return with_template


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_a_chat_is_written_as_transformers_writes_it(templated, template):
    tokenizer = templated(template)
    expected = tokenizer.apply_chat_template(TURNS, tokenize=False, add_generation_prompt=True)
    assert write_chat(tokenizer, TURNS) == expected


@pytest.mark.parametrize("template", FAILING.values(), ids=FAILING)
def test_a_template_that_fails_is_refused(templated, template):
    with pytest.raises(InputError, match="template"):
        write_chat(templated(template), TURNS)
    with pytest.raises(InputError, match="template"):
        build_prompt(templated(template), question="Who?", context="One.")


def test_several_templates_without_a_default_are_refused(templated):
    with pytest.raises(InputError, match="template"):
        write_chat(templated({"rag": "a", "tool_use": "b"}), TURNS)
