import json

import pytest

from syncheck.base.errors import InputError, RecordError
from syncheck.labelling import Selection, UnfaithfulSpan, load_ragtruth, load_records

SOURCE = {
    "source_id": "7",
    "task_type": "QA",
    "source": "MARCO",
    "source_info": {
        "question": "how big is paris",
        "passages": "passage 1:Paris is big.\nVery passage 2: big.\n\npassage 2: So is Rome.\n\n",
    },
    "prompt": "Briefly answer the following question: ...",
}
LABEL = {
    "start": 0,
    "end": 5,
    "text": "Paris",
    "meta": "",
    "label_type": "Evident Conflict",
    "implicit_true": True,
    "due_to_null": False,
}
RESPONSE = {
    "id": "70",
    "source_id": "7",
    "model": "llama",
    "temperature": 0.7,
    "labels": [LABEL],
    "split": "test",
    "quality": "good",
    "response": "Paris is big.",
}


def write(path, *records):
    path.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in records))
    return path


def ragtruth(folder, responses, sources=(SOURCE,)):
    write(folder / "source_info.jsonl", *sources)
    write(folder / "response.jsonl", *responses)
    return folder


def test_ragtruth(tmp_path):
    (record,) = load_records(ragtruth(tmp_path, [RESPONSE]))
    assert (record.id, record.group, record.generator, record.task) == ("70", "7", "llama", "QA")
    assert (record.quality, record.split) == ("good", "test")
    assert record.question == "how big is paris"
    assert record.passages == ("Paris is big.\nVery passage 2: big.", "So is Rome.")
    assert record.spans == (UnfaithfulSpan(0, 5, implicit_true=True, label_type="Evident Conflict"),)
    assert record.sentences is None


def test_ragtruth_ids_and_temperatures_may_be_missing(tmp_path):
    without = {key: value for key, value in RESPONSE.items() if key != "id"} | {"temperature": None}
    (record,) = load_ragtruth(ragtruth(tmp_path, [without]))
    assert record.id == "7/llama"


def test_ragtruth_passes_over_other_tasks(tmp_path):
    article = {"source_id": "8", "task_type": "Summary", "source_info": "An article."}
    summary = RESPONSE | {"id": "80", "source_id": "8"}
    (record,) = load_ragtruth(ragtruth(tmp_path, [summary, RESPONSE], [SOURCE, article]))
    assert record.id == "70"
    with pytest.raises(InputError, match="'Summary'"):
        load_ragtruth(ragtruth(tmp_path, [summary], [SOURCE, article]))


def test_ragtruth_without_one_of_its_files(tmp_path):
    write(tmp_path / "source_info.jsonl", SOURCE)
    with pytest.raises(InputError, match=r"response\.jsonl"):
        load_ragtruth(tmp_path)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"source_id": "9"}, "source_id"),
        ({"response": None}, "response"),
        ({"labels": [LABEL, LABEL | {"end": "5"}]}, "labels[1].end"),
        ({"labels": [LABEL | {"end": 14}]}, "labels[0]"),
        ({"labels": [LABEL | {"implicit_true": "no"}]}, "labels[0].implicit_true"),
        ({"labels": ["Paris"]}, "labels[0]"),
        ({"id": "70"}, "id"),
        ({"quality": "best"}, "quality"),
    ],
)
def test_a_bad_ragtruth_response_is_located(tmp_path, change, field):
    ragtruth(tmp_path, [RESPONSE, "\n", RESPONSE | {"id": "71"} | change])
    with pytest.raises(RecordError) as caught:
        load_ragtruth(tmp_path)
    assert (caught.value.line, caught.value.field) == (3, field)
    assert caught.value.source == str(tmp_path / "response.jsonl")


@pytest.mark.parametrize(
    ("info", "field"),
    [
        ("text", "source_info"),
        ({"passages": "passage 1:a"}, "source_info.question"),
        ({"question": "q", "passages": "no numbers"}, "source_info.passages"),
    ],
)
def test_a_bad_ragtruth_source_is_located(tmp_path, info, field):
    ragtruth(tmp_path, [RESPONSE], [SOURCE | {"source_info": info}])
    with pytest.raises(RecordError) as caught:
        load_ragtruth(tmp_path)
    assert (caught.value.line, caught.value.field) == (1, field)
    assert caught.value.source == str(tmp_path / "source_info.jsonl")


