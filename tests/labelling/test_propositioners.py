"""Propositions by rules and by models, and an AutoAIS checkpoint that judges them."""

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BatchEncoding,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from syncheck.base.errors import CheckpointError, InputError, TextGeneratorError
from syncheck.cli import main
from syncheck.labelling import (
    AutoAis,
    InstructPropositioner,
    RuleBasedPropositioner,
    SequencePropositioner,
    load_propositioner,
)


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
    with pytest.raises(TextGeneratorError, match="scripted"):
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


GOLDEN = str(Path(__file__).parents[1] / "golden" / "signals" / "llama")
TEXT = "Ada was a poet. She died. Byron lived."


class Characters:
    """One token a character, by its code point; 0 pads."""

    def __call__(self, texts, **options):
        if isinstance(texts, str):
            return BatchEncoding({"input_ids": [ord(c) for c in texts]})
        longest = max(map(len, texts))
        ids = [[ord(c) for c in text] + [0] * (longest - len(text)) for text in texts]
        mask = [[1] * len(text) + [0] * (longest - len(text)) for text in texts]
        return BatchEncoding({"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)})

    def batch_decode(self, rows, *, skip_special_tokens):
        assert skip_special_tokens
        return ["".join(chr(i) for i in row if i) for row in rows.tolist()]


class ScriptedModel:
    """Answers each prompt by a function of it, cut at the limit."""

    device = "cpu"

    def __init__(self, answer):
        self.answer = answer
        self.prompts = []

    def generate(self, input_ids, attention_mask, max_new_tokens, do_sample, num_beams):
        assert (do_sample, num_beams) == (False, 1)
        assert torch.equal(attention_mask, (input_ids != 0).long())
        prompts = Characters().batch_decode(input_ids, skip_special_tokens=True)
        self.prompts += prompts
        return Characters()([self.answer(prompt)[:max_new_tokens] for prompt in prompts])["input_ids"]


def content(prompt):
    before, text = prompt.split("Content: ")
    assert before == "Title: . Section: . "
    return text


class TestPropositioner:
    def test_it_reads_a_json_list(self):
        model = ScriptedModel(lambda prompt: json.dumps([f"On {content(prompt)}", " ", "Ada wrote."]))
        assert SequencePropositioner(model, Characters())("Ada.") == ("On Ada.", "Ada wrote.")

    def test_a_list_that_does_not_end_is_asked_for_in_halves(self):
        model = ScriptedModel(lambda prompt: json.dumps([f"{s.strip('. ')}!" for s in content(prompt).split(". ")]))
        propositioner = SequencePropositioner(model, Characters(), max_new_tokens=30)
        # the whole list has 48 characters; those of the first sentence and of the other two 19 and 29
        assert propositioner(TEXT) == ("Ada was a poet!", "She died!", "Byron lived!")
        assert [content(prompt) for prompt in model.prompts] == [TEXT, "Ada was a poet.", "She died. Byron lived."]

    @pytest.mark.parametrize("written", ["no list", '{"a": 1}', "[1]", '["a"'])
    def test_a_sentence_without_a_list_is_an_error(self, written):
        propositioner = SequencePropositioner(ScriptedModel(lambda prompt: written), Characters())
        with pytest.raises(InputError, match="JSON"):
            propositioner("She died.")

    def test_a_blank_text_has_none(self):
        assert SequencePropositioner(ScriptedModel(lambda prompt: ""), Characters())(" \n") == ()


class TestAutoAis:
    @staticmethod
    def holds(prompt):
        premise, hypothesis = prompt.removeprefix("premise: ").split(" hypothesis: ")
        return str(int(hypothesis in premise))

    def test_the_passages_are_one_premise(self):
        model = ScriptedModel(self.holds)
        judged = AutoAis(model, Characters())(["Ada\nwrote.", " ", "She died."], ["died", "sang", "wrote.\nShe"])
        assert judged == [True, False, True]
        assert model.prompts[0] == "premise: Ada\nwrote.\nShe died. hypothesis: died"

    def test_passages_beyond_the_window_are_more_premises(self):
        model = ScriptedModel(self.holds)
        window = len("premise: 0123456789 0123456789 hypothesis: ") + 4
        passages = ["She was.", "Ada wrote.", "Byron lived in Rome and sang."]
        assert AutoAis(model, Characters(), window=window)(passages, ["Ada ", "sang", "none"]) == [True, True, False]
        assert [prompt.removeprefix("premise: ").split(" hypothesis: ")[0] for prompt in model.prompts[:3]] == [
            "She was.\nAda wrote.",
            "Byron lived in",
            "Rome and sang.",
        ]
        assert all(len(prompt) <= window for prompt in model.prompts)

    def test_batches_do_not_change_the_answers(self):
        propositions = [str(i) for i in range(20)]
        judged = AutoAis(ScriptedModel(self.holds), Characters())(["3 14 15"], propositions)
        assert [i for i, supported in enumerate(judged) if supported] == [1, 3, 4, 5, 14, 15]

    def test_without_passages_nothing_is_supported(self):
        assert AutoAis(ScriptedModel(self.holds), Characters())([], ["a", "b"]) == [False, False]

    def test_without_propositions_nothing_is_asked(self):
        assert AutoAis(ScriptedModel(self.holds), Characters())(["Ada"], []) == []

    def test_another_answer_is_an_error(self):
        with pytest.raises(InputError, match="'yes'"):
            AutoAis(ScriptedModel(lambda prompt: "yes"), Characters())(["Ada"], ["Ada"])

    def test_a_proposition_longer_than_the_window_is_an_error(self):
        with pytest.raises(InputError, match="premise"):
            AutoAis(ScriptedModel(self.holds), Characters(), window=30)(["Ada"], ["Ada was a poet."])


@pytest.fixture(params=["0", "1"])
def always(request, tmp_path):
    """A tiny T5 on disk whose generation settings leave it one answer."""
    tokens = ["<pad>", "</s>", "<unk>", "0", "1", "[]"]
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")
    config = T5Config(
        vocab_size=len(tokens),
        d_model=16,
        d_kv=8,
        d_ff=16,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
    )
    torch.manual_seed(0)
    model = T5ForConditionalGeneration(config)
    model.generation_config.forced_bos_token_id = tokens.index(request.param)
    model.generation_config.forced_eos_token_id = None
    model.generation_config.no_repeat_ngram_size = 1
    model.generation_config.suppress_tokens = [i for i in range(6) if tokens[i] not in ("</s>", request.param)]
    model.save_pretrained(tmp_path)
    fast.save_pretrained(tmp_path)
    return tmp_path, request.param


def test_checkpoints_are_loaded_and_asked(always):
    folder, answer = always
    assert AutoAis.load(folder)(["Ada was here.", "So was she."], ["Ada", "she"]) == [answer == "1"] * 2
    with pytest.raises(InputError, match=f"'{answer}'"):
        SequencePropositioner.load(folder)("Ada.")


@pytest.mark.parametrize("always", ["1"], indirect=True)
@pytest.mark.parametrize("load", [AutoAis.load, SequencePropositioner.load, load_propositioner])
@pytest.mark.parametrize("damaged", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_damaged_checkpoint_is_refused(always, load, damaged):
    folder = always[0]
    content = (folder / damaged).read_bytes()
    (folder / damaged).write_bytes(content[: len(content) // 2])
    with pytest.raises(CheckpointError, match="load"):
        load(folder)


@pytest.mark.parametrize("always", ["1"], indirect=True)
@pytest.mark.parametrize("option", ["--judge=autoais:{}", "--propositioner={}"])
def test_the_command_refuses_a_damaged_checkpoint(always, option, tmp_path, capsys):
    folder = always[0]
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    data = folder / "x.jsonl"
    data.write_text(json.dumps({"topic": "Ada", "ctxs": [{"title": "Ada", "text": "Ada."}], "output": "Ada."}) + "\n")
    models = ["--model", GOLDEN, "--aligner", "none", "--schema", "paper-no-lid.v1", option.format(folder)]
    assert main(["features", *models, "--data", str(data), "--output", str(tmp_path / "x.parquet")]) == 2
    assert f"from {str(folder)!r}" in capsys.readouterr().err
