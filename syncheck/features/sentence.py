"""Features of one sentence; those of text, context and aligner need no language model.

Groundedness is how much of its wording occurs in the chunks of its context, with more weight on rare words. These
features are counts, so they carry over to sources that were not seen in training.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from math import isnan, log1p, nan
from statistics import fmean
from typing import TypeVar

import numpy as np

from syncheck.base.errors import InputError
from syncheck.contrasts.contrast import Contrasted, contrast_with, with_answers
from syncheck.features import schemas
from syncheck.reading.claim import says_not_stated, statement
from syncheck.reading.evidence import BEST_CHUNKS, ContextChunks, bigrams, digits, pieces
from syncheck.results.types import FeatureSchema, SentenceFeatures, SentenceSignals, Support
from syncheck.text.words import (
    ContextLexicon,
    LexicalShares,
    Rarity,
    has_letter,
    lexical_shares,
    novel_pairs,
    stem,
    without_stop_words,
    words,
)

_NAME = re.compile(r"(?<=[a-z,] )[A-Z][^\W\d_]+")
"""A capitalised word after a lower-case letter or a comma: not the first of a sentence or title."""
_Item = TypeVar("_Item")


def groundedness(sentence: str, chunks: ContextChunks, best: Sequence[int], *, rarity: Rarity) -> dict[str, float]:
    """Measure how much of a sentence occurs in the chunks; ``best`` has at most :data:`BEST_CHUNKS`, closest first.

    The values, described in :data:`~syncheck.features.schemas.FEATURES`, are NaN with nothing to count. ``absence``
    accounts for sentences that say that something is not stated, which may name things that the context lacks.
    """
    read = words(sentence)
    stems = dict.fromkeys(stem(digits(word)) for word in read)
    content = dict.fromkeys(stem(digits(word)) for word in without_stop_words(read))
    weights = {known: rarity(known) for known in stems}
    own = pieces(sentence)
    held = [chunks.wording(number)[0] for number in best]
    first = [chunks.stems[number] for number in best]
    missing = [weight for known, weight in weights.items() if known not in chunks.held_in]
    names = {word for name in _NAME.findall(sentence) for word in words(name)}
    times = Counter(number for known in content for number in chunks.held_in.get(known, ()))
    novel = sum(known not in chunks.held_in for known in content)
    total, best_stems = sum(weights.values()), first[0] if first else frozenset[str]()
    held_near = [0.0] * (len(chunks.texts) + 2)  # of each chunk with its neighbours; the last one is that of chunk -1
    for known, weight in weights.items():
        for number in chunks.near(known):
            held_near[number] += weight
    return {
        "rarity_nearby": max(held_near) / total if total else nan,
        "rarity_best": sum(weights[known] for known in weights if known in best_stems) / total if total else nan,
        "pieces_1": _covered(own, held[:1]),
        "pieces_2": _covered(own, held[:2]),
        "pieces_4": _covered(own, held[:BEST_CHUNKS]),
        "stems_2": _covered(frozenset(content), first[:2]),
        "stems_1": max(times.values(), default=0) / len(content) if content else nan,
        "bigrams_2": _covered(bigrams(read), [chunks.wording(number)[1] for number in best[:2]]),
        "missing_rarity": log1p(sum(missing)),
        "missing_numbers": float(sum(known[0].isdigit() for known in stems if known not in chunks.held_in)),
        "missing_names": float(sum(stem(name) not in chunks.held_in for name in names)),
        "absence": (novel / len(content) if content else nan) if says_not_stated(sentence) else 0.0,
    }


def _covered(items: frozenset[_Item], known: Sequence[frozenset[_Item]]) -> float:
    """Compute the share of items that any of some sets has; NaN without items."""
    return (len(items) - len(items.difference(*known))) / len(items) if items else nan


_OF_SIGNALS = frozenset(feature.name for feature in schemas.FEATURES if feature.of_model and feature.formula)
_SHARES = frozenset(field.name for field in fields(LexicalShares))


def sentence_features(
    schema: FeatureSchema,
    signals: SentenceSignals | None,
    text: schemas.SentenceText,
    *,
    text_values: Mapping[str, float] | None = None,
) -> SentenceFeatures:
    """Compute the features of one sentence, in float64, by the formulas of the paper's appendix A.1 and our own.

    NaN means not measured. All features of a sentence without a token are NaN, and those of a language model where
    ``signals`` is None. ``text_values`` are those of :func:`text_features`.
    """
    if signals is not None and not len(signals.token_ids):
        return SentenceFeatures(schema, np.full(len(schema.names), nan))
    values = {name: nan for name in schema.names if name.startswith(schemas.LID.format(k=""))}
    values |= dict.fromkeys(schemas.TEXT_FEATURES, nan) | dict(text_values or {})
    wanted = {name for name in schema.names if name not in (text_values or ())}
    if signals is None:
        values |= dict.fromkeys(_OF_SIGNALS, nan)
    else:
        values |= {schemas.LID.format(k=k): value for k, value in signals.lid.items()}
        values |= {} if wanted.isdisjoint(_OF_SIGNALS) else schemas.signal_features(signals)
    if not wanted.isdisjoint(_SHARES):
        values |= asdict(text.shares) | dict(text_values or {})
    if not wanted.isdisjoint(schemas.FEATURE_GROUPS["earlier sentences"]):
        values |= _earlier_features(text)
    for feature in schemas.FEATURES:
        if feature.formula is not None and not feature.of_model and feature.name in wanted:
            values[feature.name] = feature.formula(text)
    if unknown := [name for name in schema.names if name not in values]:
        raise InputError(
            f"schema {schema.version!r} has unknown features: {', '.join(map(repr, unknown))}; "
            f"use a schema of {', '.join(map(repr, schemas.SCHEMAS))} or a newer version of this package"
        )
    return SentenceFeatures(schema, np.array([values[name] for name in schema.names], dtype=np.float64))


def _earlier_features(of: schemas.SentenceText) -> dict[str, float]:
    """Compute features of earlier sentences: errors come in runs, and a sentence without a letter has no others."""
    supports = [support for support in of.earlier.supports if not isnan(support)]
    shares = LexicalShares() if of.lexicon is None else lexical_shares(of.earlier.last, of.lexicon)
    support = of.earlier.supports[-1] if of.earlier.supports else nan
    previous = {"support": support, "pair_overlap": shares.pair_overlap, "copied_run": shares.copied_run}
    inherits = not has_letter(of.text)
    return {
        "sentence_index": log1p(len(of.earlier.supports)),
        "earlier_support_mean": fmean(supports) if supports else nan,
        "earlier_support_min": min(supports, default=nan),
        **{f"previous_{name}": value for name, value in previous.items()},
        **{f"inherited_{name}": value if inherits else nan for name, value in previous.items()},
    }


def read_log_odds(support: Support | None) -> float | None:
    """Look up the log-odds of an aligner that reads, which tells contradicted from not stated; None for others."""
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
    compared: str | None = None,
    compare: Callable[[str, tuple[str, ...]], Contrasted] = contrast_with,
) -> dict[str, float]:
    """Compute the features of one sentence that need no language model, by name, in the order of ``TEXT_FEATURES``.

    ``logit`` is the log-odds of support, None if not measured; ``read`` is the same of an aligner that reads
    (:func:`read_log_odds`), by which the ledger says which contrasts count. ``best`` has the indices of at most four
    chunks that share most with the sentence, best first. ``compared`` is what contrasts are looked for in, if it is not
    the sentence as it is read. ``compare`` may be a cached :func:`contrast_with`.
    """
    stated = statement(sentence)
    contrasted = compare(stated if compared is None else compared, with_answers(chunks.texts, best))
    values = asdict(lexical_shares(stated, lexicon)) | groundedness(stated, chunks, best, rarity=rarity)
    values["contrasts"] = 0.0 if says_not_stated(sentence) else float(len(contrasted.that_speak(read)))
    values["align_logit"] = nan if logit is None else logit
    values |= {"closeness": contrasted.closeness, "novel_pairs": novel_pairs(stated, lexicon)}
    return {name: values[name] for name in schemas.TEXT_FEATURES}