ARTICLE = "(CNN)A duke was seen.  He ran away. Nobody knows why.\n"
SUMMARY = {
    "source_id": "8",
    "task_type": "Summary",
    "source": "CNN/DM",
    "source_info": ARTICLE,
    "prompt": f"Summarize the following news within 20 words:\n{ARTICLE}\noutput:",
}
BUSINESS = {
    "name": "Café Cucas",
    "hours": {"Monday": "7:0-0:0"},
    "attributes": {"WiFi": "no", "Music": None},
    "business_stars": 3.5,
    "review_info": [{"review_stars": 4.0, "review_text": "Tasty."}, {"review_stars": 1.0, "review_text": "Rude."}],
}
DATA2TXT = {"source_id": "9", "task_type": "Data2txt", "source": "Yelp", "source_info": BUSINESS}
OVERVIEW = "Write an objective overview about the following local business based only on the provided structured data"


def sources_of_all_tasks(folder, **changes):
    responses = [RESPONSE | {"id": f"{i}0", "source_id": str(i)} | changes for i in (7, 8, 9)]
    return ragtruth(folder, responses, [SOURCE, SUMMARY, DATA2TXT])


def test_summaries(tmp_path):
    (record,) = load_ragtruth(sources_of_all_tasks(tmp_path), Selection(("Summary",)))
    assert (record.id, record.task, record.group) == ("80", "Summary", "8")
    assert record.question == "Summarize the following news within 20 words:"
    assert record.passages == (ARTICLE,)
    assert record.prompt_with_context == SUMMARY["prompt"]
    assert record.prompt_without_context == (
        "Summarize the following news within 20 words:\n(CNN)A duke was seen.\noutput:"
    )
    assert record.user_turns


def test_a_summary_without_the_corpus_prompt_has_its_words_without_a_limit(tmp_path):
    source = {key: value for key, value in SUMMARY.items() if key != "prompt"}
    (record,) = load_ragtruth(ragtruth(tmp_path, [RESPONSE | {"source_id": "8"}], [source]), Selection(("Summary",)))
    assert record.prompt_with_context == f"Summarize the following news:\n{ARTICLE}\noutput:"
    assert record.prompt_without_context == "Summarize the following news:\n(CNN)A duke was seen.\noutput:"


def test_data_to_text(tmp_path):
    (record,) = load_ragtruth(sources_of_all_tasks(tmp_path), Selection(("Data2txt",)))
    assert record.task == "Data2txt"
    assert record.question == f"{OVERVIEW}."
    assert record.passages == (
        '{"name": "Café Cucas", "business_stars": 3.5}',
        '{"hours": {"Monday": "7:0-0:0"}}',
        '{"attributes": {"WiFi": "no", "Music": null}}',
        '{"review_info": {"review_stars": 4.0, "review_text": "Tasty."}}',
        '{"review_info": {"review_stars": 1.0, "review_text": "Rude."}}',
    )
    assert record.prompt_with_context == (
        f"Instruction:\n{OVERVIEW} in the JSON format. You should include details and cover the information mentioned "
        "in the customers' review. The overview should be 100 - 200 words. Don't make up information.\n"
        "Structured data:\n{'name': 'Café Cucas', 'hours': {'Monday': '7:0-0:0'}, 'attributes': {'WiFi': 'no', "
        "'Music': None}, 'business_stars': 3.5, 'review_info': [{'review_stars': 4.0, 'review_text': 'Tasty.'}, "
        "{'review_stars': 1.0, 'review_text': 'Rude.'}]}\nOverview:"
    )
    assert record.prompt_without_context == (
        f"Instruction:\n{OVERVIEW} in the JSON format.\n{{'name': 'Café Cucas', 'hours': {{'Monday': '7:0-0:0'}}, "
        "'attributes': {'WiFi': 'no', 'Music': None}, 'business_stars': 3.5}\noutput:"
    )
    assert record.user_turns


def test_the_corpus_prompt_of_a_business_is_taken_as_it_is(tmp_path):
    source = DATA2TXT | {"prompt": "Instruction: ..."}
    (record,) = load_ragtruth(ragtruth(tmp_path, [RESPONSE | {"source_id": "9"}], [source]), Selection(("Data2txt",)))
    assert record.prompt_with_context == "Instruction: ..."


def test_questions_are_left_to_the_monitors_template_unless_the_tasks_is_asked_for(tmp_path):
    folder = sources_of_all_tasks(tmp_path)
    (left,) = load_ragtruth(folder)
    assert (left.prompt_with_context, left.prompt_without_context, left.user_turns) == (None, None, False)
    (own,) = load_ragtruth(folder, prompts="task")
    assert own.prompt_with_context == SOURCE["prompt"]
    assert own.prompt_without_context == "Briefly answer the following question:\nhow big is paris\noutput:"
    assert own.user_turns


