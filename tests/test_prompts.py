import pytest
import torch
from doubles import PASSAGES, QUESTION

from syncheck import prompt_from_texts
from syncheck.base.checks import names_of
from syncheck.base.errors import InputError, PromptError, WrongTypeError
from syncheck.prompts import build_prompt, chat_prompt
from syncheck.testing import scripted_monitor

CHAT = "{% for m in messages %}<user>{{ m.content }}</user>{% endfor %}{% if add_generation_prompt %}<bot>{% endif %}"


@pytest.fixture
def tokenizer(llama):
    return llama.tokenizer


@pytest.fixture
def chatty(tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer, "chat_template", CHAT)
    return tokenizer


def test_plain(tokenizer):
    prompt = build_prompt(tokenizer, question="Who?", context=["One.", "Two."])
    assert prompt.with_context == "Passage 1: One.\nPassage 2: Two.\n\nQuestion: Who?\nAnswer:\n"
    assert prompt.without_context == "Question: Who?\nAnswer:\n"
    assert (prompt.question, prompt.passages) == ("Who?", ("One.", "Two."))


def test_ragtruth(tokenizer):
    prompt = build_prompt(tokenizer, question="Who?", context=["One.", "Two."], template="ragtruth-qa")
    assert prompt.with_context == (
        "Briefly answer the following question:\nWho?\n"
        "Bear in mind that your response should be strictly based on the following two passages:\n"
        "passage 1:One.\n\npassage 2:Two.\n\n"
        "In case the passages do not contain the necessary information to answer the question, "
        'please reply with: "Unable to answer based on given passages."\noutput:'
    )
    assert prompt.without_context == "Briefly answer the following question:\nWho?\noutput:"


@pytest.mark.parametrize(("count", "words"), [(1, "one passage"), (3, "three passages"), (11, "11 passages")])
def test_ragtruth_counts_its_passages(tokenizer, count, words):
    prompt = build_prompt(tokenizer, question="Who?", context=["One."] * count, template="ragtruth-qa")
    assert f"on the following {words}:\n" in prompt.with_context


class TestSystemPrompt:
    def test_a_template_that_refuses_it(self, tokenizer, monkeypatch):
        template = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        monkeypatch.setattr(tokenizer, "chat_template", template)
        with pytest.raises(InputError, match="system"):
            build_prompt(tokenizer, question="Who?", context="One.", system="Be brief.")

    def test_a_template_that_leaves_it_out(self, tokenizer, monkeypatch):
        template = "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}"
        monkeypatch.setattr(tokenizer, "chat_template", template)
        with pytest.raises(InputError, match="system"):
            build_prompt(tokenizer, question="Who?", context="One.", system="Be brief.")

    def test_of_another_type(self, tokenizer):
        with pytest.raises(WrongTypeError, match="system"):
            build_prompt(tokenizer, question="Who?", context="One.", system=["Be brief."])


def test_ids_are_the_tokenizers(tokenizer):
    prompt = build_prompt(tokenizer, question=QUESTION, context=PASSAGES)
    assert list(prompt.with_context_ids) == tokenizer(prompt.with_context)["input_ids"]
    assert list(prompt.without_context_ids) == tokenizer(prompt.without_context)["input_ids"]
    inputs = prompt.inputs()
    assert inputs["input_ids"].tolist() == [list(prompt.with_context_ids)]
    assert torch.equal(inputs["attention_mask"], torch.ones_like(inputs["input_ids"]))


ROLES = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<bot>"
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + ROLES
LINE = "You answer questions using only the given text, in two to four sentences."


