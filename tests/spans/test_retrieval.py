import numpy as np
import pytest
import torch
from span_doubles import saved_tokenizer, table, tiny_bert
from transformers import BertModel

from syncheck.base.errors import InputError, RecordError
from syncheck.spans import (
    CheckpointEncoder,
    ChunkRetriever,
    LetterEncoder,
    far_sentences,
    load_passages,
)


def test_an_encoder_gives_the_mean_of_the_last_states_of_length_one(tmp_path):
    torch.manual_seed(0)
    model = BertModel(tiny_bert()).eval()
    model.save_pretrained(tmp_path)
    saved_tokenizer(tmp_path, 8)
    found = CheckpointEncoder(str(tmp_path), prefix="a ")(["fox", "red fox in"])
    for row, ids in zip(found, ([1, 4, 6, 2], [1, 4, 5, 6, 7, 2]), strict=True):
        with torch.inference_mode():
            mean = model(torch.tensor([ids])).last_hidden_state[0].mean(0).double().numpy()
        assert row == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
    with pytest.raises(InputError, match="window"):
        CheckpointEncoder(str(tmp_path))(["a red fox in 1999 a red fox"])


def test_letters_tell_equal_sentences_from_other_ones():
    assert far_sentences("It is a red fox. Born in 1999.", ["It is a red fox."], LetterEncoder()) == [(17, 30)]


def test_bm25_finds_and_the_encoder_orders():
    texts = ["The fox is red. The fox sleeps.", "A hen is white."]
    assert ChunkRetriever(texts).best("Is the fox red?")[0] == "The fox is red."
    vectors = {
        "Is the fox red?": [1, 0],
        "The fox is red.": [0, 1],
        "The fox sleeps.": [1, 0],
        "A hen is white.": [0, 1],
    }
    assert ChunkRetriever(texts, encoder=table(vectors)).best("Is the fox red?")[0] == "The fox sleeps."


@pytest.mark.parametrize(
    ("texts", "question", "best"),
    [
        (["城堡建于1342年。", "狐狸是红色的。"], "狐狸是什么颜色？", "狐狸是红色的。"),
        (["किला 1342 में बना।", "कैदी भाग गए।"], "कैदी कहाँ गए?", "कैदी भाग गए।"),
        (["بُنيت القلعة عام 1342.", "الثعلب أحمر."], "ما لون الثعلب؟", "الثعلب أحمر."),
    ],
)
def test_texts_of_any_script_are_found(texts, question, best):
    assert ChunkRetriever(texts).best(question)[0] == best


def test_a_vowel_sign_is_no_border_of_a_word():
    # Cut at the vowels, both would be the letters k and l.
    assert ChunkRetriever(["कोला।", "किला।"]).best("किला?") == ("किला।",)


def test_passages_are_read_with_their_titles(tmp_path):
    path = tmp_path / "wiki.jsonl"
    path.write_text('{"title": "Rome", "text": "A city."}\n{"text": "Hills."}\n')
    assert load_passages(path) == ["Rome\nA city.", "Hills."]
    path.write_text("")
    with pytest.raises(InputError, match=r"wiki\.jsonl"):
        load_passages(path)


@pytest.mark.parametrize(
    ("line", "field"),
    [('{"title": "Rome"}', "text"), ('{"text": " "}', "text"), ('{"text": "a", "title": 1}', "title")],
)
def test_a_bad_passage_is_located(tmp_path, line, field):
    path = tmp_path / "wiki.jsonl"
    path.write_text('{"text": "A city."}\n' + line)
    with pytest.raises(RecordError) as caught:
        load_passages(path)
    assert (caught.value.source, caught.value.line, caught.value.field) == (str(path), 2, field)
