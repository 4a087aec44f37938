"""Prompts of one's own: chats with a history, and batches."""

import pytest
import torch

from syncheck.base.errors import InputError, PromptError, WrongTypeError
from syncheck.corpus.scoring import prompt_for
from syncheck.testing import scripted_monitor

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
PASSAGES = ["The bridge opened in 1967.", "The bridge"]
CHAT = [
    {"role": "system", "content": "Answer from the passages alone."},
    {"role": "user", "content": "Who are you?"},
    {"role": "assistant", "content": "A helper."},
    {"role": "user", "content": f"Sources: {PASSAGES[0]} | {PASSAGES[1]}\nWhen did it open?"},
]
ANSWER = "It opened in 1967."


@pytest.fixture
def monitor():
    made = scripted_monitor(ANSWER)
    made.tokenizer.chat_template = TEMPLATE
    return made


def test_passages_are_taken_out_of_the_messages(monitor):
    prompt = monitor.prompt(messages=CHAT, context=PASSAGES)
    assert prompt.with_context == monitor.tokenizer.apply_chat_template(
        CHAT, tokenize=False, add_generation_prompt=True
    )
    assert prompt.without_context == (
        "<system>Answer from the passages alone.\n<user>Who are you?\n<assistant>A helper.\n"
        "<user>Sources:  | \nWhen did it open?\n<assistant>"
    )
    assert prompt.question == "Sources:  | \nWhen did it open?"
    assert prompt.passages == tuple(PASSAGES)
    assert monitor.generate(prompt, max_new_tokens=20).response == ANSWER


def test_the_messages_without_may_be_given(monitor):
    without = [*CHAT[:3], {"role": "user", "content": "When did it open?"}]
    prompt = monitor.prompt(messages=CHAT, without=without, context="Told in other words.")
    assert prompt.without_context.endswith("<user>When did it open?\n<assistant>")
    assert prompt.question == "When did it open?"
    asked = monitor.prompt(messages=CHAT, without=without, context=PASSAGES, question="Opened when?")
    assert asked.question == "Opened when?"


class TestRecords:
    """Messages as a field of the records that the command line reads."""

    RECORD = {"messages": CHAT, "context": PASSAGES}

    def test_for_a_monitor_they_are_the_prompt(self, monitor):
        assert prompt_for(monitor, self.RECORD) == monitor.prompt(messages=CHAT, context=PASSAGES)
        without = [*CHAT[:3], {"role": "user", "content": "When did it open?"}]
        given = prompt_for(monitor, self.RECORD | {"messages_without_context": without})
        assert given == monitor.prompt(messages=CHAT, without=without, context=PASSAGES)

    def test_for_a_verifier_they_have_the_question(self, monitor):
        verifier = monitor.verifier
        assert prompt_for(verifier, self.RECORD).question == "Sources:  | \nWhen did it open?"
        assert prompt_for(verifier, self.RECORD | {"question": "When?"}).question == "When?"

    def test_only_one_thing_replaces_the_template(self, monitor):
        own = {"question": "When?", "prompt_with_context": "One.", "prompt_without_context": "Two."}
        with pytest.raises(InputError, match="'messages': found 'prompt_with_context' too"):
            prompt_for(monitor, self.RECORD | own)
        with pytest.raises(InputError, match="question"):
            prompt_for(monitor, {"context": PASSAGES})


def test_a_message_of_passages_alone_goes(monitor):
    chat = [*CHAT[:1], {"role": "system", "content": PASSAGES[0]}, {"role": "user", "content": "When?"}]
    prompt = monitor.prompt(messages=chat, context=PASSAGES[0])
    assert prompt.without_context == "<system>Answer from the passages alone.\n<user>When?\n<assistant>"


def test_a_passage_of_one_word_is_not_taken_out_of_others(monitor):
    chat = [{"role": "user", "content": "Sources: a | 67\nWas 1967 a year?"}]
    assert monitor.prompt(messages=chat, context=["a", "67"]).question == "Sources:  | \nWas 1967 a year?"
    with pytest.raises(PromptError):
        monitor.prompt(messages=chat, context="ear")
    chinese = [{"role": "user", "content": "资料1北京是首都。首都在哪里？"}]
    assert monitor.prompt(messages=chinese, context="北京是首都。").question == "资料1首都在哪里？"


OPENED, LANES = "The Avon bridge opened in 1967.", "It has two lanes."


@pytest.mark.parametrize(
    ("content", "passages", "question"),
    [
        (f"Notes:\n- {OPENED}\n- {LANES}\n\nWhen?", [OPENED, LANES], "Notes:\n\nWhen?"),
        (f'Notes:\n 1. {OPENED}\n[2] "{LANES}"\n\nWhen?', [OPENED, LANES], "Notes:\n\nWhen?"),
        (f"Notes:\n{OPENED}\n{LANES}\n\nWhen?", [f"{OPENED}\n", LANES], "Notes:\n\nWhen?"),
        (f"- {OPENED} {LANES}\n* {OPENED}\nWhen?\n- {LANES}", [OPENED, LANES], "When?"),
        (f"- {OPENED} (1)\nWhen?", [OPENED], "-  (1)\nWhen?"),
    ],
)
def test_a_line_or_bullet_that_held_only_passages_goes_with_them(monitor, content, passages, question):
    chat = [{"role": "user", "content": content}]
    assert monitor.prompt(messages=chat, context=passages).question == question


