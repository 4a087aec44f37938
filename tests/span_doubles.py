"""What the tests of spans share: labelled answers, tiny checkpoints, a text generator and an encoder."""

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, PreTrainedTokenizerFast

from syncheck.results import SoftSpan, SpanItem, SpanLabels, hard_spans

NAMES = ("Anna", "Bert", "Carl", "Dora", "Emil", "Frida", "Gustav", "Hilda")


def item(index, lang="en", right=True):
    """The passages name who won; an answer that names someone else is wrong there and nowhere else."""
    name, other = NAMES[index % 8], NAMES[(index + 3) % 8]
    response = f"The race was won by {name if right else other} in the end."
    start = response.index(" by ") + 4
    soft = () if right else (SoftSpan(start, start + len(other), 0.875),)
    return SpanItem(
        id=f"{lang}-{index}-{right}",
        lang=lang,
        question=f"Who won race {index}?",
        response=response,
        passages=(f"{name} won the race in the end, by a second.",),
        labels=SpanLabels(soft, hard_spans(soft)),
    )


ITEMS = [item(i, lang, right) for i in range(24) for lang, right in (("en", True), ("fi", False), ("sv", False))]


def one(response, lang="en", passages=()):
    return SpanItem(id="1", lang=lang, question="?", response=response, passages=passages)


WORDS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "a", "red", "fox", "in", "1999")


def saved_tokenizer(folder, window):
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", model_max_length=window
    )
    fast.save_pretrained(folder)
    return fast


def tiny_bert():
    return BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=64,
        initializer_range=1.0,
    )


class Answers:
    """Says what it is told to, and keeps the prompt."""

    name = "answers"

    def __init__(self, answer):
        self.answer = answer
        self.prompt = None

    def __call__(self, prompt):
        self.prompt = prompt
        return self.answer


def table(vectors):
    """An encoder that knows its texts."""
    return lambda texts: np.array([vectors[text] for text in texts])
