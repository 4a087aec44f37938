import copy
import json

import numpy as np
import pytest
import torch
from doubles import ANSWER, LAYERS, PASSAGES, QUESTION, rewrite
from tokenizers import Tokenizer, models
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from syncheck import Aggregator, Monitor, MonitorConfig, SegmenterConfig, feature_schema
from syncheck.base.errors import CheckpointError, MismatchError
from syncheck.testing import WordAligner

CONFIG = MonitorConfig(
    schema="syncheck.v3",
    layers=LAYERS,
    segmenter=SegmenterConfig(max_tokens=40),
    template="plain",
    backtrack_threshold=0.25,
    prune_threshold=0.5,
)


def trained(golden, kind, *, config=CONFIG):
    """A monitor with an aggregator of that kind, fitted to noise."""
    schema = feature_schema(config.schema, config.layers)
    source = np.random.default_rng(0)
    features = source.normal(size=(60, len(schema.names)))
    features[source.random(features.shape) < 0.1] = np.nan
    labels = (np.nan_to_num(features[:, 0]) + source.normal(size=60) > 0).astype(int)
    return Monitor(
        golden.model,
        golden.tokenizer,
        config=config,
        aggregator=Aggregator.fit(features, labels, schema=schema, kind=kind),
        lid_references=golden.lid_references,
        aligner=WordAligner(),
        trained_on=["b", "a", "b"],
    )


def load(folder, golden, **options):
    options = {"model": golden.model, "tokenizer": golden.tokenizer, "aligner": WordAligner(), **options}
    return Monitor.from_pretrained(folder, **options)


@pytest.fixture
def folder(llama, tmp_path):
    trained(llama, "lr").save_pretrained(tmp_path / "monitor")
    return tmp_path / "monitor"


@pytest.mark.parametrize("kind", ["lr", "xgb", "mlp", "ensemble"])
def test_loaded_scores_as_saved(golden, tmp_path, kind):
    monitor = trained(golden, kind)
    monitor.save_pretrained(tmp_path)
    loaded = load(tmp_path, golden)
    reports = [m.score(m.prompt(question=QUESTION, context=PASSAGES), ANSWER) for m in (monitor, loaded)]
    for saved, again in zip(*(report.sentences for report in reports), strict=True):
        assert saved.features == again.features
        assert saved.score == again.score and 0 < saved.score < 1
        assert saved.attribution == again.attribution


def test_everything_that_was_decided_comes_back(folder, llama):
    loaded = load(folder, llama)
    assert loaded.config == CONFIG
    assert loaded.trained_on == {"a", "b"}
    assert loaded.lid_references.layers == LAYERS
    assert loaded.aligner.name == "words"


def test_an_aligner_of_your_own_may_have_options_of_its_own(folder, llama):
    aligner = WordAligner()
    aligner.options = {"depth": 3}
    edit(folder, {"aligner_options": aligner.options})
    assert load(folder, llama, aligner=aligner).aligner is aligner


def test_a_monitor_without_aggregator_bank_and_aligner(llama, tmp_path):
    Monitor(llama.model, llama.tokenizer, config=MonitorConfig(schema="paper-no-lid.v1")).save_pretrained(tmp_path)
    loaded = load(tmp_path, llama, aligner=None)
    assert (loaded.aggregator, loaded.lid_references, loaded.aligner) == (None, None, None)


def test_nothing_is_pickled(folder):
    assert {path.suffix for path in folder.iterdir()} <= {".json", ".safetensors"}


