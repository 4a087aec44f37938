from .generation import (
    GenerationSetup as GenerationSetup,
    check_choice as check_choice,
    check_count as check_count,
    check_reach as check_reach,
    check_share as check_share,
    end_tokens_of as end_tokens_of,
    generation_setup as generation_setup,
    prepare_generation as prepare_generation,
    seeded_generator as seeded_generator,
)
from .loop import (
    Adjust as Adjust,
    PromptLookup as PromptLookup,
    Step as Step,
    StopReason as StopReason,
    decode as decode,
    take_step as take_step,
)
from .rows import Row as Row, Transcript as Transcript
from .search import SearchSession as SearchSession, require_rewindable as require_rewindable
from .scored import ScoredAnswer as ScoredAnswer, ScoredSession as ScoredSession
