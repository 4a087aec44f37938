"""Fields of a JSON object: read by type, or as a dataclass, with the place of what is wrong."""

import json

import pytest

from syncheck.base.errors import InputError, RecordError
from syncheck.base.records import Record
from syncheck.results import SoftSpan
from syncheck.results.types import Citation

CITED = {"marker": "[1]", "start": 0, "end": 3, "passage": None, "status": "supported", "more": 1}


def test_a_dataclass_is_read_from_its_fields():
    assert Record(CITED).of(Citation) == Citation("[1]", 0, 3, None, "supported", None)
    assert Record({"start": 0, "end": 1, "prob": 1}).of(SoftSpan) == SoftSpan(0, 1, 1.0)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"start": None}, "field 'cited.start': expected a whole number, found null"),
        ({"start": True}, "field 'cited.start': expected a whole number, found true"),
        ({"passage": "1"}, "field 'cited.passage': expected a whole number, found \"1\""),
        ({"status": "x"}, "field 'cited.status': expected one of supported, misattributed, fabricated, unresolved"),
        ({"marker": ...}, "field 'cited.marker': missing; expected a string; found 'start'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(changed, said):
    cited = {name: value for name, value in (CITED | changed).items() if value is not ...}
    with pytest.raises(InputError) as caught:
        Record({"cited": cited}).nested("cited").of(Citation)
    assert said in str(caught.value)
    with pytest.raises(RecordError, match="in.jsonl:7, field"):
        Record({"cited": cited}, "in.jsonl", 7).nested("cited").of(Citation)


def test_a_number_that_no_float_holds_is_refused():
    with pytest.raises(InputError, match="expected a number"):
        Record(json.loads(f'{{"score": {10**400}}}')).get("score", float)
