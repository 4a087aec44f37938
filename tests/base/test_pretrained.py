"""Checkpoints that cannot be loaded say so in one way, and none of them runs code."""

import ast
import io
import json
import os
import shutil
from pathlib import Path

import pytest
from transformers import (
    AutoModelForCausalLM,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    MPNetConfig,
    MPNetForSequenceClassification,
    T5Config,
    T5ForConditionalGeneration,
)

import syncheck
from syncheck import load_aligner
from syncheck.aligners import LocalTextGenerator
from syncheck.base.errors import CheckpointError
from syncheck.base.pretrained import load_model, load_pretrained, load_tokenizer

GOLDEN = Path(__file__).parents[1] / "golden"
LLAMA, ROBERTA = GOLDEN / "signals" / "llama", GOLDEN / "alignscore" / "tiny-roberta"

WAYS = {
    "language model": lambda path: load_model(str(path), "cpu"),
    "classifier": load_aligner,
    "MiniCheck": lambda path: load_aligner(f"minicheck:{path}"),
    "evaluator": LocalTextGenerator.load,
    "backbone": lambda path: load_aligner(GOLDEN / "alignscore" / "AlignScore-tiny.ckpt", backbone=path),
}
ways = pytest.mark.parametrize("load", WAYS.values(), ids=WAYS)


@pytest.fixture
def remote_code(tmp_path):
    """A folder whose config, model and tokenizer are defined by a module in it, which leaves a file when it runs."""
    folder, marker = tmp_path / "remote", tmp_path / "it-ran"
    shutil.copytree(LLAMA, folder)
    autos = ("AutoModelForCausalLM", "AutoModelForSequenceClassification", "AutoModelForSeq2SeqLM")
    code = {"AutoConfig": "own.Own", **{auto: "own.Own" for auto in autos}}
    config = json.loads((folder / "config.json").read_text()) | {"model_type": "own", "auto_map": code}
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer |= {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", "own.Own"]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    (folder / "own.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    return folder, marker


@ways
def test_code_of_a_checkpoint_is_not_run_whatever_stdin_says(load, remote_code, monkeypatch):
    folder, marker = remote_code
    answers = io.StringIO("y\ny\ny\n")
    monkeypatch.setattr("sys.stdin", answers)
    with pytest.raises(CheckpointError, match="code"):
        load(folder)
    assert not marker.exists()
    assert answers.tell() == 0


@ways
def test_missing_folder(load, tmp_path):
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["my-model", "owner/my-model"])
def test_a_name_that_is_not_cached_fails_at_once_where_the_hub_cannot_be_reached(tmp_path, monkeypatch, name):
    asked = []

    def unreachable(url, **options):
        asked.append(url)
        raise ConnectionError("no route to host")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", unreachable)
    with pytest.raises(CheckpointError, match="Hub cannot be reached .*no route to host"):
        load_model(name, "cpu")
    assert len(asked) == 1


@pytest.mark.parametrize("source", [LLAMA, ROBERTA], ids=["llama", "roberta"])
def test_folder_without_a_tokenizer(tmp_path, source):
    shutil.copytree(source, tmp_path, dirs_exist_ok=True)
    for path in tmp_path.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(CheckpointError, match="tokenizer"):
        load_tokenizer(tmp_path)


SMALL = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 110}
NLI = {"id2label": {0: "entailment", 1: "neutral"}}
WITHOUT_TOKENIZER = {  # transformers makes up tokens beside the special ones, or none at all
    "t5": lambda: T5ForConditionalGeneration(
        T5Config(vocab_size=110, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, decoder_start_token_id=0)
    ),
    "deberta-v2": lambda: DebertaV2ForSequenceClassification(DebertaV2Config(**SMALL, **NLI)),
    "mpnet": lambda: MPNetForSequenceClassification(MPNetConfig(**SMALL, **NLI)),
}


@pytest.mark.parametrize("make", WITHOUT_TOKENIZER.values(), ids=WITHOUT_TOKENIZER)
def test_aligner_without_a_tokenizer(tmp_path, make):
    make().save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        load_aligner(tmp_path)


def test_weights_that_were_cut_short(tmp_path):
    shutil.copytree(LLAMA, tmp_path, dirs_exist_ok=True)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(CheckpointError, match="causal"):
        load_pretrained(AutoModelForCausalLM, tmp_path, what="a causal language model")


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("config.json", {"hidden_size": 32}),  # not the shape of the weights
        ("config.json", {"hidden_size": "small"}),
        ("config.json", {"id2label": ["yes", "no"]}),
        ("tokenizer_config.json", None),
    ],
)
def test_files_that_do_not_go_together(tmp_path, name, changes):
    shutil.copytree(LLAMA, tmp_path, dirs_exist_ok=True)
    path = tmp_path / name
    path.write_text("[]" if changes is None else json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(CheckpointError, match="load"):
        load_pretrained(AutoModelForCausalLM, tmp_path, what="a causal language model")
        load_tokenizer(tmp_path)


@pytest.mark.slow
def test_every_auto_class_is_told_not_to_run_code():
    root = Path(__file__).parents[2]
    files = [path for name in ("syncheck", "fod", "benchmarks", "examples") for path in (root / name).rglob("*.py")]
    calls = [
        (path.name, node.lineno, {keyword.arg for keyword in node.keywords})
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).lower().startswith("auto")
        and ast.unparse(node.func).endswith(".from_pretrained")
    ]
    assert calls
    assert [call[:2] for call in calls if "trust_remote_code" not in call[2]] == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_pipe_or_a_device_in_place_of_a_checkpoints_file_is_refused(tmp_path, name):
    folder = shutil.copytree(LLAMA, tmp_path / "model")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    for load in (WAYS[way] for way in ("language model", "classifier", "evaluator")):
        with pytest.raises(CheckpointError, match="regular"):
            load(folder)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    for load in (WAYS[way] for way in ("language model", "classifier", "evaluator")):
        with pytest.raises(CheckpointError, match="regular"):
            load(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_in_place_of_an_aligners_or_a_published_file_is_refused(tmp_path):
    packed = shutil.copytree(Path(syncheck.__file__).parent / "assets" / "aligner", tmp_path / "packed")
    (packed / "tokenizer.json").unlink()
    os.mkfifo(packed / "tokenizer.json")
    for name in ("AlignScore.ckpt", "mlp.pkl"):
        os.mkfifo(tmp_path / name)
    for load in (
        lambda: load_aligner(packed),
        lambda: load_aligner(tmp_path / "AlignScore.ckpt", backbone=ROBERTA),
        lambda: syncheck.Aggregator.from_published(tmp_path / "mlp.pkl"),
    ):
        with pytest.raises(CheckpointError, match="regular"):
            load()


def test_a_bundled_aligner_of_countless_layers_is_refused_at_once(tmp_path):
    packed = shutil.copytree(Path(syncheck.__file__).parent / "assets" / "aligner", tmp_path / "packed")
    config = json.loads((packed / "config.json").read_text())
    config["encoder"]["num_hidden_layers"] = 10**7
    (packed / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="layer.4"):
        load_aligner(packed)
