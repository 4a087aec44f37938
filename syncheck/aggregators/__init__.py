"""From features to P(faithful): three kinds of classifier, two of them as one, or one signal; saved without pickle."""

from syncheck.aggregators.aggregator import Aggregator
from syncheck.aggregators.calibration import (
    Calibration,
    CalibrationMethod,
    IsotonicCalibration,
    PlattCalibration,
    fit_calibration,
)
from syncheck.aggregators.estimators import make_aggregator
from syncheck.aggregators.release import ReleaseThreshold

__all__ = [
    "Aggregator",
    "Calibration",
    "CalibrationMethod",
    "IsotonicCalibration",
    "PlattCalibration",
    "ReleaseThreshold",
    "fit_calibration",
    "make_aggregator",
]
