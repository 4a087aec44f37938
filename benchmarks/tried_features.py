"""Signals that are in no schema: the gain of each over ``syncheck.v3`` on labelled responses, by cross-validation.

    syncheck features --data ragtruth-qa --output features.parquet
    python benchmarks/tried_features.py --features features.parquet

The kit's model reads every response again, with and without the passages; the sentences, their labels and the
features of ``syncheck.v3`` are those of the file. Candidates, each a few columns: the rank of the tokens, REFIND's
context sensitivity ratio, KL and entropy over the tokens of content words, log-probability and its gain by word, the
first and the three least likely tokens, and agreement with the answer's other sentences (the aligner's support by them,
and the share of content words that they hold).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from syncheck.aligners import Aligner, BundledAligner
from syncheck.evaluation import System, auroc_table, out_of_fold_scores
from syncheck.kit import kit_language_model
from syncheck.labelling.responses import LabelledResponse
from syncheck.monitor import Monitor
from syncheck.signals import token_statistics
from syncheck.text.words import ContextLexicon, content_words, lexical_shares
from syncheck.training import read_parquet

Floats = NDArray[np.float64]
Columns = Mapping[str, float]

CANDIDATES: Mapping[str, tuple[str, ...]] = {
    "token rank": ("mean_log_rank", "max_log_rank", "mean_log_rank_gain"),
    "CSR": ("mean_csr", "max_csr"),
    "KL and entropy over content words": ("content_kl", "content_entropy"),
    "log-probability and gain by word": ("min_word_log_prob", "min_word_gain"),
    "first and three least likely tokens": ("first_log_prob", "least_three_log_prob"),
    "agreement between sentences": ("others_support", "others_overlap"),
}
NOTHING = {name: np.nan for names in CANDIDATES.values() for name in names}
BASE = "syncheck.v3"


def log_ranks(logits: Tensor, token_ids: Tensor) -> Floats:
    """Return ln of each token's rank among the entries of its row, (T,); the likeliest has 0."""
    own = logits.gather(-1, token_ids[:, None])
    return (logits > own).sum(-1).add(1).log().double().numpy()


@torch.inference_mode()
def tokens_of(monitor: Monitor, record: LabelledResponse) -> tuple[NDArray[np.int64], dict[str, Floats]]:
    """Return the characters of a response's tokens, (T, 2), and values at each, (T,) by name."""
    prompt = monitor.prompt(question=record.question, context=record.passages)
    encoded = monitor.tokenizer(record.response, add_special_tokens=False, return_offsets_mapping=True)
    answer = torch.tensor(encoded["input_ids"])
    logits, without = (
        monitor.model(input_ids=torch.cat([torch.tensor(ids), answer])[None]).logits[0, len(ids) - 1 : -1].float()
        for ids in (prompt.with_context_ids, prompt.without_context_ids)
    )
    found = token_statistics(logits, without, answer)
    names = ("log_prob", "log_prob_without_context", "entropy", "kl")
    signals = {name: getattr(found, name) for name in names}
    signals["csr"] = found.log_prob / (found.log_prob_without_context + 1e-8)  # REFIND's context sensitivity ratio
    values = {name: signal.double().numpy() for name, signal in signals.items()}
    values |= {"log_rank": log_ranks(logits, answer), "log_rank_without": log_ranks(without, answer)}
    return np.array(encoded["offset_mapping"], dtype=np.int64).reshape(-1, 2), values


