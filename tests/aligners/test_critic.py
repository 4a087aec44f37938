"""CriticTok: Self-RAG's [IsSup] tokens as an aligner; the contract of all aligners is tested beside it."""

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from syncheck.aligners import CriticAligner, QuestionAligner, load_aligner
from syncheck.base.errors import CheckpointError, InputError

PASSAGE = "the bridge was built in 1903."
CLAIM = "it was built in 1904."
QUESTION = "when was it built"


@pytest.fixture(scope="module")
def critic(critic_folder):
    return CriticAligner.load(critic_folder)


def expected(folder, question, passage, claim):
    """Share of [Fully supported] among the three tokens, from a whole forward."""
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    text = (
        f"### Instruction:\n{question}\n\n### Response:\n[Retrieval]<paragraph>{passage}</paragraph>[Relevant]{claim}"
    )
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    for token in ("[Retrieval]", "<paragraph>", "</paragraph>", "[Relevant]"):
        assert (ids == tokenizer.convert_tokens_to_ids(token)).sum() == 1
    with torch.inference_mode():
        probabilities = model(ids).logits[0, -1].softmax(-1)
    names = ("[Fully supported]", "[Partially supported]", "[No support / Contradictory]")
    full, partial, none = (probabilities[tokenizer.convert_tokens_to_ids(name)].item() for name in names)
    return full / (full + partial + none)


def test_the_score_is_the_share_of_fully_supported(critic, critic_folder):
    (support,) = critic.about(QUESTION).align([PASSAGE], [CLAIM])
    assert support.score == pytest.approx(expected(critic_folder, QUESTION, PASSAGE, CLAIM), abs=1e-5)
    assert support.evidence.text == PASSAGE


def test_the_question_counts(critic, critic_folder):
    (with_question,) = critic.about(QUESTION).align([PASSAGE], [CLAIM])
    (without,) = critic.align([PASSAGE], [CLAIM])
    assert without.score == pytest.approx(expected(critic_folder, "", PASSAGE, CLAIM), abs=1e-5)
    assert abs(with_question.score - without.score) > 1e-4


def test_a_monitor_passes_its_question(critic, make_monitor, llama):
    assert isinstance(critic, QuestionAligner)
    monitor = make_monitor(llama, schema="paper-no-lid.v1", formula=lambda v: v["align_score"], aligner=critic)
    report = monitor.score(monitor.prompt(question=QUESTION, context=[PASSAGE]), CLAIM)
    (support,) = critic.about(QUESTION).align([PASSAGE], [CLAIM])
    assert [s.score for s in report.sentences] == [pytest.approx(support.score, abs=1e-6)]


def test_found_again_by_its_name(critic, critic_folder):
    loaded = load_aligner(critic.name)
    assert (critic.name, loaded.name) == (f"critic:{critic_folder}", critic.name)
    assert critic.about(QUESTION).name == critic.name
    assert loaded.align([PASSAGE], [CLAIM]) == critic.align([PASSAGE], [CLAIM])


def test_other_checkpoints_are_refused(llama):
    with pytest.raises(CheckpointError, match="Self-RAG"):
        CriticAligner(llama.model, llama.tokenizer)


def test_a_question_that_leaves_no_room_is_refused(critic):
    with pytest.raises(InputError, match="128"):
        critic.about("x" * 200)