class TestChat:
    @pytest.mark.parametrize("template", ["auto", "chat"])
    def test_a_system_line_then_passages_then_the_question(self, tokenizer, monkeypatch, template):
        monkeypatch.setattr(tokenizer, "chat_template", ROLES)
        prompt = build_prompt(tokenizer, question="Who?", context=["One.", "Two."], template=template)
        assert prompt.with_context == (
            f"<system>{LINE}<user>Passage 1:\nOne.\n\nPassage 2:\nTwo.\n\n"
            "Using only these passages, answer the question: Who?<bot>"
        )
        assert prompt.without_context == (
            "<system>You answer questions in two to four sentences.<user>Answer the question: Who?<bot>"
        )
        assert list(prompt.with_context_ids) == tokenizer(prompt.with_context, add_special_tokens=False)["input_ids"]

    def test_one_passage(self, tokenizer, monkeypatch):
        monkeypatch.setattr(tokenizer, "chat_template", ROLES)
        prompt = build_prompt(tokenizer, question="Who?", context="One.")
        assert prompt.with_context.endswith("Using only this passage, answer the question: Who?<bot>")

    def test_a_template_without_system_prompts_has_the_line_in_the_user_turn(self, tokenizer, monkeypatch):
        monkeypatch.setattr(tokenizer, "chat_template", NO_SYSTEM)
        prompt = build_prompt(tokenizer, question="Who?", context="One.")
        assert prompt.with_context.startswith(f"<user>{LINE}\n\nPassage 1:\nOne.")
        assert prompt.without_context.startswith("<user>You answer questions in two to four sentences.\n\nAnswer")

    def test_a_system_prompt_replaces_the_line(self, tokenizer, monkeypatch):
        monkeypatch.setattr(tokenizer, "chat_template", ROLES)
        prompt = build_prompt(tokenizer, question="Who?", context="One.", system="Be brief.")
        assert (
            prompt.with_context.startswith("<system>Be brief.<user>Passage 1:\nOne.")
            and LINE not in prompt.with_context
        )

    def test_ragtruths_wording_is_one_user_turn(self, chatty):
        prompt = build_prompt(chatty, question="Who?", context="One.", template="ragtruth-chat")
        assert prompt.without_context == "<user>Briefly answer the following question:\nWho?\noutput:</user><bot>"
        assert prompt.with_context.startswith("<user>Briefly") and "passage 1:One." in prompt.with_context


def test_auto_without_a_chat_template_is_plain(tokenizer):
    auto, plain = (build_prompt(tokenizer, question="Who?", context="One.", template=t) for t in ("auto", "plain"))
    assert auto == plain


@pytest.mark.parametrize("template", ["chat", "ragtruth-chat", "poem"])
def test_a_template_that_the_tokenizer_lacks_or_nobody_knows(tokenizer, template):
    with pytest.raises(InputError, match="template"):
        build_prompt(tokenizer, question="Who?", context="One.", template=template)


@pytest.mark.parametrize("context", ["", [], [""], ["  ", "\n"]], ids=repr)
def test_an_empty_context_is_allowed(tokenizer, context):
    prompt = build_prompt(tokenizer, question="Who?", context=context)
    assert not prompt.has_context and prompt.with_context_ids == prompt.without_context_ids


@pytest.mark.parametrize(
    ("template", "first", "third"),
    [
        ("plain", "Passage 1: One.\n", "Passage 3: Two.\n"),
        ("ragtruth-qa", "following two passages:\npassage 1:One.\n\n", "passage 3:Two.\n\n"),
    ],
)
def test_blank_passages_keep_their_number(tokenizer, template, first, third):
    given = build_prompt(tokenizer, question="Who?", context=["One.", " ", "Two.", ""], template=template)
    assert given.passages == ("One.", " ", "Two.", "")
    assert f"{first}{third}" in given.with_context
    without = build_prompt(tokenizer, question="Who?", context=[], template=template)
    assert given.without_context == without.with_context == without.without_context


def test_a_chat_with_one_passage_and_a_blank_one():
    assert chat_prompt("Who?", ["\n", "Two."])[1] == (
        "Passage 2:\nTwo.\n\nUsing only this passage, answer the question: Who?"
    )
    assert chat_prompt("Who?", ["\n"]) == chat_prompt("Who?", [])


def test_a_string_is_one_passage(tokenizer):
    assert build_prompt(tokenizer, question="Who?", context="One.\n\nTwo.").passages == ("One.\n\nTwo.",)


@pytest.mark.parametrize("context", [None, 5, ["a", 5], {"a": "b"}, b"a"], ids=repr)
def test_a_context_of_another_type(tokenizer, context):
    with pytest.raises(WrongTypeError, match="context"):
        build_prompt(tokenizer, question="Who?", context=context)