def sentence_columns(text: str, spans: NDArray[np.int64], values: Mapping[str, Floats]) -> dict[str, float]:
    """Return the features of one sentence that its tokens determine; ``spans`` lie in the response ``text``."""
    word_of = words_of(text, spans)
    content = np.array([word >= 0 and bool(content_words(w)) for word, w in word_of], dtype=bool)
    gain = values["log_prob"] - values["log_prob_without_context"]
    numbers = np.array([word for word, _ in word_of])
    by_word = [np.flatnonzero(numbers == word) for word in sorted({int(n) for n in numbers if n >= 0})]
    ranks = values["log_rank"]
    return {
        "mean_log_rank": ranks.mean(),
        "max_log_rank": ranks.max(),
        "mean_log_rank_gain": (values["log_rank_without"] - ranks).mean(),
        "mean_csr": values["csr"].mean(),
        "max_csr": values["csr"].max(),
        "content_kl": values["kl"][content].mean() if content.any() else np.nan,
        "content_entropy": values["entropy"][content].mean() if content.any() else np.nan,
        "min_word_log_prob": min((values["log_prob"][rows].sum() for rows in by_word), default=np.nan),
        "min_word_gain": min((gain[rows].sum() for rows in by_word), default=np.nan),
        "first_log_prob": values["log_prob"][0],
        "least_three_log_prob": np.sort(values["log_prob"])[:3].mean(),
    }


def words_of(text: str, spans: NDArray[np.int64]) -> list[tuple[int, str]]:
    """Return for each token the number and text of the word it begins in, split at white space; -1 for white space."""
    words = list(re.finditer(r"\S+", text))
    number_at = np.full(len(text) + 1, -1)
    for number, word in enumerate(words):
        number_at[word.start() : word.end()] = number
    numbers = [max(number_at[start:stop], default=-1) for start, stop in spans]
    return [(int(number), words[number].group() if number >= 0 else "") for number in numbers]


def columns_of(
    monitor: Monitor, aligner: Aligner, record: LabelledResponse, bounds: NDArray[np.int64]
) -> list[Columns]:
    """Return the candidates of a response's sentences, in order; ``bounds`` are theirs, (S, 2)."""
    spans, values = tokens_of(monitor, record)
    texts = [record.response[start:stop].strip() for start, stop in bounds]
    found: list[Columns] = []
    for index, (start, stop) in enumerate(bounds):
        own = np.flatnonzero((spans[:, 0] < stop) & (spans[:, 1] > start))
        columns = dict(NOTHING)
        if len(own):
            columns |= sentence_columns(record.response, spans[own], {name: v[own] for name, v in values.items()})
        others = [text for i, text in enumerate(texts) if i != index and text]
        if others and texts[index]:
            columns["others_support"] = aligner.align(others, [texts[index]])[0].score
            shares = lexical_shares(texts[index], ContextLexicon.from_passages(others))
            columns["others_overlap"] = shares.content_overlap
        found.append(columns)
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Measure the candidates and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=Path, required=True, help="made by syncheck features with the kit's model")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args(argv)
    measured = read_parquet(args.features)
    aligner = BundledAligner.load()
    monitor = Monitor(*kit_language_model(), aligner=aligner)
    rows: list[Columns] = [NOTHING] * len(measured.texts)
    for index, record in enumerate(tqdm(measured.records, desc="responses", unit=" responses")):
        own = np.flatnonzero(measured.owners == index)
        for row, columns in zip(own, columns_of(monitor, aligner, record, measured.bounds[own]), strict=True):
            rows[row] = columns
    candidates = np.array([[row[name] for name in NOTHING] for row in rows], dtype=np.float64)
    labels, used = measured.labels(), np.flatnonzero(measured.with_letter)
    base = measured.schema.names
    names = (*base, *NOTHING)
    systems = [System(BASE, base), *(System(f"and {name}", (*base, *more)) for name, more in CANDIDATES.items())]
    scores = out_of_fold_scores(
        lambda fold: np.hstack([measured.features(labels, used[fold])[used], candidates[used]]),
        labels[used],
        measured.groups[used],
        names=names,
        systems=systems,
        aggregator="ensemble",
        repeats=args.repeats,
    )
    print(auroc_table(scores, labels[used], measured.groups[used]).to_text())


if __name__ == "__main__":
    main()
