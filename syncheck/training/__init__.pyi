from .calibrate import (
    Calibrated as Calibrated,
    calibrate_monitor as calibrate_monitor,
    choose_risk_controlled_threshold as choose_risk_controlled_threshold,
    one_of_each_group as one_of_each_group,
    sentences_needed as sentences_needed,
    unfaithful_bound as unfaithful_bound,
)
from .extract import measure as measure
from .parquet import (
    measure_to_parquet as measure_to_parquet,
    read_parquet as read_parquet,
    write_parquet as write_parquet,
)
from .fit import (
    fit_measured as fit_measured,
    monitor_of as monitor_of,
    train_measured as train_measured,
)
from .measured import (
    MeasuredSentences as MeasuredSentences,
    against_references as against_references,
    check_measured_by as check_measured_by,
    joined as joined,
    left_out_lines as left_out_lines,
    narrowed as narrowed,
    select_sentences as select_sentences,
)
from .provenance import (
    question_digests as question_digests,
    refuse_seen as refuse_seen,
    seen_records as seen_records,
)
from .sets import (
    PRECISION as PRECISION,
    LabelledSet as LabelledSet,
    SetName as SetName,
    choose_thresholds as choose_thresholds,
    choose_verdict_thresholds as choose_verdict_thresholds,
    labelled_set as labelled_set,
    release_curve as release_curve,
)
