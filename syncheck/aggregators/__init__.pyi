from .aggregator import Aggregator as Aggregator
from .calibration import (
    Calibration as Calibration,
    CalibrationMethod as CalibrationMethod,
    IsotonicCalibration as IsotonicCalibration,
    PlattCalibration as PlattCalibration,
    RiskControlledThreshold as RiskControlledThreshold,
    fit_calibration as fit_calibration,
)
from .kinds import make_aggregator as make_aggregator
