"""The benchmark of signals that are in no schema."""

import math

import numpy as np
import pytest
import torch
import tried_features
from measured_doubles import yes_and_no

from syncheck import feature_schema
from syncheck.training import write_parquet


def test_the_likeliest_token_has_rank_one():
    logits = torch.tensor([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]])
    assert tried_features.log_ranks(logits, torch.tensor([0, 1])) == pytest.approx([0.0, math.log(3)])


def test_columns_of_a_sentence():
    text = "The lamp-post  fell."
    spans = np.array([[0, 3], [3, 8], [8, 13], [13, 15], [15, 19], [19, 20]])  # The| lamp|-post|  |fell|.
    values = {
        "log_prob": np.array([-1.0, -2.0, -3.0, -0.5, -4.0, -0.25]),
        "log_prob_without_context": np.array([-1.0, -4.0, -4.0, -0.5, -3.0, -0.25]),
        "entropy": np.array([9.0, 1.0, 2.0, 9.0, 3.0, 6.0]),
        "kl": np.array([9.0, 2.0, 4.0, 9.0, 6.0, 8.0]),
        "csr": np.array([1.0, 0.5, 0.75, 1.0, 1.5, 1.25]),
        "log_rank": np.array([0.0, 1.0, 2.0, 0.0, 3.0, 0.0]),
        "log_rank_without": np.array([0.0, 2.0, 4.0, 0.0, 3.0, 3.0]),
    }
    assert tried_features.sentence_columns(text, spans, values) == pytest.approx(
        {
            "mean_log_rank": 1.0,
            "max_log_rank": 3.0,
            "mean_log_rank_gain": 1.0,
            "mean_csr": 1.0,
            "max_csr": 1.5,
            "content_kl": 5.0,  # "lamp-post" and "fell.", two tokens each
            "content_entropy": 3.0,
            "min_word_log_prob": -5.0,
            "min_word_gain": -1.0,
            "first_log_prob": -1.0,
            "least_three_log_prob": -3.0,
        }
    )


@pytest.mark.slow
def test_every_candidate_has_a_line(tmp_path, capsys):
    schema = feature_schema("syncheck.v3", ())
    values = np.random.default_rng(0).random((24, len(schema.names)))
    write_parquet(yes_and_no(schema, values), tmp_path / "features.parquet")
    tried_features.main(["--features", str(tmp_path / "features.parquet"), "--repeats", "1"])
    printed = capsys.readouterr().out
    assert all(f"and {name}" in printed for name in tried_features.CANDIDATES)
