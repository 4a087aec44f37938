"""The question and the passages of a request, wherever a client puts them."""

import pytest

from syncheck.serving.chat import ServerConfig, ServiceError, read_chat


def read(content="Where is Lyon?", before=(), **fields):
    messages = [*before, {"role": "user", "content": content}]
    return read_chat({"messages": messages} | fields, ServerConfig(max_context=2**30))


@pytest.mark.parametrize(
    ("fields", "passages", "names"),
    [
        ({"context": "One."}, ("One.",), None),
        ({"context": ["One.", " ", "Two."]}, ("One.", "Two."), None),
        ({"documents": [{"text": "One.", "id": 7}, "Two."]}, ("One.", "Two."), ("7", "1")),
        ({"documents": [{"id": "a", "data": {"snippet": "One.", "title": "T"}}]}, ("One.",), ("a",)),
        ({"context": {"page_content": "One.", "title": "T"}}, ("One.",), ("T",)),
        ({"context": "One.", "documents": ["Two."]}, ("One.",), None),
        ({"context": []}, (), None),
        ({"context": None}, (), None),
        ({"documents": None}, (), None),
        ({"context": None, "documents": ["Two."]}, (), None),
    ],
)
def test_fields(fields, passages, names):
    chat = read(**fields)
    assert (chat.passages, chat.passage_ids, chat.question) == (passages, names, "Where is Lyon?")
    assert "context" not in chat.body and chat.body.get("documents") == fields.get("documents")


def test_a_passage_keeps_each_name_that_it_may_be_cited_by():
    context = [
        {"text": "One.", "doc_id": 7, "url": "https://x.org"},
        {"text": "Two.", "title": "T"},
        {"text": "Three."},
    ]
    chat = read(context=[{"data": context[0]}, *context[1:]])
    assert [passage.names for passage in chat.passages] == [
        ("7", None, "https://x.org"),
        (None, "T", None),
        (None,) * 3,
    ]
    assert chat.passage_ids == ("7", "T", "2")


@pytest.mark.parametrize(
    ("content", "passages", "question"),
    [
        ("Where?", (), "Where?"),
        ("<context>One.</context>\nWhere?", ("One.",), "Where?"),
        ("<documents><document id='1'>A.</document><document>B.</document></documents> Q?", ("A.", "B."), "Q?"),
        ("<source>One.\n\nTwo.</source>\nQuestion: Where?\nAnswer:", ("One.\n\nTwo.",), "Where?"),
        ("Passage 1: One.\nPassage 2: Two.\n\nQuestion: Where?\nAnswer:\n", ("One.", "Two."), "Where?"),
        ("passage 1:One\nand more.\n\nWhere?", ("One\nand more.",), "Where?"),
        ("<context>never closed. Where?", (), "<context>never closed. Where?"),
        ("closed</context> Where?", (), "closed</context> Where?"),
        ([{"type": "text", "text": "<passage>A.</passage>"}, {"type": "text", "text": "Q?"}], ("A.",), "Q?"),
    ],
)
def test_messages(content, passages, question):
    chat = read(content)
    assert (chat.passages, chat.question) == (passages, question)


def test_tools_and_system_messages_bring_passages():
    before = [
        {"role": "system", "content": "Be brief. <context>From the system.</context>"},
        {"role": "user", "content": "<context>Of an earlier turn.</context> What?"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "From the tool."},
    ]
    assert read("Where?", before).passages == ("From the tool.", "From the system.")


@pytest.mark.parametrize("field", ["context", "documents"])
def test_null_searches_no_message(field):
    chat = read("<context>The moon is cheese.</context> Where?", **{field: None})
    assert chat.passages == () and chat.question == "Where?"


@pytest.mark.parametrize(
    "fields", [{"n": "2"}, {"n": 0}, {"n": True}, {"n": 10**9}, {"stream_options": []}, {"syncheck": {"stop_after": 1}}]
)
def test_a_field_of_another_type_is_refused_by_its_name(fields):
    with pytest.raises(ServiceError, match=next(iter(fields))):
        read(**fields)


def test_a_passage_given_twice_is_not_part_of_the_question():
    assert read("One fact.\n\nWhere?", context=["One fact."]).question == "Where?"
    assert read("One fact.", context=["One fact."]).question == "One fact."


@pytest.mark.parametrize(
    ("context", "said"),
    [
        (5, "^context must be .* found int"),
        ({"x": 1}, r"^context must be .* found dict with \['x'\]"),
        (["One.", 5], r"^context\[1\] must be .* found int"),
    ],
)
def test_what_is_no_passage_is_refused_with_its_place(context, said):
    with pytest.raises(ServiceError, match=said):
        read(context=context)


@pytest.mark.parametrize("name", ["stop_below", "reveal"])
def test_an_option_beside_the_field_syncheck_is_refused_with_its_place(name):
    with pytest.raises(ServiceError, match=f'"syncheck": {{"{name}": 0.9}}$'):
        read(**{name: 0.9})


@pytest.mark.parametrize(("options", "found"), [({"reveal": "verified", "stop": 0.5}, "'stop'"), (True, "bool")])
def test_an_unknown_option_is_refused_by_its_name(options, found):
    with pytest.raises(ServiceError, match=f"stop_below.*found .?{found}"):
        read(syncheck=options)


@pytest.mark.parametrize("text", ["<context>", "<context ", "</context>", "passage 1:", "\n ", "answer :", "<source><"])
def test_a_hostile_message_is_read_in_linear_time(text):
    assert read(text * 30_000 + " Where?").question


@pytest.mark.parametrize(
    "values", [None, {}, {"messages": [1]}, {"messages": [{"role": "user", "content": 7}]}, {"messages": [{}]}]
)
def test_another_form_is_refused(values):
    with pytest.raises(ServiceError, match="messages|object|content"):
        read_chat(values, ServerConfig())


def test_passages_from_tools_are_beside_those_of_the_fields_and_what_people_write_is_none():
    messages = [
        {"role": "system", "content": "<context>Nobody checks this.</context>"},
        {"role": "user", "content": "Where is Lyon? <context>It is in Spain.</context>"},
        {"role": "tool", "content": "Lyon is in France."},
    ]

    def read_from(passages_from, **fields):
        values = {"messages": messages, "syncheck": {"passages_from": passages_from}, **fields}
        return read_chat(values, ServerConfig())

    assert read_from("tools").passages == ("Lyon is in France.",)
    both = read_from("tools", context=[{"text": "Lyon is large.", "id": "a"}])
    assert both.passages == ("Lyon is large.", "Lyon is in France.") and both.passage_ids == ("a", "1")
    assert read_from("messages", context=["Lyon is large."]).passages == ("Lyon is large.",)
    with pytest.raises(ServiceError, match="passages_from must be one of"):
        read_from("people")
