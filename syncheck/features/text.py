"""The features of a sentence that its text, the context and the aligner decide: no language model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import nan

from syncheck.features.contrast import Contrasted, ContrastKind, contrast_with
from syncheck.features.groundedness import ContextChunks, groundedness
from syncheck.features.rarity import Rarity
from syncheck.features.stated import statement
from syncheck.lexical import ContextLexicon, lexical_shares, novel_pairs

__all__ = ["TEXT_FEATURES", "TextFeature", "TextFeatures", "text_features"]


@dataclass(frozen=True, slots=True)
class TextFeature:
    """A column, the direction that speaks for faithful, and the weight that a fit is pulled towards.

    Attributes
    ----------
    name : str
    direction : int
        +1 or -1.
    prior_weight : float
        Of the standardised feature, in nats; see :class:`~syncheck.aggregators.monotone.MonotoneLogisticRegression`.
    """

    name: str
    direction: int
    prior_weight: float = 0.15


CONTRASTS: tuple[ContrastKind, ...] = ("negation", "number", "unit", "antonym", "comparison", "quantifier")
"""Kinds that are columns. Exchanged names are not: on answers to questions they are wrong as often as right, and count
in ``agreement`` alone."""
_CONTRAST_WEIGHT = 0.1
_SPEAKS_FOR = (
    *("pair_overlap", "bigram_overlap", "content_overlap", "number_overlap", "name_overlap", "copied_run"),
    *("rarity_nearby", "rarity_best", "pieces_1", "pieces_2", "pieces_4", "stems_2", "stems_1", "bigrams_2"),
    *("absence", "agreement"),
)
_SPEAKS_AGAINST = ("novel_pairs", "missing_rarity", "missing_numbers", "missing_names")

TEXT_FEATURES: tuple[TextFeature, ...] = (
    TextFeature("align_logit", 1, 0.55),
    *(TextFeature(name, 1) for name in _SPEAKS_FOR),
    *(TextFeature(name, -1) for name in _SPEAKS_AGAINST),
    *(TextFeature(f"contrast_{kind}", -1, _CONTRAST_WEIGHT) for kind in CONTRASTS),
)
"""In column order. Chosen, and their weights too, by leaving one source of labelled sentences out."""


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """One sentence's features, and what they were read from.

    Attributes
    ----------
    values : dict of str to float
        By name, in the order of :data:`TEXT_FEATURES`; NaN means not measured.
    contrasted : Contrasted
        What the sentence says otherwise than the context, for a report.
    """

    values: dict[str, float]
    contrasted: Contrasted


def text_features(
    sentence: str,
    *,
    logit: float | None,
    chunks: ContextChunks,
    best: Sequence[int],
    lexicon: ContextLexicon,
    rarity: Rarity,
) -> TextFeatures:
    """Compute the features of one sentence.

    Parameters
    ----------
    sentence
    logit
        The aligner's own, to which no measure of wording is added; None is not measured.
    chunks, lexicon
        Of the context.
    best
        The four chunks, or fewer, that share most with the sentence, the best first.
    rarity
        Weighs stems.
    """
    stated = statement(sentence)
    contrasted = contrast_with(stated, [chunks.texts[number] for number in best])
    values = asdict(lexical_shares(stated, lexicon)) | asdict(groundedness(stated, chunks, best, rarity=rarity))
    values |= {f"contrast_{kind}": float(contrasted.count(kind)) for kind in CONTRASTS}
    values["align_logit"] = nan if logit is None else logit
    values["agreement"] = contrasted.agreement
    values["novel_pairs"] = novel_pairs(stated, lexicon)
    return TextFeatures({feature.name: values[feature.name] for feature in TEXT_FEATURES}, contrasted)
