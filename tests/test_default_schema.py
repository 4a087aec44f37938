"""What is measured when nothing is said is the same everywhere, and holds what its name says."""

import json

import pytest
from doubles import PASSAGES, QUESTION, rewrite

from syncheck import Monitor, MonitorConfig, feature_schema
from syncheck.base.errors import CheckpointError, InputError
from syncheck.cli import main
from syncheck.config import DEFAULT_SCHEMA


def test_by_default_a_config_has_the_default_schema_with_its_models_layers(llama):
    monitor = Monitor(llama.model, llama.tokenizer, config=MonitorConfig())
    assert (monitor.config.schema, monitor.config.layers) == (DEFAULT_SCHEMA, (2, 3, 4))
    assert monitor.schema == feature_schema(DEFAULT_SCHEMA, (2, 3, 4))


def test_a_schema_has_all_its_features_when_no_layers_are_named(llama):
    monitor = Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema="paper.v1"))
    assert len(monitor.schema.names) == 10
    report = monitor.score(monitor.prompt(question=QUESTION, context=PASSAGES), " He is a player.")
    assert list(report.sentences[0].features) == list(monitor.schema.names)


@pytest.mark.parametrize("schema", ["paper.v1", "syncheck.v1", "syncheck.v2", "syncheck.v3"])
def test_a_schema_with_lid_and_no_layers_is_refused(schema):
    with pytest.raises(InputError, match="LID"):
        MonitorConfig(schema=schema, layers=())


def test_a_schema_without_lid_has_no_layers(llama):
    config = MonitorConfig(schema="paper-no-lid.v1")
    assert config.layers == () and config == MonitorConfig(schema="paper-no-lid.v1", layers=())
    assert Monitor(llama.model, llama.tokenizer, config=config).config == config


def test_the_command_line_measures_the_default_schema(tmp_path, llama, capsys):
    folder = tmp_path / "model"
    llama.model.save_pretrained(folder)
    llama.tokenizer.save_pretrained(folder)
    records = tmp_path / "records.jsonl"
    record = {"id": "1", "question": QUESTION, "context": list(PASSAGES), "response": "He is a player."}
    records.write_text(json.dumps(record) + "\n", encoding="utf-8")
    main(["score", "--model", str(folder), "--input", str(records), "--aligner", "none"])
    (sentence,) = json.loads(capsys.readouterr().out)["sentences"]
    assert list(sentence["features"]) == list(feature_schema(DEFAULT_SCHEMA, (2, 3, 4)).names)


def test_a_saved_monitor_whose_schema_lacks_its_layers_is_refused(tmp_path, llama):
    Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema="paper.v1")).save_pretrained(tmp_path)
    rewrite(tmp_path / "config.json", {"layers": []})
    with pytest.raises(CheckpointError, match="LID"):
        Monitor.from_pretrained(tmp_path, model=llama.model, tokenizer=llama.tokenizer)
