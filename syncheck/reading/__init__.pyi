from .claim import Claim as Claim, EarlierSentences as EarlierSentences
from .context import Context as Context
from .evidence import Chunk as Chunk, EvidenceIndex as EvidenceIndex, split_passages as split_passages
