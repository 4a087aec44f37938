from .alignscore import AlignScoreAligner as AlignScoreAligner
from .bundled import BundledAligner as BundledAligner
from .classifier import ClassifierAligner as ClassifierAligner
from .evaluators import (
    EndpointTextGenerator as EndpointTextGenerator,
    TextGenerator as TextGenerator,
    LocalTextGenerator as LocalTextGenerator,
)
from .loading import ALIGNER_OPTIONS as ALIGNER_OPTIONS, load_aligner as load_aligner
from .reader.aligner import ReaderAligner as ReaderAligner
from .protocol import (
    Aligner as Aligner,
    AskedAligner as AskedAligner,
    ConfiguredAligner as ConfiguredAligner,
    IndexedAligner as IndexedAligner,
    KnowsLanguages as KnowsLanguages,
    KnowsWeights as KnowsWeights,
    QuestionAligner as QuestionAligner,
    Unaligned as Unaligned,
    identity_of as identity_of,
    is_same_aligner as is_same_aligner,
    languages_of as languages_of,
    options_of as options_of,
    reads_answers as reads_answers,
    weights_of as weights_of,
)
