from .protocol import (
    Append as Append,
    Citation as Citation,
    Final as Final,
    FoldedAnswer as FoldedAnswer,
    Notice as Notice,
    ProtocolEvent as ProtocolEvent,
    Replace as Replace,
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
from .watching import TextWatch as TextWatch
from .writer import EventWriter as EventWriter, protocol_events as protocol_events
