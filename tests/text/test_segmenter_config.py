import json

import pytest
from doubles import rewrite

from syncheck import Monitor, MonitorConfig, SegmenterConfig
from syncheck.base.errors import CheckpointError, InputError
from syncheck.text.sentences import ENGLISH_ABBREVIATIONS

ALL = SegmenterConfig(
    max_tokens=40,
    abbreviations=ENGLISH_ABBREVIATIONS,
    line_breaks="lists",
    cjk_stops=True,
    clauses=True,
    sentences=2,
)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        *(("max_tokens", value, "max_tokens") for value in (0, -1, 2.0, "9", True)),
        *(("sentences", value, "sentences") for value in (0, -3, None, True)),
        *(("line_breaks", value, "line_breaks") for value in ("all", "", None, ["lines"])),
        *(("cjk_stops", value, "cjk_stops") for value in (1, "yes", None)),
        ("clauses", 0, "clauses"),
        ("abbreviations", "Dr.", "tuple"),
        ("abbreviations", ["Dr."], "tuple"),
        *(
            ("abbreviations", ("Dr.", value), "abbreviations")
            for value in ("", ".", " ", "et al.", "5.", "#", "Dr. ", None, 3)
        ),
    ],
)
def test_a_value_that_cannot_be_is_refused(field, value, message):
    with pytest.raises(InputError, match=message) as error:
        SegmenterConfig(**{field: value})
    assert "found" in str(error.value)


def saved(golden, folder, segmenter):
    config = MonitorConfig(schema="paper-no-lid.v1", segmenter=segmenter)
    Monitor(golden.model, golden.tokenizer, config=config).save_pretrained(folder)
    return folder / "config.json"


def loaded(golden, folder):
    return Monitor.from_pretrained(folder, model=golden.model, tokenizer=golden.tokenizer)


def test_a_loaded_monitor_cuts_as_the_saved_one(llama, tmp_path):
    saved(llama, tmp_path, ALL)
    monitor = loaded(llama, tmp_path)
    assert monitor.config.segmenter == ALL
    assert hash(monitor.config) == hash(MonitorConfig(schema="paper-no-lid.v1", segmenter=ALL))
    prompt = monitor.prompt(question="Who?", context=["Dr. Lee met Ray in the U.S. in May."])
    report = monitor.score(prompt, "Dr. Lee, it is. So be\n- one\n- two")
    assert [sentence.text for sentence in report.sentences] == ["Dr. Lee, it is.", "So be\n- one", "- two"]


def test_a_monitor_from_before_the_options_has_the_defaults(llama, tmp_path):
    path = saved(llama, tmp_path, ALL)
    rewrite(path, {"segmenter": {"max_tokens": 40}})
    assert loaded(llama, tmp_path).config.segmenter == SegmenterConfig(max_tokens=40)


@pytest.mark.parametrize(
    "change",
    [
        {"longest": 3},
        {"abbreviations": "Dr."},
        {"abbreviations": ["et al."]},
        {"abbreviations": None},
        {"sentences": 0},
    ],
    ids=str,
)
def test_a_saved_value_that_cannot_be_is_refused(llama, tmp_path, change):
    path = saved(llama, tmp_path, ALL)
    config = json.loads(path.read_text())
    rewrite(path, {"segmenter": config["segmenter"] | change})
    with pytest.raises(CheckpointError, match="holds"):
        loaded(llama, tmp_path)
