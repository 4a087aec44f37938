"""Aliases of published aligners: what the cache of Hugging Face holds of them, and nothing from elsewhere."""

import logging
import shutil
from pathlib import Path

import httpx
import pytest
import torch
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

from syncheck.aligners import BundledAligner, ClassifierAligner, load_aligner
from syncheck.aligners.reader import network as reader_network
from syncheck.base.errors import CheckpointError, InputError

GOLDEN = Path(__file__).parents[1] / "golden" / "alignscore"
ROBERTA, HHEM = "lytang/MiniCheck-RoBERTa-Large", "vectara/hallucination_evaluation_model"
NLI = "MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Returns a function that puts a folder's files into an empty cache, as links to blobs; no network is allowed."""
    hub = tmp_path / "hub"
    monkeypatch.setattr(reader_network, "_packaged", list)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(hub))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)

    def put(repository, folder, *, revision="main", without=()):
        home = hub / f"models--{repository.replace('/', '--')}"
        snapshot = home / "snapshots" / "0123"
        for place in (snapshot, home / "blobs", home / "refs"):
            place.mkdir(parents=True, exist_ok=True)
        (home / "refs" / revision).write_text("0123")
        for file in folder.iterdir():
            if file.name not in without:
                shutil.copy(file, home / "blobs" / file.name)
                (snapshot / file.name).symlink_to(home / "blobs" / file.name)

    return put


@pytest.fixture
def alignscore(tmp_path):
    """A folder with the tiny checkpoint that says it was trained from roberta-large."""
    folder = tmp_path / "published"
    folder.mkdir()
    checkpoint = torch.load(GOLDEN / "AlignScore-tiny.ckpt", weights_only=True)
    torch.save(checkpoint | {"hyper_parameters": {"model": "roberta-large"}}, folder / "AlignScore-large.ckpt")
    return folder


def test_auto_takes_the_best_that_is_there_and_says_which(
    cache, classifier_folder, minicheck_folder, alignscore, caplog
):
    caplog.set_level(logging.INFO, "syncheck")
    steps = [
        ("bundled", None),
        (NLI, lambda: cache(NLI, classifier_folder)),
        ("hhem", lambda: cache(HHEM, classifier_folder, revision="hhem-1.0-open")),
        ("yzha/AlignScore/AlignScore-large.ckpt", lambda: put_alignscore(cache, alignscore)),
        ("lytang/MiniCheck-Flan-T5-Large", lambda: cache("lytang/MiniCheck-Flan-T5-Large", minicheck_folder)),
    ]
    for name, put in steps:
        if put is not None:
            put()
        found = load_aligner("auto")
        assert found.name == (BundledAligner.load().name if name == "bundled" else name)
        assert name in caplog.messages[-1]
        assert (caplog.records[-1].levelname == "WARNING") == (name == "bundled")
        assert len(found.align(["A cat sat."], ["A cat."])) == 1


def test_auto_prefers_the_reader_to_the_bundled_aligner(caplog):
    caplog.set_level(logging.INFO, "syncheck")
    assert load_aligner("auto").name == "reader"
    assert "reader" in caplog.messages[-1]


def put_alignscore(cache, folder):
    cache("yzha/AlignScore", folder)
    cache("roberta-large", GOLDEN / "tiny-roberta")


def test_it_scores_as_the_checkpoint_does_by_its_folder(cache, classifier_folder):
    cache(NLI, classifier_folder)
    pair = ["A cat sat on a mat."], ["A cat sat."]
    assert load_aligner("nli").align(*pair) == load_aligner(classifier_folder).align(*pair)
    assert load_aligner(load_aligner("nli").name).align(*pair) == load_aligner("nli").align(*pair)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
def test_what_is_there_in_part_does_not_count(cache, classifier_folder, missing):
    cache(NLI, classifier_folder, without=[missing])
    assert load_aligner("auto").name == "bundled"


def test_alignscore_needs_its_backbone(cache, alignscore):
    cache("yzha/AlignScore", alignscore)
    with pytest.raises(CheckpointError, match="roberta-large"):
        load_aligner("alignscore")


def test_another_revision_of_hhem_which_brings_code_does_not_count(cache, classifier_folder):
    cache(HHEM, classifier_folder)
    with pytest.raises(CheckpointError, match="hhem-1.0-open"):
        load_aligner("hhem")


@pytest.mark.parametrize("alias", ["minicheck", "alignscore", "hhem", "nli"])
def test_an_alias_that_the_cache_lacks_is_refused_with_what_to_download(cache, alias):
    with pytest.raises(CheckpointError, match="hf"):
        load_aligner(alias)


def test_an_alias_takes_no_options_and_is_no_folder(cache, classifier_folder):
    with pytest.raises(InputError, match="entailment"):
        load_aligner("auto", entailment=1)
    shutil.copytree(classifier_folder, "nli")
    with pytest.raises(InputError, match="published"):
        load_aligner("nli")
    assert load_aligner("./nli").name == "./nli"


@pytest.mark.parametrize(("name", "meant"), [("minichek", "minicheck"), ("Alignscore", "alignscore"), ("hhm", "hhem")])
def test_a_mistyped_alias_is_corrected_without_the_hub(cache, monkeypatch, name, meant):
    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", None)
    with pytest.raises(CheckpointError, match="mean") as caught:
        load_aligner(name)
    assert f"did you mean '{meant}'?" in str(caught.value) and "bundled, reader, none, auto" in str(caught.value)


class TestAnUnknownWord:
    @pytest.fixture
    def asked(self, cache, monkeypatch):
        """The addresses of which the Hub is asked; it knows roberta-large-mnli and is busy when asked for another."""
        found = []

        def answer(url):
            found.append(url)
            response = httpx.Response(503, request=httpx.Request("HEAD", url))
            if "nowhere" in url:
                raise OSError("no connection")
            if "roberta" not in url:
                kind = RepositoryNotFoundError if "unknown" in url else HfHubHTTPError
                raise kind("refused", response=response)

        monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", answer)
        monkeypatch.setattr(ClassifierAligner, "load", lambda name, **options: f"loaded {name}")
        return found

    @pytest.mark.parametrize(("name", "why"), [("nowhere", "no connection"), ("unknown", "no such repository")])
    def test_is_refused_at_once_with_the_names(self, asked, name, why):
        with pytest.raises(CheckpointError, match=why) as caught:
            load_aligner(name)
        assert "minicheck, alignscore, hhem, nli" in str(caught.value) and len(asked) == 1

    @pytest.mark.parametrize("name", ["roberta-large-mnli", "busy"])
    def test_is_loaded_where_the_hub_may_have_it(self, asked, name):
        assert load_aligner(name) == f"loaded {name}" and len(asked) == 1

    @pytest.mark.parametrize("name", ["cached-nli", "here", "an-owner/nowhere"])
    def test_that_is_cached_or_here_or_has_an_owner_is_not_asked_for(self, asked, cache, classifier_folder, name):
        cache("cached-nli", classifier_folder)
        shutil.copytree(classifier_folder, "here")
        assert load_aligner(name) == f"loaded {name}" and asked == []
