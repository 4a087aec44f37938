"""One sentence's signals -> the values an aggregator reads, under a versioned schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from math import isnan, log, log1p, nan
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from syncheck.config import LARGE_KL_NATS
from syncheck.errors import InputError
from syncheck.lexical import ContextLexicon, LexicalShares, content_words, lexical_shares, share
from syncheck.phrasing import phrasing
from syncheck.types import FeatureSchema, SentenceFeatures, SentenceSignals, Support

__all__ = [
    "EarlierSentences",
    "FEATURES",
    "Feature",
    "SCHEMAS",
    "feature_schema",
    "needs_lid",
    "sentence_features",
]

LID = "lid_layer_{k}"
"""Stands for one feature per tapped decoder block k, counted from 0."""

LIMIT_NATS = 100.0
"""Log-probabilities and KL beyond this count as this, so that one impossible token leaves features finite."""


@dataclass(frozen=True, slots=True)
class Feature:
    """What one feature measures.

    Attributes
    ----------
    name : str
    meaning : str
    unit : str
        Unit and range.
    direction : int
        +1 where higher speaks for faithful, -1 where it speaks against, 0 where neither is expected.
    cost : str
        What it takes beside the model's own forward pass.
    """

    name: str
    meaning: str
    unit: str
    direction: int
    cost: str


@dataclass(frozen=True, slots=True)
class EarlierSentences:
    """The aligner's support of each sentence with a letter before the one that is measured; NaN where not asked."""

    supports: tuple[float, ...] = ()


_CONTRAST = "one pass over the sentence without the context"

FEATURES = (
    Feature("min_prob", "probability of the least likely token", "probability, [0, 1]", 1, "none"),
    Feature("mean_prob", "mean probability of the tokens", "probability, [0, 1]", 1, "none"),
    Feature("max_entropy", "largest entropy at a token", "nats, [0, ln V]", -1, "none"),
    Feature("mean_entropy", "mean entropy at the tokens", "nats, [0, ln V]", -1, "none"),
    Feature(
        LID,
        "local intrinsic dimension of block k's output among references",
        "dimension, >= 0",
        -1,
        "distances to the references",
    ),
    Feature("mean_contrastive_kl", "mean KL(with || without context)", "nats, [0, 100]", 0, _CONTRAST),
    Feature("large_kl_pos", "tokens with a KL above 3 nats", "tokens, >= 0", 0, _CONTRAST),
    Feature("align_score", "support of the sentence by the context", "probability, [0, 1]", 1, "the aligner"),
    Feature("content_overlap", "content words that the context holds", "share, [0, 1]", 1, "none"),
    Feature("bigram_overlap", "word pairs that the context holds", "share, [0, 1]", 1, "none"),
    Feature("number_overlap", "numbers that the context holds", "share, [0, 1]", 1, "none"),
    Feature("name_overlap", "names that the context holds", "share, [0, 1]", 1, "none"),
    Feature("log_tokens", "ln of the number of tokens", "ln tokens, >= 0", 0, "none"),
    Feature("mean_log_prob", "mean log-probability of the tokens", "nats, [-100, 0]", 1, "none"),
    Feature("min_log_prob", "log-probability of the least likely token", "nats, [-100, 0]", 1, "none"),
    Feature(
        "mean_log_prob_gain",
        "mean of log p with minus without context",
        "nats, [-100, 100]",
        1,
        _CONTRAST,
    ),
    Feature(
        "min_log_prob_gain",
        "least of log p with minus without context",
        "nats, [-100, 100]",
        1,
        _CONTRAST,
    ),
    Feature("max_contrastive_kl", "largest KL(with || without context)", "nats, [0, 100]", 0, _CONTRAST),
    Feature("question_overlap", "content words that the question holds", "share, [0, 1]", 0, "none"),
    Feature("stem_overlap", "content words whose stem the context holds", "share, [0, 1]", 1, "none"),
    Feature("pair_overlap", "neighbouring content words that are near in a passage", "share, [0, 1]", 1, "none"),
    Feature("copied_run", "longest run of words that stands in a passage", "share, [0, 1]", 1, "none"),
    Feature("novel_words", "ln(1 + stems that the context lacks)", "ln words, >= 0", -1, "none"),
    Feature("sentence_index", "ln(1 + the answer's earlier sentences)", "ln sentences, >= 0", -1, "none"),
    Feature("earlier_support_mean", "mean support of the answer's earlier sentences", "probability, [0, 1]", 1, "none"),
    Feature("earlier_support_min", "least support of the answer's earlier sentences", "probability, [0, 1]", 1, "none"),
    Feature("source_mention", "whether it speaks of its sources (English)", "0 or 1", 0, "none"),
    Feature("negation", "whether it denies something (English)", "0 or 1", 0, "none"),
    Feature("list_item", "whether it begins as an item of a list", "0 or 1", 0, "none"),
)
"""Every feature of every schema; NaN in any of them means not measured."""

_PAPER = (
    *("min_prob", "mean_prob", "max_entropy", "mean_entropy", LID),
    *("mean_contrastive_kl", "large_kl_pos", "align_score"),
)
_FIRST = (
    *("content_overlap", "bigram_overlap", "number_overlap", "name_overlap", "log_tokens"),
    *("mean_log_prob", "min_log_prob", "mean_log_prob_gain", "min_log_prob_gain"),
    *("max_contrastive_kl", "question_overlap"),
)
_SECOND = (
    *("stem_overlap", "pair_overlap", "copied_run", "novel_words"),
    *("sentence_index", "earlier_support_mean", "earlier_support_min"),
    *("source_mention", "negation", "list_item"),
)