class TestMismatch:
    def test_another_model(self, folder, mistral):
        with pytest.raises(MismatchError, match="MistralForCausalLM"):
            load(folder, mistral)

    def test_another_size(self, folder, llama):
        config = llama.model.config.to_dict() | {"num_hidden_layers": 5}
        with pytest.raises(MismatchError, match="num_hidden_layers"):
            load(folder, llama, model=LlamaForCausalLM(type(llama.model.config)(**config)))

    def test_other_weights_of_the_same_sizes(self, folder, llama):
        torch.manual_seed(0)
        other = LlamaForCausalLM(llama.model.config)
        with pytest.raises(MismatchError, match="weights_sha256"):
            load(folder, llama, model=other)
        edit(folder, {"model": {**saved(folder)["model"], "weights_sha256": None}})  # on the disk when it was saved
        assert load(folder, llama, model=other).model is other

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_the_same_weights_in_half_precision(self, folder, llama, dtype):
        half = copy.deepcopy(llama.model).to(dtype)
        assert load(folder, llama, model=half).model is half

    def test_an_aligner_of_the_same_name_and_other_weights(self, llama, make_monitor, tmp_path):
        class Known(WordAligner):
            weights = "a" * 64

            def weights_sha256(self):
                return self.weights

        aligner = Known()
        make_monitor(llama, formula=None, aligner=aligner).save_pretrained(tmp_path)
        assert load(tmp_path, llama, aligner=aligner).aligner is aligner
        aligner.weights = "b" * 64
        with pytest.raises(MismatchError, match="weights"):
            load(tmp_path, llama, aligner=aligner)

    def test_another_tokenizer(self, folder, llama):
        other = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a")))
        with pytest.raises(MismatchError, match="tokenizer_sha256"):
            load(folder, llama, tokenizer=other)

    def test_another_aligner(self, folder, llama):
        class Other(WordAligner):
            name = "other"

        with pytest.raises(MismatchError, match="'other'"):
            load(folder, llama, aligner=Other())

    @pytest.mark.parametrize(
        "change", [{"schema": "paper.v1"}, {"layers": [2, 3]}, {"layers": [4, 3, 2]}], ids=["schema", "fewer", "order"]
    )
    def test_features_that_the_aggregator_does_not_read(self, folder, llama, change):
        edit(folder, change)
        with pytest.raises(MismatchError):
            load(folder, llama)


def saved(folder):
    return json.loads((folder / "config.json").read_text())


def edit(folder, change):
    rewrite(folder / "config.json", change)


class TestDamage:
    @pytest.mark.parametrize("name", ["config.json", "aggregator.json", "lid_references.safetensors"])
    @pytest.mark.parametrize("kind", ["missing", "empty", "cut short", "other"])
    def test_files(self, folder, llama, name, kind):
        path = folder / name
        content = path.read_bytes()
        path.unlink()
        if kind != "missing":
            path.write_bytes({"empty": b"", "cut short": content[: len(content) // 2], "other": b"\xff" * 99}[kind])
        with pytest.raises(CheckpointError):
            load(folder, llama)

    def test_every_file_is_needed(self, folder, llama):
        for path in sorted(folder.iterdir()):
            content = path.read_bytes()
            path.unlink()
            with pytest.raises(CheckpointError):
                load(folder, llama)
            path.write_bytes(content)
        load(folder, llama)

    @pytest.mark.parametrize("content", ["3", "[]", "null", '"config"', "{}", '{"format": 1}'])
    def test_json_that_is_no_config(self, folder, llama, content):
        (folder / "config.json").write_text(content)
        with pytest.raises(CheckpointError, match="config"):
            load(folder, llama)

    @pytest.mark.parametrize("field", ["model", "layers", "trained_on", "schema", "segmenter"])
    def test_a_field_is_missing(self, folder, llama, field):
        rewrite(folder / "config.json", {}, without=[field])
        with pytest.raises(CheckpointError, match=f"'{field}'"):
            load(folder, llama)

    @pytest.mark.parametrize(
        "change",
        [
            {"format": 1},
            {"format": 3},
            {"format": None},
            {"layers": [2.0, 3, 4]},
            {"layers": [-1, 3, 4]},
            {"trained_on": [None]},
            {"template": "other"},
            {"lid_references": 1},
            {"aggregator": "svm"},
            {"aggregator": 3},
            {"aligner": 3},
            {"backtrack_threshold": "0.5"},
            {"prune_threshold": None},
            {"schema": "paper.v9"},
            {"schema": 5},
            {"layers": None},
            {"layers": "abc"},
            {"segmenter": None},
            {"segmenter": {"longest": 3}},
            {"model": []},
            {"trained_on": 7},
            {"aligner_options": ["split"]},
            {"aligner": "bundled", "aligner_options": {"overflows": "split"}},
        ],
        ids=str,
    )
    def test_a_field_has_a_value_that_cannot_be(self, folder, llama, change):
        edit(folder, change)
        with pytest.raises(CheckpointError):
            load(folder, llama)

    def test_a_folder_that_does_not_exist(self, llama, tmp_path):
        with pytest.raises(CheckpointError, match="save_pretrained"):
            load(tmp_path / "nothing", llama)

    @pytest.mark.parametrize(("name", "remedy"), [("config.json", "Pass"), ("mlp.pkl", "from_published")])
    def test_a_file_in_place_of_the_folder(self, llama, tmp_path, name, remedy):
        (tmp_path / name).touch()
        with pytest.raises(CheckpointError, match=remedy):
            load(tmp_path / name, llama)
