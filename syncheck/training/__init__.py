"""Labelled responses, sentence labels and evaluation."""

from syncheck.training.biographies import Passage, Proposition, label_by_propositions, load_biographies
from syncheck.training.crossval import cross_validate
from syncheck.training.datasets import LabelledResponse, load_jsonl, load_ragtruth, load_records
from syncheck.training.evaluate import (
    EvaluationRow,
    EvaluationTable,
    auroc_table,
    out_of_fold_scores,
)
from syncheck.training.extract import MeasuredSentences, measure
from syncheck.training.f100 import (
    F100_ENTITIES,
    BiographyRequest,
    f100_anti_requests,
    f100_requests,
    write_requests,
)
from syncheck.training.fit import fit_measured, fit_monitor
from syncheck.training.labels import LabelledSentence, UnfaithfulSpan, label_sentences, labelled_sentences
from syncheck.training.propositions import AutoAis, Propositioner, PropositionJudge, SequencePropositioner
from syncheck.training.retrieval import load_passages
from syncheck.training.systems import System, benchmark_systems
from syncheck.training.tables import read_parquet, write_parquet
from syncheck.training.thresholds import Thresholds, choose_thresholds

__all__ = [
    "AutoAis",
    "BiographyRequest",
    "EvaluationRow",
    "EvaluationTable",
    "F100_ENTITIES",
    "LabelledResponse",
    "LabelledSentence",
    "MeasuredSentences",
    "Passage",
    "Proposition",
    "PropositionJudge",
    "Propositioner",
    "SequencePropositioner",
    "System",
    "Thresholds",
    "UnfaithfulSpan",
    "auroc_table",
    "benchmark_systems",
    "choose_thresholds",
    "cross_validate",
    "f100_anti_requests",
    "f100_requests",
    "fit_measured",
    "fit_monitor",
    "label_by_propositions",
    "label_sentences",
    "labelled_sentences",
    "load_biographies",
    "load_jsonl",
    "load_passages",
    "load_ragtruth",
    "load_records",
    "measure",
    "out_of_fold_scores",
    "read_parquet",
    "write_parquet",
    "write_requests",
]
