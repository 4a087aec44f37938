"""Features: their meaning, units, directions and formulas; groups and schemas."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from math import log, nan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syncheck.base.errors import InputError
from syncheck.reading.claim import EarlierSentences
from syncheck.results.types import FeatureSchema, FloatArray, SentenceSignals, Support
from syncheck.text.words import ContextLexicon, LexicalShares, content_words, lexical_shares, share

LID = "lid_layer_{k}"
"""Name of one feature for each tapped decoder block k, counted from 0."""
LARGE_KL_NATS = 3.0
"""KL above which a token counts in ``large_kl_pos`` (paper, appendix A.1)."""
LIMIT_NATS = 100.0
"""Limit of log-probabilities and KL, in absolute value, so that features stay finite despite an impossible token."""


@dataclass(frozen=True, slots=True)
class SentenceTokens:
    """Signals of a sentence's T >= 1 tokens, each (T,), in nats; NaN means not measured."""

    prob: NDArray[np.float64]
    log_prob: NDArray[np.float64]
    gain: NDArray[np.float64]
    """Log-probability with minus without the context."""
    kl: NDArray[np.float64]
    entropy: FloatArray


@dataclass(frozen=True)
class SentenceText:
    """A sentence of at least one token, and what formulas read besides the model's signals."""

    text: str
    token_count: int | None
    """None if no language model's tokenizer has read the sentence."""
    question_words: AbstractSet[str]
    """Content words of the question."""
    lexicon: ContextLexicon | None
    """Words of the passages; None without passages."""
    support: Support | None
    """None if the aligner was not called."""
    earlier: EarlierSentences

    @cached_property
    def shares(self) -> LexicalShares:
        """Shares of its wording that occur in the passages; NaN without passages."""
        return LexicalShares() if self.lexicon is None else lexical_shares(self.text, self.lexicon)


@dataclass(frozen=True, slots=True)
class Feature:
    """Description of one feature; it has no formula if a whole family is computed at once."""

    name: str
    group: str
    """Signal that it comes from; see :data:`FEATURE_GROUPS`."""
    meaning: str
    unit: str
    """Unit and range."""
    direction: int
    """+1 if a higher value is expected to be more faithful, -1 if a lower one, 0 if neither."""
    cost: str
    """Computation needed in addition to the model's own forward pass."""
    of_model: bool
    """True if it needs the language model's signals."""
    formula: Callable[[Any], float] | None = None
    """Reads :class:`SentenceTokens` if it needs signals, or else :class:`SentenceText`."""


_SHARE = "share, [0, 1]"
_PROBABILITY = "probability, [0, 1]"
_ENTROPY = "nats, [0, ln V]"
_KL = "nats, [0, 100]"
_LOG_PROB = "nats, [-100, 0]"
_GAIN = "nats, [-100, 100]"
_CONTRASTS = "contrasts, >= 0"
_FLAG = "0 or 1"


def _group(group: str, *rows: tuple[Any, ...], cost: str = "none", of_model: bool = False) -> tuple[Feature, ...]:
    return tuple(
        Feature(name, group, meaning, unit, direction, cost, of_model, *formula[:1])
        for name, meaning, unit, direction, *formula in rows
    )


def _large(kl: NDArray[np.float64]) -> float:
    return nan if np.isnan(kl).any() else (kl > LARGE_KL_NATS).sum()


def _align_score(of: SentenceText) -> float:
    return nan if of.support is None else of.support.score


def _question_overlap(of: SentenceText) -> float:
    return share(content_words(of.text), of.question_words) if of.question_words else nan


_SOURCE = re.compile(
    r"\b(?:passages?|contexts?|texts?|sources?|information|provided|mention(?:s|ed)?|stated?|according to|based on)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:no|not|none|neither|cannot|unable|without|however)\b|n['\u2019]t\b", re.IGNORECASE)
_LIST_ITEM = re.compile(r"\s*(?:\d+[.)](?!\d)|[-*\u2022])")

