__version__: str

from .aggregators import Aggregator as Aggregator, ReleaseThreshold as ReleaseThreshold
from .alignment import (
    Aligner as Aligner,
    Evaluator as Evaluator,
    LocalEvaluator as LocalEvaluator,
    is_same_aligner as is_same_aligner,
    load_aligner as load_aligner,
)
from .config import MonitorConfig as MonitorConfig, SegmenterConfig as SegmenterConfig
from .decoding import (
    DecodingPlan as DecodingPlan,
    DecodingSession as DecodingSession,
    Row as Row,
    Step as Step,
    Transcript as Transcript,
    check_reach as check_reach,
    decode as decode,
    plan_of as plan_of,
    prepare as prepare,
)
from .errors import (
    CheckpointError as CheckpointError,
    EvaluatorError as EvaluatorError,
    InputError as InputError,
    InsufficientDataError as InsufficientDataError,
    LeftOutWarning as LeftOutWarning,
    MismatchError as MismatchError,
    MissingExtraError as MissingExtraError,
    NotReadyError as NotReadyError,
    PromptError as PromptError,
    RecordError as RecordError,
    SyncheckError as SyncheckError,
    UnsupportedModelError as UnsupportedModelError,
    WrongTypeError as WrongTypeError,
)
from .events import EndEvent as EndEvent, SentenceEvent as SentenceEvent, TokenEvent as TokenEvent
from .judging import SentenceJudge as SentenceJudge
from .monitor import Monitor as Monitor
from .monitored import JudgedAnswer as JudgedAnswer, MonitoredSession as MonitoredSession
from .prompts import build_prompt as build_prompt, prompt_from_texts as prompt_from_texts
from .report import Report as Report, TraceNode as TraceNode
from .schemas import feature_schema as feature_schema
from .segments import ENGLISH_ABBREVIATIONS as ENGLISH_ABBREVIATIONS
from .signals import (
    ReferenceBank as ReferenceBank,
    require_rewindable as require_rewindable,
    token_statistics as token_statistics,
)
from .training.auroc import Draws as Draws, interval as interval
from .training.propositions import Propositioner as Propositioner, SequencePropositioner as SequencePropositioner
from .types import (
    Evidence as Evidence,
    FeatureSchema as FeatureSchema,
    RagPrompt as RagPrompt,
    SentenceFeatures as SentenceFeatures,
    SentenceScore as SentenceScore,
    SentenceSignals as SentenceSignals,
    SentenceSpan as SentenceSpan,
    Support as Support,
    TokenSignals as TokenSignals,
)
from .watch import BatchWatch as BatchWatch, Watch as Watch