SCHEMAS: Mapping[str, tuple[str, ...]] = {
    "paper.v1": _PAPER,  # Table 4
    "paper-no-lid.v1": tuple(name for name in _PAPER if name != LID),  # Table 4 for Summary and Data2txt
    "syncheck.v1": _PAPER + _FIRST,
    "syncheck.v2": _PAPER + _FIRST + _SECOND,
}
"""Features of each released version, in column order; a released version never changes."""


def feature_schema(version: str, layers: Sequence[int]) -> FeatureSchema:
    """Return a released schema for the given decoder blocks.

    Parameters
    ----------
    version
        A key of :data:`SCHEMAS`.
    layers
        Decoder blocks with a LID feature, in column order; a version without LID has none of them.

    Raises
    ------
    InputError
        If there is no such version.
    """
    by_name = {feature.name: feature for feature in FEATURES}
    columns = [
        (column, by_name[name])
        for name in _names_of(version)
        for column in ([LID.format(k=k) for k in layers] if name == LID else [name])
    ]
    return FeatureSchema(
        version=version,
        names=tuple(column for column, _ in columns),
        units=tuple(feature.unit for _, feature in columns),
        directions=tuple(feature.direction for _, feature in columns),
    )


def needs_lid(version: str) -> bool:
    """Whether a schema version has LID features, and so needs reference activations.

    Raises
    ------
    InputError
        If there is no such version.
    """
    return LID in _names_of(version)


def sentence_features(
    schema: FeatureSchema,
    signals: SentenceSignals,
    *,
    support: Support | None,
    lexicon: ContextLexicon | None,
    question_words: AbstractSet[str],
    earlier: EarlierSentences,
) -> SentenceFeatures:
    """Compute the features of one sentence, in float64.

    Parameters
    ----------
    schema
        Which features, in which order; any whose names are in :data:`FEATURES`.
    signals
        The sentence's tokens, without special ones. A sentence without tokens gives NaN throughout, a block without LID
        NaN there.
    support
        The aligner's verdict; None gives NaN.
    lexicon
        The words of the context; None, when there is no context, gives NaN.
    question_words
        Content words of the question; without any, ``question_overlap`` is NaN.
    earlier
        What came before the sentence in its answer.

    Returns
    -------
    SentenceFeatures
        NaN where not measured: no context, no aligner, no number or name in the sentence, no earlier sentence.

    Raises
    ------
    InputError
        If the schema names a feature that is unknown here.

    Notes
    -----
    Formulas of the paper's appendix A.1, with natural logarithms.
    """
    if not len(signals.token_ids):
        return SentenceFeatures(schema, np.full(len(schema.names), nan))
    values = {name: nan for name in schema.names if name.startswith(LID.format(k=""))}
    values |= {LID.format(k=k): value for k, value in signals.lid.items()}
    values |= _signal_features(signals)
    values |= _lexical_features(signals.text, lexicon, question_words)
    values |= asdict(phrasing(signals.text)) | _earlier_features(earlier)
    values["align_score"] = nan if support is None else support.score
    return SentenceFeatures(schema, _in_order(values, schema))


def _names_of(version: str) -> tuple[str, ...]:
    if version not in SCHEMAS:
        known = ", ".join(map(repr, SCHEMAS))
        raise InputError(f"expected a feature schema of {known}; found {version!r}; name one of these")
    return SCHEMAS[version]


def _signal_features(signals: SentenceSignals) -> dict[str, float]:
    log_prob = _limited(signals.log_prob)  # (T,)
    gain = log_prob - _limited(signals.log_prob_without_context)  # (T,)
    kl = _limited(signals.kl)  # (T,)
    prob = np.exp(log_prob)  # (T,)
    return {
        "min_prob": prob.min(),
        "mean_prob": prob.mean(),
        "max_entropy": signals.entropy.max(),
        "mean_entropy": signals.entropy.mean(dtype=np.float64),
        "mean_contrastive_kl": kl.mean(),
        "large_kl_pos": nan if np.isnan(kl).any() else (kl > LARGE_KL_NATS).sum(),
        "max_contrastive_kl": kl.max(),
        "log_tokens": log(len(log_prob)),
        "mean_log_prob": log_prob.mean(),
        "min_log_prob": log_prob.min(),
        "mean_log_prob_gain": gain.mean(),
        "min_log_prob_gain": gain.min(),
    }


def _lexical_features(text: str, lexicon: ContextLexicon | None, question_words: AbstractSet[str]) -> dict[str, float]:
    shares = LexicalShares() if lexicon is None else lexical_shares(text, lexicon)
    in_question = share(content_words(text), question_words) if question_words else nan
    return asdict(shares) | {"question_overlap": in_question}


def _earlier_features(earlier: EarlierSentences) -> dict[str, float]:
    supports = [support for support in earlier.supports if not isnan(support)]
    return {
        "sentence_index": log1p(len(earlier.supports)),
        "earlier_support_mean": fmean(supports) if supports else nan,
        "earlier_support_min": min(supports, default=nan),
    }


def _limited(nats: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.clip(nats.astype(np.float64), -LIMIT_NATS, LIMIT_NATS)


def _in_order(values: Mapping[str, float], schema: FeatureSchema) -> NDArray[np.float64]:
    unknown = [name for name in schema.names if name not in values]
    if unknown:
        raise InputError(
            f"schema {schema.version!r} has features that are unknown here: {', '.join(map(repr, unknown))}; "
            f"use a schema of {', '.join(map(repr, SCHEMAS))} or a newer version of this package"
        )
    return np.array([values[name] for name in schema.names], dtype=np.float64)