FEATURES: tuple[Feature, ...] = (
    *_group(
        "likelihood",
        ("min_prob", "probability of the least likely token", _PROBABILITY, 1, lambda of: of.prob.min()),
        ("mean_prob", "mean probability of the tokens", _PROBABILITY, 1, lambda of: of.prob.mean()),
        ("mean_log_prob", "mean log-probability of the tokens", _LOG_PROB, 1, lambda of: of.log_prob.mean()),
        ("min_log_prob", "log-probability of the least likely token", _LOG_PROB, 1, lambda of: of.log_prob.min()),
        of_model=True,
    ),
    *_group(
        "entropy",
        ("max_entropy", "largest entropy at a token", _ENTROPY, -1, lambda of: of.entropy.max()),
        ("mean_entropy", "mean entropy at the tokens", _ENTROPY, -1, lambda of: of.entropy.mean(dtype=np.float64)),
        of_model=True,
    ),
    *_group(
        "LID",
        (LID, "local intrinsic dimension of block k's output among references", "dimension, >= 0", -1),
        cost="distances to the references",
        of_model=True,
    ),
    *_group(
        "context influence",
        ("mean_contrastive_kl", "mean KL(with || without context)", _KL, 0, lambda of: of.kl.mean()),
        ("large_kl_pos", "tokens with a KL above 3 nats", "tokens, >= 0", 0, lambda of: _large(of.kl)),
        ("max_contrastive_kl", "largest KL(with || without context)", _KL, 0, lambda of: of.kl.max()),
        ("mean_log_prob_gain", "mean of log p with minus without context", _GAIN, 1, lambda of: of.gain.mean()),
        ("min_log_prob_gain", "least of log p with minus without context", _GAIN, 1, lambda of: of.gain.min()),
        cost="one pass over the sentence without the context",
        of_model=True,
    ),
    *_group(
        "aligner",
        ("align_score", "support of the sentence by the context", _PROBABILITY, 1, _align_score),
        ("align_logit", "log-odds of support by the context, before calibration", "nats", 1),
        cost="the aligner",
    ),
    *_group(
        "lexical",
        ("content_overlap", "content words that the context holds", _SHARE, 1),
        ("bigram_overlap", "word pairs that the context holds", _SHARE, 1),
        ("number_overlap", "numbers that the context holds", _SHARE, 1),
        ("name_overlap", "names, capitalised inside the sentence, that the context holds", _SHARE, 1),
        ("stem_overlap", "content words whose stem the context holds", _SHARE, 1),
        ("pair_overlap", "neighbouring content words that are near in a passage", _SHARE, 1),
        ("copied_run", "longest run of words that stands in a passage", _SHARE, 1),
        ("novel_words", "ln(1 + stems that the context lacks)", "ln words, >= 0", -1),
    ),
    *_group(
        "question and length",
        ("question_overlap", "content words that the question holds", _SHARE, 0, _question_overlap),
        ("log_tokens", "ln of the number of tokens", "ln tokens, >= 0", 0, lambda of: log(of.token_count or nan)),
    ),
    *_group(
        "earlier sentences",
        ("sentence_index", "ln(1 + the answer's earlier sentences with a letter)", "ln sentences, >= 0", -1),
        ("earlier_support_mean", "mean support of these earlier sentences", _PROBABILITY, 1),
        ("earlier_support_min", "least support of these earlier sentences", _PROBABILITY, 1),
        ("previous_support", "support of the sentence before", _PROBABILITY, 1),
        ("previous_pair_overlap", "pair_overlap of the sentence before", _SHARE, 1),
        ("previous_copied_run", "copied_run of the sentence before", _SHARE, 1),
        ("inherited_support", "previous_support, of a sentence without a letter", _PROBABILITY, 1),
        ("inherited_pair_overlap", "previous_pair_overlap, of one without a letter", _SHARE, 1),
        ("inherited_copied_run", "previous_copied_run, of one without a letter", _SHARE, 1),
    ),
    *_group(
        "phrasing",
        (
            "source_mention",
            "whether it has one of: passage(s), context(s), text(s), source(s), information, provided, mention(s), "
            "mention(ed), state(d), according to, based on (English)",
            _FLAG,
            0,
            lambda of: bool(_SOURCE.search(of.text)),
        ),
        (
            "negation",
            "whether it has one of: no, not, none, neither, cannot, unable, without, however, n't (English)",
            _FLAG,
            0,
            lambda of: bool(_NEGATION.search(of.text)),
        ),
        (
            "list_item",
            "whether it begins with a number and . or ) with no digit after it, or with -, * or •",
            _FLAG,
            0,
            lambda of: bool(_LIST_ITEM.match(of.text)),
        ),
    ),
    *_group(
        "groundedness",
        ("rarity_nearby", "rarity of its stems that a chunk with its neighbours holds", _SHARE, 1),
        ("rarity_best", "rarity of its stems that the best chunk holds", _SHARE, 1),
        ("pieces_1", "five-character pieces that the best chunk holds", _SHARE, 1),
        ("pieces_2", "five-character pieces that the two best chunks hold", _SHARE, 1),
        ("pieces_4", "five-character pieces that the four best chunks hold", _SHARE, 1),
        ("stems_2", "stems that the two best chunks hold", _SHARE, 1),
        ("stems_1", "stems that one chunk holds at most", _SHARE, 1),
        ("bigrams_2", "word pairs that the two best chunks hold", _SHARE, 1),
        ("absence", "stems that the context lacks, where it says that something is not stated", _SHARE, 1),
        ("novel_pairs", "ln(1 + neighbouring content words that are near in no passage)", "ln pairs, >= 0", -1),
        ("missing_rarity", "ln(1 + rarity of the stems that no chunk holds)", "ln nats, >= 0", -1),
        ("missing_numbers", "numbers, also spelled out, that the context lacks", "numbers, >= 0", -1),
        ("missing_names", "names that the context lacks", "names, >= 0", -1),
    ),
    *_group(
        "contrast",
        ("closeness", "content stems, and half the words in order, that the closest chunk holds", "share, [0, 1.5]", 1),
        ("contrasts", "words that contradict the closest chunk, by the rules that proved right", _CONTRASTS, -1),
    ),
)
"""Every feature; NaN in any of them means not measured."""

