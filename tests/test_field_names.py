"""A record with the fields of another tool: which it has, which are wanted, and what to rename."""

import io
import json
import sys

import pytest

from syncheck.base.errors import RecordError
from syncheck.base.records import fields_found
from syncheck.cli import main
from syncheck.labelling import labelled_responses

RAGAS = {"user_input": "Who?", "retrieved_contexts": ["Anna."], "response": "Anna.", "reference": "Anna."}
OLD_RAGAS = {"question": "Who?", "contexts": ["Anna."], "answer": "Anna.", "ground_truth": "Anna."}
LETTUCE_DETECT = {"prompt": "Who?", "answer": "Anna.", "labels": [], "split": "test"}


@pytest.mark.parametrize(
    ("record", "renames"),
    [
        (RAGAS, ["'user_input' to 'question'", "'retrieved_contexts' to 'context'"]),
        (OLD_RAGAS, ["'contexts' to 'context'", "'answer' to 'response'"]),
        (LETTUCE_DETECT, ["'prompt' to 'question'", "'answer' to 'response'"]),
        ({"question": "Who?", "documents": ["Anna."], "response": "Anna."}, ["'documents' to 'context'"]),
        ({"question": "Who?", "context": "Anna.", "answer": "Anna."}, ["'answer' to 'response'"]),
        ({"question": "Who?", "contxt": "Anna.", "response": "Anna."}, ["'contxt' to 'context'"]),
        ({"QUESTOIN ": "Who?", "context": "Anna.", "response": "Anna."}, ["'QUESTOIN ' to 'question'"]),
        ({"question": "Who?", "context": "Anna.", "responses": "Anna.", "resp": "A."}, ["'responses' to 'response'"]),
        (
            {"question": "Who?", "contents": "Anna.", "documents": ["Anna."], "response": ""},
            ["'documents' to 'context'"],
        ),
    ],
)
def test_score_says_which_fields_it_found_and_which_it_wants(monkeypatch, capsys, record, renames):
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(record)))
    assert main(["score"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert all(repr(name) in error for name in record)
    assert all(rename in error for rename in renames)
    assert error.count(" to '") == len(renames)


@pytest.mark.parametrize("record", [RAGAS, OLD_RAGAS])
def test_so_do_the_commands_that_read_labelled_responses(record):
    with pytest.raises(RecordError, match="'context'"):
        labelled_responses([{**record, "question": "Who?", "spans": []}])


def test_a_field_that_is_there_needs_no_other_name():
    assert "rename" not in fields_found("response", {"question": "", "context": "", "prompt": "", "documents": []})
    assert fields_found("question", {}) == "found no other field"
    assert fields_found("labels", ["id", "split", "model"]) == "found 'id', 'split', 'model'"
