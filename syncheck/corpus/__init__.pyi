from .store import answer_corpus as answer_corpus, run_locally as run_locally
from .scale import (
    Estimate as Estimate,
    Rate as Rate,
    Rates as Rates,
    estimate as estimate,
    load_rates as load_rates,
    run_on_ray as run_on_ray,
)
from .records import (
    Line as Line,
    Worker as Worker,
    answer as answer,
    corpus_lines as corpus_lines,
    count_lines as count_lines,
)
from .scoring import RecordScorer as RecordScorer, prompt_for as prompt_for, sentence_dicts as sentence_dicts
from .store import Store as Store
