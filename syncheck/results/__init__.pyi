from .protocol import (
    Append as Append,
    ContinuationRequest as ContinuationRequest,
    Final as Final,
    FoldedAnswer as FoldedAnswer,
    LocatedEvidence as LocatedEvidence,
    Notice as Notice,
    Piece as Piece,
    ProtocolEvent as ProtocolEvent,
    Retract as Retract,
    Reveal as Reveal,
    Verified as Verified,
    fold as fold,
    from_dict as from_dict,
    from_json as from_json,
    to_dict as to_dict,
    to_json as to_json,
    to_sse as to_sse,
)
from .report import (
    Answer as Answer,
    AnswerScale as AnswerScale,
    Case as Case,
    HiddenSpan as HiddenSpan,
    Report as Report,
    TraceNode as TraceNode,
)
from .spans import (
    SoftSpan as SoftSpan,
    SpanDetector as SpanDetector,
    SpanItem as SpanItem,
    SpanLabels as SpanLabels,
    hard_spans as hard_spans,
    label_dict as label_dict,
    labels_of as labels_of,
    likely_overlap as likely_overlap,
    risk_of as risk_of,
)
from .events import EventWriter as EventWriter, protocol_events as protocol_events
