"""Monitors on the Hub, whose public functions are replaced by a folder, or its cache read as it lies on the disk."""

import json
import shutil
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub.errors import RepositoryNotFoundError
from test_checkpoint import load, trained

from syncheck import Monitor
from syncheck.base.errors import CheckpointError, InputError, WrongTypeError
from syncheck.stored_monitor import model_card

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROW = {
    "system": "all features",
    "subset": "all",
    "auroc": 0.9,
    "low": 0.85,
    "high": 0.95,
    "sentences": 40,
    "unfaithful": 12,
    "auprc": 0.8,
    "auprc_low": None,
    "auprc_high": None,
    "ece": None,
    "ece_low": None,
    "ece_high": None,
}
EVALUATION = {"responses": 9, "test": {"rows": [ROW, {**ROW, "subset": "qa", "system": "of a part"}]}}


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was asked")

    for name in ("snapshot_download", "create_repo", "create_branch", "upload_folder"):
        monkeypatch.setattr(huggingface_hub, name, refuse)


@pytest.fixture
def uploads(monkeypatch, tmp_path):
    """A Hub of one folder: what was called, and the files."""
    calls, store = {}, tmp_path / "hub"

    def upload(*, repo_id, folder_path, **options):
        calls["upload"] = {"repo_id": repo_id, **options}
        shutil.copytree(folder_path, store)
        return SimpleNamespace(oid=COMMIT)

    def download(repo_id, **options):
        calls["download"] = {"repo_id": repo_id, **options}
        return str(store)

    monkeypatch.setattr(huggingface_hub, "create_repo", lambda repo_id, **given: calls.update(create=given))
    monkeypatch.setattr(huggingface_hub, "create_branch", lambda repo_id, **given: calls.update(branch=given))
    monkeypatch.setattr(huggingface_hub, "upload_folder", upload)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return calls


def test_what_is_pushed_can_be_loaded(llama, uploads):
    monitor = trained(llama, "lr")
    commit = monitor.push_to_hub(
        "me/monitor", base_model="me/llama", evaluation=EVALUATION, licence="mit", private=True, revision="next"
    )
    assert commit == COMMIT and uploads["create"]["private"] is True
    assert uploads["branch"]["branch"] == uploads["upload"]["revision"] == "next"
    loaded = load("me/monitor", llama, revision=commit, token="secret")
    assert loaded.config == monitor.config and loaded.trained_on == monitor.trained_on
    asked = uploads["download"]
    assert (asked["repo_id"], asked["revision"], asked["token"]) == ("me/monitor", COMMIT, "secret")
    assert all(name.endswith((".json", ".safetensors", ".skops")) for name in asked["allow_patterns"])


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
    monkeypatch.setattr(huggingface_hub, "create_repo", refuse)
    assert issubclass(RepositoryNotFoundError, OSError)
    with pytest.raises(CheckpointError, match="401"):
        load("me/monitor", llama)
    with pytest.raises(CheckpointError, match="401"):
        trained(llama, "lr").push_to_hub("me/monitor", base_model="me/llama")


class TestCard:
    def test_it_has_the_base_model_and_the_evaluation(self, llama, tmp_path):
        path = tmp_path / "evaluation.json"
        path.write_text(json.dumps(EVALUATION))
        text = model_card(trained(llama, "lr"), "me/monitor", evaluation=path, base_model="me/llama", licence="mit")
        data = huggingface_hub.ModelCard(text).data
        assert data.base_model == "me/llama" and data.license == "mit" and data.library_name == "syncheck"
        assert "| all features | 0.900 [0.850, 0.950] | 0.800 | - |" in text and "of a part" not in text
        assert "40 sentences, 12 unfaithful" in text and "from_pretrained('me/monitor'" in text

    def test_the_base_model_is_the_one_that_was_loaded(self, llama, monkeypatch):
        monitor = trained(llama, "lr")
        with pytest.raises(InputError, match="base_model"):
            model_card(monitor, "me/monitor")  # loaded from a folder, whose path stays private
        monkeypatch.setattr(monitor.model.config, "name_or_path", "you/llama")
        assert huggingface_hub.ModelCard(model_card(monitor, "me/monitor")).data.base_model == "you/llama"

    def test_a_monitor_that_reads_text_alone_has_none(self, llama):
        text = model_card(Monitor(llama.model, llama.tokenizer), "me/monitor")
        assert "base_model" not in text and "Not evaluated." in text

    @pytest.mark.parametrize(
        ("evaluation", "error"),
        [({}, InputError), ({"test": {"rows": [{"subset": "all"}]}}, InputError), (3, WrongTypeError)],
    )
    def test_what_is_no_evaluation_is_refused(self, llama, evaluation, error):
        with pytest.raises(error):
            model_card(trained(llama, "lr"), "me/monitor", base_model="me/llama", evaluation=evaluation)

    def test_an_aligner_of_this_machine_is_refused(self, llama, tmp_path, monkeypatch):
        monitor = trained(llama, "lr")
        monkeypatch.setattr(type(monitor.aligner), "name", str(tmp_path), raising=False)
        with pytest.raises(InputError, match="aligner"):
            model_card(monitor, "me/monitor", base_model="me/llama")
