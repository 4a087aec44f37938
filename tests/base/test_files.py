"""Files of a checkpoint: what they may be, how large, with which rights."""

import json
import os
import shutil
import stat

import numpy as np
import pytest
from doubles import LAYERS, reseal

from syncheck import Aggregator, Monitor, MonitorConfig, feature_schema
from syncheck.base.errors import CheckpointError
from syncheck.base.files import MAX_JSON_BYTES, check_digests, parse_object, read_object, write_digests
from syncheck.signals import LidReferences
from syncheck.spans import load_span_regressor


@pytest.fixture
def folder(llama, tmp_path):
    schema = feature_schema("paper.v1", LAYERS)
    features = np.random.default_rng(0).normal(size=(60, len(schema.names)))
    monitor = Monitor(
        llama.model,
        llama.tokenizer,
        config=MonitorConfig(schema="paper.v1", layers=LAYERS),
        aggregator=Aggregator.fit(features, features[:, 0] > 0, schema=schema, kind="xgb"),
        lid_references=llama.lid_references,
    )
    monitor.save_pretrained(tmp_path / "monitor")
    return tmp_path / "monitor"


def load(folder, golden):
    return Monitor.from_pretrained(folder, model=golden.model, tokenizer=golden.tokenizer)


FILES = ["config.json", "aggregator.json", "aggregator.safetensors", "lid_references.safetensors", "digests.json"]


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_all_files_follow_the_umask(llama, make_monitor, tmp_path, mask):
    before = os.umask(mask)
    try:
        make_monitor(llama, formula=None).save_pretrained(tmp_path / "monitor")
        load_span_regressor().save(tmp_path / "spans")
    finally:
        os.umask(before)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o666 & ~mask}
    assert "lid_references.safetensors" in {path.name for path in files}


@pytest.mark.parametrize("name", FILES)
def test_a_changed_byte_of_any_file_is_seen(folder, llama, name):
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    path = folder / name
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError):
        load(folder, llama)


@pytest.mark.parametrize("name", FILES[:4])
def test_a_file_of_another_monitor_is_seen(folder, llama, name):
    path = folder / name
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(CheckpointError, match="digest"):
        load(folder, llama)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("name", FILES)
def test_a_pipe_or_a_device_in_place_of_a_file_is_refused(folder, llama, name):
    path = folder / name
    path.unlink()
    os.mkfifo(path)  # who opened it would wait for a writer
    with pytest.raises(CheckpointError, match="regular"):
        load(folder, llama)
    path.unlink()
    path.symlink_to("/dev/zero")  # who read it would never end
    with pytest.raises(CheckpointError, match="regular"):
        load(folder, llama)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("name", ["spans.json", "spans.safetensors"])
def test_a_pipe_in_place_of_a_file_of_a_span_model_is_refused(tmp_path, name):
    load_span_regressor().save(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(CheckpointError, match="regular"):
        load_span_regressor(tmp_path)


def test_a_link_to_a_file_is_read(folder, llama):
    path = folder / FILES[0]
    shutil.move(path, folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")
    assert load(folder, llama).aggregator.kind == "xgb"


def test_a_file_that_is_too_large_is_refused_unread(tmp_path):
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(MAX_JSON_BYTES + 1)
    with pytest.raises(CheckpointError, match="bytes"):
        read_object(tmp_path / "large.json")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "3",
        "[1]",
        "{",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": 1' + "0" * 400 + "}",
        '{"a": ' * 10**5,
    ],
)
def test_json_that_was_never_saved_is_refused(content, tmp_path):
    with pytest.raises(CheckpointError):
        parse_object(content.encode(), tmp_path)


def test_bytes_that_are_no_utf8_are_refused(tmp_path):
    with pytest.raises(CheckpointError):
        parse_object(b'{"\xff": 1}', tmp_path)


@pytest.mark.parametrize("digests", [{}, {"format": "other"}, {"sha256": []}, {"format": "syncheck.digests.v1"}])
def test_digests_of_another_form_are_refused(digests, tmp_path):
    (tmp_path / "a").write_text("a")
    write_digests(tmp_path, ["a"])
    check_digests(tmp_path, ["a"])
    (tmp_path / "digests.json").write_text(json.dumps(digests))
    with pytest.raises(CheckpointError):
        check_digests(tmp_path, ["a"])


def test_references_that_do_not_fit_the_model_are_refused(folder, llama):
    path = folder / "lid_references.safetensors"
    for references in ({2: np.zeros((4, 5))}, {k: np.zeros((4, 5)) for k in LAYERS}):
        LidReferences(references).save(path)
        reseal(folder)
        with pytest.raises(CheckpointError, match="layers"):
            load(folder, llama)