@pytest.mark.parametrize(
    ("context", "found"),
    [
        (["a", {"title": "b"}], r"context\[1\] .* 'text'; found one with \['title'\]"),
        (({"title": "a"},), r"context\[0\] .* 'text'; found one with \['title'\]"),
        (b"a", "a list of strings, or one string; found bytes"),
        (5, "found int"),
    ],
    ids=repr,
)
def test_the_item_of_another_type_is_named(tokenizer, context, found):
    with pytest.raises(WrongTypeError, match=found):
        build_prompt(tokenizer, question="Who?", context=context)


def test_a_mapping_with_a_text_is_a_passage_with_names(tokenizer):
    made = build_prompt(tokenizer, question="Who?", context=["a", {"text": "b", "title": "B"}])
    assert made == build_prompt(tokenizer, question="Who?", context=["a", "b"])
    assert names_of(made.passages[1]).title == "B"


@pytest.mark.parametrize("given", [{}, {"question": "Who?"}, {"messages": [{"role": "user", "content": "Who?"}]}])
def test_a_monitor_s_prompt_without_a_context(given):
    with pytest.raises(WrongTypeError, match=r"Monitor\.prompt needs context="):
        scripted_monitor("One.").prompt(**given)


@pytest.mark.parametrize("question", [None, 5, ["Who?"]], ids=repr)
def test_a_question_of_another_type(tokenizer, question):
    with pytest.raises(WrongTypeError, match="question"):
        build_prompt(tokenizer, question=question, context="One.")


@pytest.mark.parametrize("question", ["", " \n"], ids=repr)
def test_an_empty_question(tokenizer, question):
    with pytest.raises(PromptError, match="question"):
        build_prompt(tokenizer, question=question, context="One.")


class TestOwnTexts:
    def test_they_are_kept_and_tokenised_as_they_are(self, tokenizer):
        prompt = prompt_from_texts(
            tokenizer, question="Who?", context=["One."], with_context="One. Who?", without_context="Who?"
        )
        assert (prompt.with_context, prompt.without_context) == ("One. Who?", "Who?")
        assert list(prompt.with_context_ids) == tokenizer("One. Who?")["input_ids"]

    def test_user_turns_are_put_in_the_chat_template(self, chatty):
        prompt = prompt_from_texts(
            chatty, question="?", context="One.", with_context="One. Who?", without_context="Who?", user_turns=True
        )
        assert prompt.with_context == "<user>One. Who?</user><bot>"
        assert prompt.without_context == "<user>Who?</user><bot>"
        assert list(prompt.with_context_ids) == chatty(prompt.with_context, add_special_tokens=False)["input_ids"]

    @pytest.mark.parametrize("user_turns", [False, True])
    def test_without_a_chat_template_user_turns_are_texts(self, tokenizer, user_turns):
        options = {"question": "?", "context": "One.", "with_context": "One. Who?", "without_context": "Who?"}
        prompt = prompt_from_texts(tokenizer, **options, user_turns=user_turns)
        assert prompt == prompt_from_texts(tokenizer, **options)
        assert prompt.with_context == "One. Who?"

    def test_texts_that_are_no_user_turns_pass_the_chat_template_by(self, chatty):
        prompt = prompt_from_texts(
            chatty, question="?", context="One.", with_context="One. Who?", without_context="Who?"
        )
        assert prompt.with_context == "One. Who?"

    def test_equal_texts_with_a_context(self, tokenizer):
        with pytest.raises(PromptError, match="equal"):
            prompt_from_texts(tokenizer, question="Who?", context="One.", with_context="Who?", without_context="Who?")

    def test_equal_texts_without_a_context(self, tokenizer):
        prompt = prompt_from_texts(tokenizer, question="Who?", context="", with_context="Who?", without_context="Who?")
        assert not prompt.has_context

    @pytest.mark.parametrize("texts", [("", "Who?"), ("One.", "")], ids=repr)
    def test_an_empty_text(self, tokenizer, texts):
        with pytest.raises(PromptError, match="tokens"):
            prompt_from_texts(
                tokenizer, question="Who?", context="One.", with_context=texts[0], without_context=texts[1]
            )

    @pytest.mark.parametrize("texts", [(None, "Who?"), ("One.", 5)], ids=repr)
    def test_a_text_of_another_type(self, tokenizer, texts):
        with pytest.raises(WrongTypeError, match="string"):
            prompt_from_texts(
                tokenizer, question="Who?", context="One.", with_context=texts[0], without_context=texts[1]
            )
