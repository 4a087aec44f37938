"""Tiny random models for the aligners, made in memory or written to a temporary folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from cross_encoder import CrossEncoder, save_packed
from reader_in_float import layer_in_float
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    MPNetConfig,
    MPNetModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from syncheck.aligners import (
    Aligner,
    AlignScoreAligner,
    BundledAligner,
    ClassifierAligner,
    ReaderAligner,
)
from syncheck.aligners.bundled import EncoderSizes
from syncheck.aligners.reader.layers import NORM_EPS, EncoderLayer
from syncheck.aligners.reader.network import ReaderNetwork

GOLDEN = Path(__file__).parents[1] / "golden" / "alignscore"
SPECIAL = ["[PAD]", "</s>", "[CLS]", "[SEP]", "[UNK]"]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,:"


def character_tokenizer(vocabulary: dict[str, int]) -> Tokenizer:
    """Split every text in characters, so that lengths in tokens can be counted by hand."""
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=1))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split("", "isolated")]
    )
    return tokenizer


def small_vocabulary() -> dict[str, int]:
    return {token: i for i, token in enumerate([*SPECIAL, *CHARACTERS])}


def bert_vocabulary() -> dict[str, int]:
    """Characters behind the ids that BERT's vocabulary keeps for special tokens."""
    tokens = [f"[unused{i}]" for i in range(100)] + ["[UNK]", "[CLS]", "[SEP]", *CHARACTERS]
    tokens[0] = "[PAD]"
    return {token: i for i, token in enumerate(tokens)}


@pytest.fixture(scope="session")
def bundled_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in the bundled aligner's format, with random weights."""
    torch.manual_seed(0)
    vocabulary = bert_vocabulary()
    config = EncoderSizes(
        vocab_size=len(vocabulary),
        **SIZES,
    )
    model = CrossEncoder(config).eval()
    torch.nn.init.normal_(model.head.weight)
    folder = tmp_path_factory.mktemp("bundled")
    save_packed(folder, model, character_tokenizer(vocabulary), scale=1.5, coverage=0.5, novel_pairs=-0.75, shift=-0.25)
    return folder


@pytest.fixture(scope="session")
def classifier_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A three-way NLI checkpoint with a window of 64 tokens and random weights."""
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(small_vocabulary()),
        **SIZES,
        max_position_embeddings=64,
        id2label={0: "contradiction", 1: "ENTAILMENT", 2: "neutral"},
        initializer_range=0.5,
    )
    folder = tmp_path_factory.mktemp("classifier")
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer = character_tokenizer(small_vocabulary())
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def minicheck_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder-decoder that answers "0" or "1", with random weights."""
    torch.manual_seed(2)
    config = T5Config(
        vocab_size=len(small_vocabulary()),
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
    )
    folder = tmp_path_factory.mktemp("minicheck")
    T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer = character_tokenizer(small_vocabulary())
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", eos_token="</s>"
    ).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_mpnet() -> MPNetModel:
    """An MPNet with random weights, of characters."""
    torch.manual_seed(4)
    config = MPNetConfig(
        vocab_size=len(small_vocabulary()),
        **SIZES,
        max_position_embeddings=514,
        initializer_range=0.5,
        layer_norm_eps=NORM_EPS,
    )
    return MPNetModel(config, add_pooling_layer=False).eval().requires_grad_(False)


@pytest.fixture(scope="session")
def tiny_reader(tiny_mpnet: MPNetModel) -> ReaderAligner:
    """A reader with this encoder, in float32."""
    torch.manual_seed(5)
    weights = tiny_mpnet.state_dict()
    layers = [layer_in_float(EncoderLayer.of(weights, number)) for number in range(2)]
    network = ReaderNetwork(weights, layers, read_once=1).eval()
    return ReaderAligner(network, character_tokenizer(small_vocabulary()))


@pytest.fixture(
    scope="session",
    params=["packaged", "bundled", "reader", "alignscore", "alignscore-split", "classifier", "minicheck"],
)
def aligner(
    request: pytest.FixtureRequest,
    bundled_folder: Path,
    classifier_folder: Path,
    minicheck_folder: Path,
    tiny_reader: ReaderAligner,
) -> Aligner:
    """Every aligner in turn."""
    if request.param == "reader":
        return tiny_reader
    if request.param == "packaged":
        return BundledAligner.load()
    if request.param == "bundled":
        return BundledAligner.load(bundled_folder)
    if request.param.startswith("alignscore"):
        overflow = "split" if request.param.endswith("split") else "cut"
        return AlignScoreAligner.load(
            GOLDEN / "AlignScore-tiny.ckpt", backbone=GOLDEN / "tiny-roberta", overflow=overflow
        )
    return ClassifierAligner.load(classifier_folder if request.param == "classifier" else minicheck_folder)
