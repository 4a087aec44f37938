"""Features of one sentence; those of text, context and aligner need no language model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isnan, log1p, nan
from statistics import fmean

import numpy as np

from syncheck.base.errors import InputError
from syncheck.contrasts.contrast import Contrasted, contrast_with, with_answers
from syncheck.features.groundedness import Groundedness, groundedness
from syncheck.features.schemas import (
    FEATURE_GROUPS,
    FEATURES,
    LID,
    SCHEMAS,
    TEXT_FEATURES,
    SentenceText,
    signal_features,
)
from syncheck.reading.wording import ContextChunks
from syncheck.results.types import FeatureSchema, SentenceFeatures, SentenceSignals, Support
from syncheck.text.rarity import Rarity
from syncheck.text.statements import says_not_stated, statement
from syncheck.text.words import ContextLexicon, LexicalShares, has_letter, lexical_shares, novel_pairs

_OF_SIGNALS = frozenset(feature.name for feature in FEATURES if feature.from_signals is not None)
_SHARES = frozenset(field.name for field in fields(LexicalShares))


def sentence_features(
    schema: FeatureSchema,
    signals: SentenceSignals | None,
    text: SentenceText,
    *,
    text_values: Mapping[str, float] | None = None,
) -> SentenceFeatures:
    """Compute the features of one sentence, in float64, by the formulas of the paper's appendix A.1 and our own.

    NaN means not measured: there is no context, aligner, question, LID, number, name or earlier sentence. All features
    of a sentence without a token are NaN, and those of a language model where ``signals`` is None. ``text_values`` are
    those of :func:`text_features`.
    """
    if signals is not None and not len(signals.token_ids):
        return SentenceFeatures(schema, np.full(len(schema.names), nan))
    values = {name: nan for name in schema.names if name.startswith(LID.format(k=""))}
    values |= dict.fromkeys(TEXT_FEATURES, nan) | dict(text_values or {})
    wanted = {name for name in schema.names if name not in (text_values or ())}
    if signals is None:
        values |= dict.fromkeys(_OF_SIGNALS, nan)
    else:
        values |= {LID.format(k=k): value for k, value in signals.lid.items()}
        values |= {} if wanted.isdisjoint(_OF_SIGNALS) else signal_features(signals)
    if not wanted.isdisjoint(_SHARES):
        values |= _by_name(text.shares) | dict(text_values or {})
    if not wanted.isdisjoint(FEATURE_GROUPS["earlier sentences"]):
        values |= _earlier_features(text)
    for feature in FEATURES:
        if feature.from_text is not None and feature.name in wanted:
            values[feature.name] = feature.from_text(text)
    if unknown := [name for name in schema.names if name not in values]:
        raise InputError(
            f"schema {schema.version!r} has unknown features: {', '.join(map(repr, unknown))}; "
            f"use a schema of {', '.join(map(repr, SCHEMAS))} or a newer version of this package"
        )
    return SentenceFeatures(schema, np.array([values[name] for name in schema.names], dtype=np.float64))


def _earlier_features(of: SentenceText) -> dict[str, float]:
    """Return features of earlier sentences: errors come in runs, and a sentence without a letter has no others."""
    supports = [support for support in of.earlier.supports if not isnan(support)]
    shares = LexicalShares() if of.lexicon is None else lexical_shares(of.earlier.last, of.lexicon)
    previous = {
        "support": of.earlier.supports[-1] if of.earlier.supports else nan,
        "pair_overlap": shares.pair_overlap,
        "copied_run": shares.copied_run,
    }
    inherits = not has_letter(of.text)
    return {
        "sentence_index": log1p(len(of.earlier.supports)),
        "earlier_support_mean": fmean(supports) if supports else nan,
        "earlier_support_min": min(supports, default=nan),
        **{f"previous_{name}": value for name, value in previous.items()},
        **{f"inherited_{name}": value if inherits else nan for name, value in previous.items()},
    }


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """Features of one sentence by name, in the order of ``TEXT_FEATURES``, and its contrasts for a report."""

    values: dict[str, float]
    contrasted: Contrasted


def read_log_odds(support: Support | None) -> float | None:
    """Return the log-odds of an aligner that reads, which tells contradicted from not stated; None of others."""
    return None if support is None or support.contradicted is None else support.log_odds


def text_features(
    sentence: str,
    *,
    logit: float | None,
    read: float | None = None,
    chunks: ContextChunks,
    best: Sequence[int],
    lexicon: ContextLexicon,
    rarity: Rarity,
    compare: Callable[[str, tuple[str, ...]], Contrasted] = contrast_with,
) -> TextFeatures:
    """Compute the features of one sentence that need no language model.

    ``logit`` is the log-odds of support, None if not measured; ``read`` is the same of an aligner that reads
    (:func:`read_log_odds`), by which the ledger says which contrasts count. ``best`` has the indices of at most four
    chunks that share most with the sentence, best first. ``compare`` may be a cached
    :func:`~syncheck.contrasts.contrast.contrast_with`.
    """
    stated = statement(sentence)
    contrasted = compare(stated, with_answers(chunks.texts, best))
    values = _by_name(lexical_shares(stated, lexicon))
    values |= _by_name(groundedness(stated, chunks, best, rarity=rarity))
    values["contrasts"] = 0.0 if says_not_stated(sentence) else float(len(contrasted.that_speak(read)))
    values["align_logit"] = nan if logit is None else logit
    values["closeness"] = contrasted.closeness
    values["novel_pairs"] = novel_pairs(stated, lexicon)
    return TextFeatures({name: values[name] for name in TEXT_FEATURES}, contrasted)


def _by_name(found: LexicalShares | Groundedness) -> dict[str, float]:
    return {field.name: getattr(found, field.name) for field in fields(found)}
