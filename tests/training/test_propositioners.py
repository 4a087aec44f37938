"""Propositions by rules and by models; what they are good for is in the docstrings."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from syncheck.errors import TextGeneratorError
from syncheck.labelling import InstructPropositioner, RuleBasedPropositioner, SequencePropositioner, load_propositioner


@pytest.mark.parametrize(
    ("text", "propositions"),
    [
        ("", ()),
        (" \n", ()),
        ("?! ...", ()),
        ("He was born in 1903.", ("He was born in 1903.",)),
        ("One two. Three four!", ("One two.", "Three four!")),
        ("Born in 1903; died in 1950.", ("Born in 1903", "died in 1950.")),
        (
            "He wrote four long books, and the last one was sold. He ate pears, and plums.",
            ("He wrote four long books", "the last one was sold.", "He ate pears, and plums."),
        ),
        ("He went to the sea, but she liked the hills.", ("He went to the sea", "she liked the hills.")),
        (
            "In the first year he ran, and he swam far out, while they slept in the tent.",
            ("In the first year he ran", "he swam far out", "they slept in the tent."),
        ),
        ("Red, and in the year of 1903.", ("Red, and in the year of 1903.",)),
    ],
)
def test_rules_cut_at_sentences_semicolons_and_conjunctions(text, propositions):
    assert RuleBasedPropositioner()(text) == propositions


def test_the_rules_name_themselves():
    assert load_propositioner("rules").name == "rules"
    assert "not decontextualised" in RuleBasedPropositioner.__doc__.replace("\n    ", " ")


class Scripted:
    name = "scripted"

    def __init__(self, reply):
        self.reply = reply
        self.asked = []

    def __call__(self, prompt):
        self.asked.append(prompt)
        return self.reply


def test_an_instructed_model_is_asked_for_a_list():
    evaluator = Scripted('Here it is:\n```json\n["He ran.", " ", "He swam."]\n```')
    assert InstructPropositioner(evaluator)("He ran and swam.") == ("He ran.", "He swam.")
    (prompt,) = evaluator.asked
    assert prompt.endswith("Text: He ran and swam.") and "JSON list" in prompt
    assert InstructPropositioner(evaluator)(" ") == () and len(evaluator.asked) == 1


@pytest.mark.parametrize("reply", ["He ran.", "[He ran]", '["a", 3]', '["a"'])
def test_another_answer_is_an_error(reply):
    with pytest.raises(TextGeneratorError, match="expected 'scripted' to write a JSON list of strings"):
        InstructPropositioner(Scripted(reply))("He ran.")


def test_a_checkpoint_is_loaded_as_what_it_is(tmp_path, llama, monkeypatch):
    config = LlamaConfig(
        vocab_size=len(llama.tokenizer),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=1024,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(tmp_path)
    llama.tokenizer.save_pretrained(tmp_path)
    assert isinstance(load_propositioner(tmp_path), InstructPropositioner)
    monkeypatch.setattr(SequencePropositioner, "load", classmethod(lambda cls, path, device: (path, device)))
    (tmp_path / "config.json").write_text('{"model_type": "t5", "is_encoder_decoder": true}')
    assert load_propositioner(tmp_path, device="cpu") == (tmp_path, "cpu")