_BY_NAME = {feature.name: feature for feature in FEATURES}


def feature_of(column: str) -> Feature | None:
    """Look up the description of a column; None if no released schema has it."""
    return _BY_NAME.get(LID if column.startswith(LID.format(k="")) else column)


FEATURE_GROUPS: Mapping[str, tuple[str, ...]] = {
    group: tuple(feature.name for feature in FEATURES if feature.group == group)
    for group in dict.fromkeys(feature.group for feature in FEATURES)
}
"""Features by signal. The first five groups are the paper's (Table 4), whose "uncertainty" is entropy and LID."""

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
_THIRD = (
    *("previous_support", "previous_pair_overlap", "previous_copied_run"),
    *("inherited_support", "inherited_pair_overlap", "inherited_copied_run"),
)

TEXT_FEATURES: tuple[str, ...] = (
    "align_logit",
    *("pair_overlap", "bigram_overlap", "content_overlap", "number_overlap", "name_overlap", "copied_run"),
    *("rarity_nearby", "rarity_best", "pieces_1", "pieces_2", "pieces_4", "stems_2", "stems_1", "bigrams_2"),
    *("absence", "closeness", "novel_pairs", "missing_rarity", "missing_numbers", "missing_names", "contrasts"),
)
"""Features of text, context and aligner, without a language model; they carry over to unseen sources."""

ALIGNER_ALONE: Final = "aligner.v1"
"""Schema of a monitor whose score is the support of its aligner."""

_BEYOND_ENDPOINTS = (
    *(LID, "max_entropy", "mean_entropy"),
    *("mean_contrastive_kl", "large_kl_pos", "max_contrastive_kl"),
)
"""Features that need the whole distribution or hidden states, which inference servers do not report."""

SCHEMAS: Mapping[str, tuple[str, ...]] = {
    "paper.v1": _PAPER,  # Table 4
    "paper-no-lid.v1": tuple(name for name in _PAPER if name != LID),  # Table 4 for Summary and Data2txt
    "syncheck.v1": _PAPER + _FIRST,
    "syncheck.v2": _PAPER + _FIRST + _SECOND,
    "syncheck.v3": _PAPER + _FIRST + _SECOND + _THIRD,
    "syncheck.v5": TEXT_FEATURES,
    "syncheck.v6": tuple(dict.fromkeys(_PAPER + _FIRST + _SECOND + _THIRD + TEXT_FEATURES)),
    ALIGNER_ALONE: ("align_score",),
    "endpoint.v1": tuple(name for name in _PAPER + _FIRST + _SECOND + _THIRD if name not in _BEYOND_ENDPOINTS),
}
"""Features of each released version, in column order; a released version never changes.

Features can be added by name: ``syncheck.v3+novel_pairs`` has those of ``syncheck.v3``, then this one."""


