"""An exported folder, run by ``model.generate`` itself: the ids of FODGenerator, and a streamer that is served."""

import subprocess
import sys

import pytest
import torch
from doubles import PASSAGES, QUESTION

from fod import FODGenerator, export_generate
from syncheck import Monitor, MonitorConfig, load_kit
from syncheck.base.errors import InputError, WrongTypeError
from syncheck.cli import main
from syncheck.testing import SentenceGrammar

THRESHOLDS = {"backtrack_threshold": 0.5, "prune_threshold": 0.5}


class Recorder:
    def __init__(self):
        self.parts, self.ended = [], False

    def put(self, value):
        self.parts.append(value.flatten().tolist())

    def end(self):
        self.ended = True


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An export; what transformers copies of it goes to a folder of the test."""
    modules = str(tmp_path / "modules")
    monkeypatch.setattr("transformers.utils.hub.HF_MODULES_CACHE", modules)
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["export-generate", str(tmp_path / "exported")]) == 0
    return str(tmp_path / "exported")


def options(monitor, prompt):
    return {
        "max_new_tokens": 40,
        "logits_processor": [SentenceGrammar(monitor.tokenizer, prompt.with_context_ids)],
        "seed": 3,
    }


def test_the_ids_are_those_of_the_generator_and_a_streamer_is_served(folder, monitor, prompt):
    given = options(monitor, prompt)
    expected = FODGenerator(monitor.model, monitor.tokenizer, monitor, **THRESHOLDS).generate(prompt, **given)
    streamer = Recorder()
    hub = {"custom_generate": folder, "trust_remote_code": True, "monitor": monitor, **THRESHOLDS, **given}
    found = monitor.model.generate(**prompt.inputs(), prompt=prompt, streamer=streamer, **hub)
    assert torch.equal(found, expected)
    assert streamer.ended and streamer.parts[0] == list(prompt.with_context_ids)
    assert [i for part in streamer.parts for i in part] == expected[0].tolist()
    output = monitor.model.generate(question=QUESTION, context=PASSAGES, return_dict_in_generate=True, **hub)
    assert torch.equal(output.sequences, expected) and output.report.sentences
    with pytest.raises(InputError, match="input_ids"):
        monitor.model.generate(input_ids=torch.tensor([[1, 2]]), prompt=prompt, **hub)


def test_without_a_monitor_it_is_the_bundled_one(folder, monitor, prompt):
    model, tokenizer = monitor.model, monitor.tokenizer
    given = {"max_new_tokens": 12}
    expected = FODGenerator(model, tokenizer, Monitor(model, tokenizer)).generate(prompt, **given)
    hub = {"custom_generate": folder, "trust_remote_code": True, **given}
    found = model.generate(question=QUESTION, context=PASSAGES, tokenizer=tokenizer, **hub)
    assert torch.equal(found, expected)
    with pytest.raises(InputError, match="tokenizer"):
        model.generate(question=QUESTION, context=PASSAGES, **hub)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, InputError),
        ({"question": QUESTION}, InputError),
        ({"question": QUESTION, "context": []}, InputError),
        ({"question": QUESTION, "context": PASSAGES, "monitor": 3}, WrongTypeError),
    ],
)
def test_what_is_missing_is_said(folder, monitor, given, error):
    hub = {"custom_generate": folder, "trust_remote_code": True, "monitor": monitor}
    with pytest.raises(error):
        monitor.model.generate(**hub | given)


def test_transformers_asks_before_it_runs_the_code(folder, monitor):
    with pytest.raises(ValueError, match="trust_remote_code"):
        monitor.model.generate(custom_generate=folder, trust_remote_code=False, question=QUESTION, context=PASSAGES)


OWN_FILES = ("custom_generate/generate.py", "custom_generate/requirements.txt", "README.md")


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", OWN_FILES)
@pytest.mark.parametrize("content", [b"somebody's own", b"\xff", b"", None])
def test_a_file_of_another_s_is_left_alone_and_nothing_is_written(tmp_path, capsys, name, content):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if content is None:
        path.symlink_to("nowhere")
    else:
        path.write_bytes(content)
    before = contents(tmp_path)
    assert main(["export-generate", str(tmp_path)]) == 2
    assert name in capsys.readouterr().err
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", OWN_FILES)
def test_an_own_file_that_was_changed_is_left_alone(tmp_path, name):
    export_generate(tmp_path)
    with (tmp_path / name).open("a", encoding="utf-8") as file:
        file.write("a remark\n")
    before = contents(tmp_path)
    with pytest.raises(InputError, match=name):
        export_generate(tmp_path)
    assert contents(tmp_path) == before


def test_an_export_replaces_an_earlier_one(tmp_path):
    export_generate(tmp_path / "new", monitor="owner/monitor", monitor_revision="v1")
    export_generate(tmp_path / "old")
    (tmp_path / "old" / "custom_generate" / "requirements.txt").write_text("syncheck>=0.1.0\n")
    export_generate(tmp_path / "old", monitor="owner/monitor", monitor_revision="v1")
    assert contents(tmp_path / "old") == contents(tmp_path / "new")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        export_generate(tmp_path / "file" / "folder")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--monitor", "nope"], "no such folder"),
        (["--monitor", "."], "config.json"),
        (["--monitor", "untrained"], "no aggregator"),
        (["--revision", "v1"], "--revision"),
        (["--monitor", "trained", "--revision", "v1"], "--revision"),
    ],
)
def test_a_monitor_that_cannot_be_loaded_is_refused(tmp_path, monkeypatch, monitor, capsys, options, said):
    monkeypatch.chdir(tmp_path)
    load_kit("generic").save_pretrained("trained")
    Monitor(monitor.model, monitor.tokenizer, config=MonitorConfig()).save_pretrained("untrained")
    assert main(["export-generate", "out", *options]) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "out").exists()
    assert main(["export-generate", "out", "--monitor", "trained"]) == 0


def test_a_repository_is_not_looked_up_and_that_is_said(tmp_path, capsys):
    assert main(["export-generate", str(tmp_path / "out"), "--monitor", "owner/monitor", "--revision", "v1"]) == 0
    assert "not looked up" in capsys.readouterr().err


def test_a_file_in_place_of_the_folder_is_refused_by_its_name(tmp_path, capsys):
    taken = tmp_path / "answers.jsonl"
    taken.touch()
    assert main(["export-generate", str(taken)]) == 2
    told = capsys.readouterr().err
    assert f"DIR {str(taken)!r}" in told and "--output" not in told


def test_an_export_names_its_monitor_and_can_be_written_again(tmp_path):
    monitor = tmp_path / "it's mine"
    monitor.mkdir()
    for name, revision in ((str(monitor), None), ("owner/monitor", "v1")):
        export_generate(tmp_path / "out", monitor=name, monitor_revision=revision)
        code = (tmp_path / "out" / "custom_generate" / "generate.py").read_text()
        shown = subprocess.run(
            [sys.executable, "-c", f"{code}\nprint(MONITOR, REVISION)"], capture_output=True, text=True, check=True
        )
        assert shown.stdout.strip() == f"{name} {revision}"
        assert name in (tmp_path / "out" / "README.md").read_text()
