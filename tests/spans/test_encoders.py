import numpy as np
import pytest
import torch
from span_doubles import saved_tokenizer, tiny_bert
from transformers import BertModel

from syncheck.base.errors import InputError
from syncheck.spans import (
    CheckpointEncoder,
    LetterEncoder,
    far_sentences,
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
