"""The starter kit's training of the reader: written claims, those held out, and what a claim sees."""

from importlib.resources import files

import pytest
import torch
import train_reader
from contrast_pairs import Claim, ContrastGroup
from tokenizers import Tokenizer
from transformers import MPNetConfig, MPNetModel

from syncheck.alignment import ReaderAligner

CONTRADICTED, SUPPORTED, NOT_STATED = range(3)


@pytest.fixture
def read(tmp_path):
    """Read files of these texts, in the order of their names."""

    def of(*texts):
        for number, text in enumerate(texts):
            (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
        return train_reader.load_written(tmp_path)

    return of


def test_written_claims_have_the_passages_before_them(read):
    first, second = read(
        "P: The café opened in 1967.\nIt has two rooms.\n\nP:  Tom owns it.\n+ Tom has a café.\n- It opened in 1976. \n"
        "? It serves tea.\n\nP: Rain fell.\n+ It rained.\n"
    )
    assert first.passages == ("The café opened in 1967.\nIt has two rooms.", "Tom owns it.")
    assert [(claim.text, claim.label) for claim in first.claims] == [
        ("Tom has a café.", SUPPORTED),
        ("It opened in 1976.", CONTRADICTED),
        ("It serves tea.", NOT_STATED),
    ]
    assert (second.passages, [claim.text for claim in second.claims]) == (("Rain fell.",), ["It rained."])
    assert {group.source for group in (first, second)} == {"written"}


def test_all_claims_about_a_context_are_one_group(read):
    claims = [f"+ Claim {number}." for number in range(14)]
    (group,) = read("\n".join(["P: One passage.", *claims]))
    assert group.passages == ("One passage.",)
    assert [f"+ {claim.text}" for claim in group.claims] == claims


def test_files_are_read_in_order_and_others_are_left_alone(read, tmp_path):
    (tmp_path / "README.md").write_text("No claims.")
    assert [group.passages for group in read("P: A.\n+ B.\n", "P: C.\n- D.\n")] == [("A.",), ("C.",)]


@pytest.mark.parametrize(
    "text",
    [
        "+ A claim before any passage.",
        "A line before any passage.",
        "P: A.\n+ B.\nC.",
        "P: A.\n+ B.\n* C.",
        "P: A.\n+ B.\n+C.",
        "P: A.\n+ B.\n\nP: C.",
    ],
)
def test_a_line_that_is_none_of_the_format_is_refused_by_name(read, text):
    with pytest.raises(ValueError, match=r"0\.txt"):
        read(text)


def test_one_context_in_twelve_is_held_out_whatever_is_claimed(read):
    groups = read("\n".join(f"P: Passage {number}.\n+ It is {number}.\n- Not {number}." for number in range(1200)))
    held_out = [group.passages for group in groups if train_reader.is_held_out(group)]
    assert 70 < len(held_out) < 130
    other = read("\n".join(f"P: Passage {number}.\nP: More.\n? Of {number}." for number in range(1200)))
    assert [group.passages[:1] for group in other if train_reader.is_held_out(group)] == held_out


def test_a_context_is_held_out_with_its_twins(read):
    held_out = next(f"P: {n}.\n" for n in range(1200) if train_reader.is_held_out(*read(f"P: {n}.\n+ A.\n")))
    trained = next(f"P: {n}.\n" for n in range(1200) if not train_reader.is_held_out(*read(f"P: {n}.\n+ A.\n")))
    groups = read(f"{held_out}+ A.\n+ B.\n\n{trained}- B.\n+ C.\n\n{trained}- C.\n\n{trained}+ A.\n")
    assert [train_reader.is_held_out(group) for group in groups] == [True, True, True, False]


@pytest.fixture(scope="module")
def encoder():
    folder = files("syncheck") / "assets" / "reader"
    return train_reader.Encoder(Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def tiny(encoder):
    """A reader of two layers with random weights and random updates."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48, "max_position_embeddings": 514}
    config = MPNetConfig(vocab_size=30527, num_hidden_layers=train_reader.FIRST_LAYER + 2, **sizes)
    reader = train_reader.trainable(MPNetModel(config, add_pooling_layer=False), seed=0).eval()
    for name, parameter in reader.named_parameters():
        if name.endswith(".up"):
            torch.nn.init.normal_(parameter)
    return reader


def test_it_is_trained_as_the_aligner_reads(encoder, tiny):
    claims = [
        Claim(text, SUPPORTED, "") for text in ("It opened in 1967.", "It opened in 1976, or so.", "Tom owns it.")
    ]
    groups = [
        ContrastGroup(("The café opened in 1967.", "Tom owns it."), tuple(claims), "", ""),
        ContrastGroup(("Rain fell.",), tuple(claims[:1]), "", ""),
    ]
    with torch.inference_mode():
        found = train_reader.logits_of(tiny, [encoder.encode(group) for group in groups])
    aligner = ReaderAligner(tiny, encoder.tokenizer)
    expected = [s for g in groups for s in aligner.align(g.passages, [claim.text for claim in g.claims])]
    assert train_reader.support_margin(found).tolist() == pytest.approx([s.log_odds for s in expected], abs=1e-4)


def test_of_a_context_that_is_too_long_the_sentences_closest_to_the_claims_stay(encoder):
    passages = tuple(f"Room {number} has a blue door and {number} chairs." for number in range(90))
    claims = (Claim("Room 71 has 71 chairs.", SUPPORTED, ""),)
    row = encoder.encode(ContrastGroup(passages, claims, "", ""))
    assert len(row.premise) <= train_reader.PREMISE_TOKENS + 2
    assert "room 71 has a blue door and 71 chairs." in encoder.tokenizer.decode(row.premise)


def test_what_is_packed_are_the_updates_of_each_matrix_and_can_be_trained_on(tiny):
    names = {name for name, p in tiny.named_parameters() if name.endswith((".down", ".up"))}
    arrays = train_reader.packed({name: p.detach() for name, p in tiny.named_parameters() if p.requires_grad})
    for name in names:
        matrix, _, factor = name.removeprefix("encoder.encoder.").rpartition(".")
        tiny.encoder.encoder.get_submodule(matrix)
        value = arrays[f"{matrix}.{factor}.int8"] * arrays[f"{matrix}.{factor}.step"]
        assert value.numpy() == pytest.approx(tiny.get_parameter(name).detach().numpy(), abs=0.05)
    assert len(arrays) == 2 * len(names) + 4
    trained = {name for name, p in tiny.named_parameters() if p.requires_grad}
    restored = train_reader.unpacked(arrays)
    assert set(restored) == trained
    for name in trained:
        assert restored[name].numpy() == pytest.approx(tiny.get_parameter(name).detach().numpy(), abs=0.05)


def test_the_report_has_figures_of_each_kind_and_of_thirds_by_overlap(encoder, tiny):
    def row(kind, shared):
        passage = "Tom owns the mill by the river"
        claims = (Claim(f"{passage} {kind}.", SUPPORTED, kind), Claim(shared, CONTRADICTED, kind))
        return encoder.encode(ContrastGroup((f"{passage}.",), claims, "", ""))

    found = train_reader.judged(tiny, [row("j", "Tom owns the ferry."), row("k", "Ann sold a boat.")])
    # the claims of k are told apart wrongly
    right = (found.labels == SUPPORTED) == torch.from_numpy(found.kinds == "j")
    logits = torch.zeros(4, 3)
    logits[:, SUPPORTED] = torch.where(right, 2.0, -2.0)
    parts = {p["part"]: p for p in train_reader.report(train_reader.replace(found, logits=logits))}
    assert {name: part["claims"] for name, part in parts.items() if "third" not in name} == {
        "all": 4, "kind j": 2, "kind k": 2,
    }  # fmt: skip
    assert sum(part["claims"] for name, part in parts.items() if "third" in name) == 4
    assert [parts[name]["ordered"] for name in ("all", "kind j", "kind k")] == [0.5, 1.0, 0.0]
    assert [parts[name]["AUROC"] for name in ("all", "kind j", "overlap, third 1")] == [0.5, 1.0, None]
