from .records import (
    Line as Line,
    Worker as Worker,
    answer as answer,
    corpus_lines as corpus_lines,
    count_lines as count_lines,
)
from .scoring import RecordScorer as RecordScorer, prompt_for as prompt_for, sentence_dicts as sentence_dicts
from .store import Store as Store, answer_corpus as answer_corpus