@pytest.mark.parametrize(
    ("passage", "asked"),
    [
        (OPENED, f"Is it true that {OPENED}?"),
        (OPENED, f"Is it true that “{OPENED}”?"),
        (OPENED, f"Check whether {OPENED}"),
        (OPENED, f"{OPENED}?"),
        ("Lyon", "Where is Lyon?"),
        ("Lyon", "Lyon is where?"),
        ("Lyon", "Lyon's bridge, or Lyon, where is it?"),
    ],
)
def test_a_sentence_that_quotes_a_passage_stays_where_the_passage_is_also_found_apart(monitor, passage, asked):
    chat = [
        {"role": "user", "content": f"Notes:\n- {passage}\n\nHello!"},
        {"role": "assistant", "content": f"I see: {passage}"},
        {"role": "user", "content": asked},
    ]
    prompt = monitor.prompt(messages=chat, context=passage)
    assert prompt.question == asked
    assert f"<user>Notes:\n\nHello!\n<assistant>I see: \n<user>{asked}\n" in prompt.without_context


@pytest.mark.parametrize(
    ("passage", "asked"),
    [(OPENED, f"Is it true that {OPENED}?"), ("Lyon", "Where is Lyon?"), ("Lyon", "Lyon is where?")],
)
def test_a_passage_that_is_found_only_inside_a_question_is_refused(monitor, passage, asked):
    chat = [{"role": "user", "content": asked}]
    with pytest.raises(PromptError, match="only inside a sentence .*without="):
        monitor.prompt(messages=chat, context=passage)
    without = [{"role": "user", "content": "Tell me."}]
    assert monitor.prompt(messages=chat, without=without, context=passage, question=asked).question == asked


def test_passages_one_after_the_other_are_no_sentence(monitor):
    chat = [{"role": "user", "content": "Context Lyon is large Paris is larger\nHow large?"}]
    prompt = monitor.prompt(messages=chat, context=["Lyon is large", "Paris is larger"])
    assert prompt.question == "Context  \nHow large?"


def test_a_chat_that_its_template_refuses_without_the_passages(monitor):
    monitor.tokenizer.chat_template = "{% if messages|length < 2 %}{{ raise_exception('two') }}{% endif %}" + TEMPLATE
    chat = [{"role": "system", "content": PASSAGES[0]}, {"role": "user", "content": "When?"}]
    with pytest.raises(InputError, match="without="):
        monitor.prompt(messages=chat, context=PASSAGES[0])


def test_without_a_context_both_are_the_same(monitor):
    prompt = monitor.prompt(messages=CHAT, context="")
    assert prompt.with_context == prompt.without_context and not prompt.has_context


@pytest.mark.parametrize(
    "given",
    [
        {"context": ["The bridge opened in  1967."]},
        {"context": PASSAGES, "without": CHAT},
        {"context": PASSAGES, "without": []},
        {"context": PASSAGES, "without": CHAT[:1]},
        {"context": PASSAGES[0], "messages": [{"role": "user", "content": PASSAGES[0]}]},
    ],
)
def test_what_does_not_make_a_pair(monitor, given):
    with pytest.raises(PromptError):
        monitor.prompt(**{"messages": CHAT} | given)


def test_a_passage_that_is_not_found_is_named(monitor):
    with pytest.raises(PromptError, match="without="):
        monitor.prompt(messages=CHAT, context=[*PASSAGES, "Something else."])


@pytest.mark.parametrize(
    "messages", ["hello", ["hello"], [{"content": "a"}], [{"role": "user", "content": [{"type": "text", "text": "a"}]}]]
)
def test_what_is_no_chat(monitor, messages):
    with pytest.raises(WrongTypeError):
        monitor.prompt(messages=messages, context="")


@pytest.mark.parametrize("content", [None, [{"type": "text", "text": "a"}]])
def test_content_that_is_no_string_is_refused_with_what_to_do(monitor, content):
    with pytest.raises(WrongTypeError, match="Join the texts"):
        monitor.prompt(messages=[{"role": "user", "content": content}], context="")


@pytest.mark.parametrize("given", [{}, {"messages": CHAT, "system": "x"}, {"question": "x", "without": CHAT}])
def test_arguments_that_do_not_go_together(monitor, given):
    with pytest.raises(InputError):
        monitor.prompt(context=PASSAGES, **given)


def test_messages_need_a_chat_template():
    with pytest.raises(InputError, match="template"):
        scripted_monitor(ANSWER).prompt(messages=CHAT, context=PASSAGES)


def test_a_batch_is_padded_on_the_left(monitor):
    prompts = monitor.prompts(
        [{"question": "When did it open?", "context": PASSAGES}, monitor.prompt(messages=CHAT, context=PASSAGES)]
    )
    inputs = prompts.inputs()
    for prompt, ids, mask in zip(prompts, inputs["input_ids"], inputs["attention_mask"], strict=True):
        assert tuple(ids[mask.bool()].tolist()) == prompt.with_context_ids
        assert mask.tolist() == sorted(mask.tolist())
    with monitor.attach(prompts) as watch:
        out = monitor.model.generate(**inputs, max_new_tokens=20)
        reports = watch.reports(out)
    assert [report.response for report in reports] == [ANSWER, ANSWER]
    assert [r.response for r in monitor.generate(prompts, max_new_tokens=20)] == [ANSWER, ANSWER]
    assert torch.equal(prompts[:1][0].inputs()["input_ids"][0], torch.tensor(prompts[0].with_context_ids))


def test_a_batch_is_of_prompts(monitor):
    with pytest.raises(InputError):
        monitor.prompts([])
    with pytest.raises(WrongTypeError):
        monitor.prompts(["a question"])


def test_the_question_is_what_follows_its_label(monitor):
    content = "Notes:\n- It is old.\n\nQuestion: How old is it?"
    prompt = monitor.prompt(messages=[{"role": "user", "content": content}], context=["It is old."])
    assert prompt.question == "How old is it?"