def test_a_question_without_the_corpus_prompt(tmp_path):
    source = {key: value for key, value in SOURCE.items() if key != "prompt"}
    (record,) = load_ragtruth(ragtruth(tmp_path, [RESPONSE], [source]), prompts="task")
    assert record.prompt_with_context.startswith(
        "Briefly answer the following question:\nhow big is paris\nBear in mind"
    )
    assert "following two passages:\npassage 1:Paris is big." in record.prompt_with_context


def test_several_tasks_in_the_order_of_the_responses(tmp_path):
    records = load_ragtruth(sources_of_all_tasks(tmp_path), Selection(["Data2txt", "QA", "Summary"]))
    assert [record.task for record in records] == ["QA", "Summary", "Data2txt"]


def test_quality(tmp_path):
    remarks = ("good", "truncated", "incorrect_refusal", None)
    responses = [RESPONSE | {"id": str(remark), "quality": remark} for remark in remarks]
    ragtruth(tmp_path, responses)
    assert [r.quality for r in load_ragtruth(tmp_path)] == list(remarks)
    assert [r.id for r in load_ragtruth(tmp_path, Selection(quality=("good", "truncated")))] == ["good", "truncated"]


def test_split(tmp_path):
    ragtruth(tmp_path, [RESPONSE, RESPONSE | {"id": "71", "split": "train"}])
    assert [r.id for r in load_ragtruth(tmp_path, Selection(split="train"))] == ["71"]
    assert [r.id for r in load_ragtruth(tmp_path, Selection(split="test"))] == ["70"]
    ragtruth(tmp_path, [RESPONSE | {"split": None}])
    with pytest.raises(RecordError) as caught:
        load_ragtruth(tmp_path, Selection(split="test"))
    assert (caught.value.line, caught.value.field) == (1, "split")


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, [0, 3, 6, 9]),
        ({"implicit_true": False}, [0, 6]),
        ({"due_to_null": False}, [0, 3]),
        ({"implicit_true": False, "due_to_null": False}, [0]),
    ],
)
def test_spans_that_do_not_count_are_left_out(tmp_path, options, left):
    flags = [(False, False), (True, False), (False, True), (True, True)]
    labels = [
        {"start": 3 * i, "end": 3 * i + 2, "implicit_true": implicit, "due_to_null": null}
        for i, (implicit, null) in enumerate(flags)
    ]
    (record,) = load_ragtruth(ragtruth(tmp_path, [RESPONSE | {"labels": labels}]), Selection(**options))
    assert [span.start for span in record.spans] == left


def test_a_span_that_does_not_count_is_still_checked(tmp_path):
    ragtruth(tmp_path, [RESPONSE | {"labels": [LABEL | {"end": 14}]}])
    with pytest.raises(RecordError, match="lie"):
        load_ragtruth(tmp_path, Selection(implicit_true=False))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": ("QA", "Poem")}, "'Poem'"),
        ({"tasks": "QA"}, "tasks"),
        ({"quality": ["best"]}, "quality"),
        ({"split": "dev"}, "split"),
        ({"generators": "gpt-4"}, "generators"),
    ],
)
def test_an_unknown_choice(tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        load_ragtruth(ragtruth(tmp_path, [RESPONSE]), Selection(**options))


def test_prompts_of_an_unknown_source(tmp_path):
    with pytest.raises(InputError, match="prompts"):
        load_ragtruth(ragtruth(tmp_path, [RESPONSE]), prompts="corpus")


@pytest.mark.parametrize(
    ("source", "field"),
    [
        (SOURCE | {"source_id": "6", "task_type": "Poem"}, "task_type"),
        (SUMMARY | {"source_info": {"article": "a"}}, "source_info"),
        (SUMMARY | {"source_info": " \n"}, "source_info"),
        (SUMMARY | {"prompt": "Summarize the following news within 20 words:\nAnother one.\noutput:"}, "prompt"),
        (SUMMARY | {"prompt": 5}, "prompt"),
        (DATA2TXT | {"source_info": "text"}, "source_info"),
        (DATA2TXT | {"source_info": {}}, "source_info"),
        (DATA2TXT | {"source_id": "7"}, "source_id"),
    ],
)
def test_a_bad_source_of_any_task_is_located(tmp_path, source, field):
    ragtruth(tmp_path, [RESPONSE], [SOURCE, source])
    with pytest.raises(RecordError) as caught:
        load_ragtruth(tmp_path, Selection(("QA", "Summary", "Data2txt")))
    assert (caught.value.line, caught.value.field) == (2, field)
    assert caught.value.source == str(tmp_path / "source_info.jsonl")
