__version__: str

from .aggregators import Aggregator as Aggregator, RiskControlledThreshold as RiskControlledThreshold
from .aligners import Aligner as Aligner, load_aligner as load_aligner
from .decoding.attach import BatchWatch as BatchWatch, Watch as Watch
from .config import MonitorConfig as MonitorConfig
from .text.sentences import SegmenterConfig as SegmenterConfig
from .base.errors import SyncheckError as SyncheckError
from .base.checks import Passage as Passage
from .results.events import (
    EndEvent as EndEvent,
    Event as Event,
    NoticeEvent as NoticeEvent,
    SentenceEvent as SentenceEvent,
    TokenEvent as TokenEvent,
)
from .features.relevance import closest_evidence as closest_evidence
from .features.schemas import feature_schema as feature_schema
from .kit import load_kit as load_kit
from .labelling import LabelledResponse as LabelledResponse, load_records as load_records
from .monitor import Monitor as Monitor
from .prompts import prompt_from_messages as prompt_from_messages, prompt_from_texts as prompt_from_texts
from .results import Report as Report
from .text.sentences import ENGLISH_ABBREVIATIONS as ENGLISH_ABBREVIATIONS
from .signals import LidReferences as LidReferences
from .results.types import Citation as Citation, RagPrompt as RagPrompt, SentenceScore as SentenceScore
from .verifier import Verifier as Verifier
