"""Labelled responses, sentence labels and evaluation."""

from syncheck.training.ablation import ablation_systems
from syncheck.training.biographies import Passage, Proposition, label_by_propositions, load_biographies
from syncheck.training.calibrate import Calibrated, calibrate_monitor
from syncheck.training.crossval import FittedFold, cross_validate, fitted_folds, fold_numbers
from syncheck.training.datasets import (
    LabelledResponse,
    labelled_responses,
    load_jsonl,
    load_ragtruth,
    load_records,
)
from syncheck.training.evaluate import (
    EvaluationRow,
    EvaluationTable,
    auroc_table,
    best_system,
)
from syncheck.training.extract import measure
from syncheck.training.f100 import (
    F100_ENTITIES,
    BiographyRequest,
    f100_anti_requests,
    f100_requests,
    write_requests,
)
from syncheck.training.fit import fit_measured, fit_monitor
from syncheck.training.importance import permuted_scores
from syncheck.training.judges import SupportJudge, load_judge
from syncheck.training.kinds import best_aggregator
from syncheck.training.labels import LabelledSentence, Rule, UnfaithfulSpan, label_sentences, labelled_sentences
from syncheck.training.left_out import left_out_lines
from syncheck.training.matrix import AurocMatrix, Cell
from syncheck.training.measured import MeasuredSentences, joined
from syncheck.training.measured_by import against_references, check_measured_by
from syncheck.training.propositioners import InstructPropositioner, RuleBasedPropositioner, load_propositioner
from syncheck.training.propositions import AutoAis, Propositioner, PropositionJudge, SequencePropositioner
from syncheck.training.recut import carried_line
from syncheck.training.reliability import (
    ReliabilityBin,
    cross_fitted_calibration,
    expected_calibration_error,
    reliability_bins,
)
from syncheck.training.retrieval import load_passages
from syncheck.training.risk import choose_release_threshold, one_of_each_group, unfaithful_bound
from syncheck.training.seen import grouped_by_question, question_digests, refuse_seen, seen_records
from syncheck.training.selection import Selection
from syncheck.training.sets import LabelledSet, SetName, labelled_set
from syncheck.training.shards import Shard, measure_to_parquet
from syncheck.training.surrogates import surrogate_matrix
from syncheck.training.systems import (
    System,
    aggregator_systems,
    benchmark_systems,
    held_out_scores,
    out_of_fold_scores,
    training_thresholds,
)
from syncheck.training.tables import provenance_of, read_parquet, write_parquet
from syncheck.training.thresholds import Thresholds, choose_thresholds
from syncheck.training.transfer import transfer_matrix

__all__ = [
    "AurocMatrix",
    "AutoAis",
    "BiographyRequest",
    "Calibrated",
    "Cell",
    "EvaluationRow",
    "EvaluationTable",
    "F100_ENTITIES",
    "FittedFold",
    "InstructPropositioner",
    "LabelledResponse",
    "LabelledSentence",
    "LabelledSet",
    "MeasuredSentences",
    "Passage",
    "Proposition",
    "PropositionJudge",
    "Propositioner",
    "ReliabilityBin",
    "Rule",
    "RuleBasedPropositioner",
    "Selection",
    "SequencePropositioner",
    "SetName",
    "Shard",
    "SupportJudge",
    "System",
    "Thresholds",
    "UnfaithfulSpan",
    "ablation_systems",
    "against_references",
    "aggregator_systems",
    "auroc_table",
    "benchmark_systems",
    "best_aggregator",
    "best_system",
    "calibrate_monitor",
    "carried_line",
    "check_measured_by",
    "choose_release_threshold",
    "choose_thresholds",
    "cross_fitted_calibration",
    "cross_validate",
    "expected_calibration_error",
    "f100_anti_requests",
    "f100_requests",
    "fit_measured",
    "fit_monitor",
    "fitted_folds",
    "fold_numbers",
    "grouped_by_question",
    "held_out_scores",
    "joined",
    "label_by_propositions",
    "label_sentences",
    "labelled_responses",
    "labelled_sentences",
    "labelled_set",
    "left_out_lines",
    "load_biographies",
    "load_jsonl",
    "load_judge",
    "load_passages",
    "load_propositioner",
    "load_ragtruth",
    "load_records",
    "measure",
    "measure_to_parquet",
    "one_of_each_group",
    "out_of_fold_scores",
    "permuted_scores",
    "provenance_of",
    "question_digests",
    "read_parquet",
    "refuse_seen",
    "reliability_bins",
    "seen_records",
    "surrogate_matrix",
    "training_thresholds",
    "transfer_matrix",
    "unfaithful_bound",
    "write_parquet",
    "write_requests",
]
