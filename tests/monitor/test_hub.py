"""Monitors on the Hub: its download is replaced by a folder, or its cache read as it lies on the disk."""

import huggingface_hub
import pytest
from huggingface_hub.errors import RepositoryNotFoundError
from test_checkpoint import load, trained

from syncheck.base.errors import CheckpointError, InputError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)


def test_a_repository_is_loaded(llama, monkeypatch, tmp_path):
    monitor, asked = trained(llama, "lr"), {}
    monitor.save_pretrained(tmp_path / "hub")

    def download(repo_id, **options):
        asked.update(options, repo_id=repo_id)
        return str(tmp_path / "hub")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    loaded = load("me/monitor", llama, revision=COMMIT, token="secret")
    assert loaded.config == monitor.config and loaded.trained_on == monitor.trained_on
    assert (asked["repo_id"], asked["revision"], asked["token"]) == ("me/monitor", COMMIT, "secret")
    assert all(name.endswith((".json", ".safetensors")) for name in asked["allow_patterns"])


def test_it_is_read_from_the_cache_offline(llama, tmp_path, monkeypatch):
    monkeypatch.undo()
    cached = tmp_path / "models--me--monitor"
    blobs, snapshot = cached / "blobs", cached / "snapshots" / COMMIT
    trained(llama, "lr").save_pretrained(blobs)
    snapshot.mkdir(parents=True)
    for file in blobs.iterdir():
        (snapshot / file.name).symlink_to(file)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(COMMIT)
    options = {"cache_dir": tmp_path, "local_files_only": True}
    assert load("me/monitor", llama, **options).aggregator is not None
    with pytest.raises(CheckpointError, match="me/other"):
        load("me/other", llama, **options)


def test_a_folder_is_never_looked_for_on_the_hub(llama, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trained(llama, "lr").save_pretrained("runs/monitor")
    assert load("runs/monitor", llama).aggregator is not None
    for missing in ("runs/other", "monitor", "./me/monitor", "a/b/c", tmp_path / "x", "~/monitor"):
        with pytest.raises(CheckpointError):
            load(missing, llama)
    with pytest.raises(InputError, match="revision"):
        load("runs/monitor", llama, revision="main")


def test_a_refusal_of_the_hub_is_ours(llama, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("401 Client Error")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    assert issubclass(RepositoryNotFoundError, OSError)
    with pytest.raises(CheckpointError, match="401"):
        load("me/monitor", llama)
