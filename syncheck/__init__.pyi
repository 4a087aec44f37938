__version__: str

from .aggregators import Aggregator as Aggregator, RiskControlledThreshold as RiskControlledThreshold
from .alignment import Aligner as Aligner, load_aligner as load_aligner
from .attach import BatchWatch as BatchWatch, Watch as Watch
from .config import MonitorConfig as MonitorConfig, SegmenterConfig as SegmenterConfig
from .errors import SyncheckError as SyncheckError
from .events import (
    EndEvent as EndEvent,
    Event as Event,
    NoticeEvent as NoticeEvent,
    RetractEvent as RetractEvent,
    SentenceEvent as SentenceEvent,
    TokenEvent as TokenEvent,
)
from .schemas import feature_schema as feature_schema
from .kit import load_kit as load_kit
from .labelling import LabelledResponse as LabelledResponse, load_records as load_records
from .monitor import Monitor as Monitor
from .prompts import prompt_from_messages as prompt_from_messages, prompt_from_texts as prompt_from_texts
from .report import Report as Report
from .segments import ENGLISH_ABBREVIATIONS as ENGLISH_ABBREVIATIONS
from .signals import LidReferences as LidReferences
from .types import RagPrompt as RagPrompt, SentenceScore as SentenceScore