def feature_schema(version: str, layers: Sequence[int]) -> FeatureSchema:
    """Build the feature schema of a version; raise InputError if there is none.

    ``version`` is one of :data:`SCHEMAS`, such as ``"paper.v1"``, or one with features added by name:
    ``"syncheck.v3+novel_pairs"``. ``layers`` are the decoder blocks of LID features, counted from 0, in their order.
    """
    columns = [
        (column, _BY_NAME[name])
        for name in _names_of(version)
        for column in ([LID.format(k=k) for k in layers] if name == LID else [name])
    ]
    return FeatureSchema(
        version=version,
        names=tuple(column for column, _ in columns),
        units=tuple(feature.unit for _, feature in columns),
        directions=tuple(feature.direction for _, feature in columns),
    )


def signal_features(signals: SentenceSignals) -> dict[str, float]:
    """Compute the features of the model's signals; those of entropy and KL never fall as a token's value rises."""
    log_prob, without_context, kl = (
        np.clip(nats.astype(np.float64), -LIMIT_NATS, LIMIT_NATS)
        for nats in (signals.log_prob, signals.log_prob_without_context, signals.kl)
    )
    tokens = SentenceTokens(np.exp(log_prob), log_prob, log_prob - without_context, kl, signals.entropy)
    return {feature.name: feature.formula(tokens) for feature in FEATURES if feature.of_model and feature.formula}


def needs_signals(version: str) -> bool:
    """Tell whether a schema version has features of the language model's signals, which need a forward pass."""
    return not {feature.name for feature in FEATURES if not feature.of_model}.issuperset(_names_of(version))


def is_of_paper(version: str) -> bool:
    """Tell whether a schema version has the features of the paper alone, whose monitors score every sentence."""
    return set(_PAPER).issuperset(_names_of(version)) and version != ALIGNER_ALONE


def require_text_schema(version: str) -> None:
    """Refuse, with an InputError, a schema whose features need a language model's signals."""
    if needs_signals(version):
        raise InputError(
            f"schema {version!r} has features of a language model's signals; use syncheck.Monitor with that model, or "
            "a schema of text alone, such as 'syncheck.v5'"
        )


def needs_lid(version: str) -> bool:
    """Tell whether a schema version has LID features, and so needs reference activations."""
    return LID in _names_of(version)


def beyond_endpoints(names: Sequence[str]) -> tuple[str, ...]:
    """List the columns that no inference server reports: entropy, KL and LID."""
    return tuple(name for name in names if _belongs(name, _BEYOND_ENDPOINTS))


def _names_of(version: str) -> tuple[str, ...]:
    released, *tried = version.split("+")
    names = (*SCHEMAS.get(released, ()), *tried)
    if released not in SCHEMAS or len(set(names)) < len(names) or not {f.name for f in FEATURES}.issuperset(tried):
        known = ", ".join(map(repr, SCHEMAS))
        raise InputError(
            f"expected a feature schema of {known}, or one of these with + and the name of a feature that it lacks; "
            f"found {version!r}; name one of these"
        )
    return names


def feature_groups(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Group the columns of a schema by signal, without empty groups; an unknown column raises InputError."""
    if unknown := [name for name in names if not any(_belongs(name, group) for group in FEATURE_GROUPS.values())]:
        raise InputError(
            f"expected features of the groups {', '.join(FEATURE_GROUPS)}; found {', '.join(map(repr, unknown))} in "
            "none of them; add them to FEATURES in syncheck/features/schemas.py"
        )
    grouped = {group: tuple(n for n in names if _belongs(n, members)) for group, members in FEATURE_GROUPS.items()}
    return {group: columns for group, columns in grouped.items() if columns}


def _belongs(name: str, members: Sequence[str]) -> bool:
    return name in members or (LID in members and name.startswith(LID.format(k="")))
