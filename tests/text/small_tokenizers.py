"""Tokenizers of the kinds in use, with a vocabulary of a few pieces: one token is a character or less."""

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast


def byte_level():
    """GPT-2 and Llama-3 style: every byte is a character of the vocabulary."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"</s>": 0, **{char: i + 1 for i, char in enumerate(alphabet)}}
    tokenizer = Tokenizer(BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")


def byte_fallback():
    """Llama-2 style: spaces as U+2581, the first one stripped, unknown characters as bytes."""
    pieces = ["</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *"\u2581abcdefghijklmnopqrstuvwxyz.,!PT"]
    vocabulary = {piece: i for i, piece in enumerate([*pieces, "an", "\u2581a", "\u2581an"])}
    merges = [("a", "n"), ("\u2581", "a"), ("\u2581", "an")]
    tokenizer = Tokenizer(BPE(vocabulary, merges, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")


TOKENIZERS = {"byte level": byte_level(), "byte fallback": byte_fallback(), "slow": ByT5Tokenizer()}


def ids_of(tokenizer, text):
    return tokenizer(text, add_special_tokens=False).input_ids
