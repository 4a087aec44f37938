from .metrics import (
    ReliabilityBin as ReliabilityBin,
    best_threshold as best_threshold,
    cross_fitted_calibration as cross_fitted_calibration,
    cross_validate as cross_validate,
    expected_calibration_error as expected_calibration_error,
    fold_numbers as fold_numbers,
    reliability_bins as reliability_bins,
)
from .tables import (
    System as System,
    ablation_systems as ablation_systems,
    aggregator_systems as aggregator_systems,
    benchmark_systems as benchmark_systems,
    held_out_scores as held_out_scores,
    out_of_fold_scores as out_of_fold_scores,
    EvaluationTable as EvaluationTable,
    auroc_table as auroc_table,
)
