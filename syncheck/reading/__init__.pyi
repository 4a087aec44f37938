from .evidence import Chunk as Chunk, EvidenceIndex as EvidenceIndex, split_passages as split_passages
