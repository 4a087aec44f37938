"""Labelled responses, sentence labels and evaluation."""

from syncheck.training.crossval import cross_validate
from syncheck.training.datasets import LabelledResponse, load_jsonl, load_ragtruth, load_records
from syncheck.training.evaluate import (
    EvaluationRow,
    EvaluationTable,
    auroc_table,
    out_of_fold_scores,
)
from syncheck.training.extract import MeasuredSentences, measure
from syncheck.training.fit import fit_measured, fit_monitor
from syncheck.training.labels import LabelledSentence, UnfaithfulSpan, label_sentences, labelled_sentences
from syncheck.training.systems import System, benchmark_systems
from syncheck.training.tables import read_parquet, write_parquet
from syncheck.training.thresholds import Thresholds, choose_thresholds

__all__ = [
    "EvaluationRow",
    "EvaluationTable",
    "LabelledResponse",
    "LabelledSentence",
    "MeasuredSentences",
    "System",
    "Thresholds",
    "UnfaithfulSpan",
    "auroc_table",
    "benchmark_systems",
    "choose_thresholds",
    "cross_validate",
    "fit_measured",
    "fit_monitor",
    "label_sentences",
    "labelled_sentences",
    "load_jsonl",
    "load_ragtruth",
    "load_records",
    "measure",
    "out_of_fold_scores",
    "read_parquet",
    "write_parquet",
]
