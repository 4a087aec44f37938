from .sentence import (
    EarlierSentences as EarlierSentences,
    Phrasing as Phrasing,
    has_letter as has_letter,
    phrasing as phrasing,
    sentence_features as sentence_features,
)
