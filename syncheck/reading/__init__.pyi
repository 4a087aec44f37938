from .claim import Claim as Claim, EarlierSentences as EarlierSentences
from .evidence import (
    Chunk as Chunk,
    Context as Context,
    EvidenceIndex as EvidenceIndex,
    split_passages as split_passages,
)
