from .branch import Branch as Branch, check_window as check_window, window_of as window_of
from .cache import (
    GrowLayer as GrowLayer,
    is_rewindable as is_rewindable,
    let_grow as let_grow,
    require_rewindable as require_rewindable,
)
from .forward import (
    ForwardArguments as ForwardArguments,
    Taps as Taps,
    check_one_encoding as check_one_encoding,
    check_same_encoding as check_same_encoding,
    decoder_blocks as decoder_blocks,
    encoding_of as encoding_of,
    require_watchable as require_watchable,
    switches_of as switches_of,
    take_turns_in_rotary as take_turns_in_rotary,
)
from .lid import LidReferences as LidReferences
from .token_tree import reads_less as reads_less, takes_token_tree as takes_token_tree
from .tokenwise import (
    TokenStatistics as TokenStatistics,
    token_statistics as token_statistics,
)
