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
from syncheck.schemas import TEXT_FEATURES

__all__ = ["TextFeatures", "text_features"]

CONTRASTS: tuple[ContrastKind, ...] = ("negation", "number", "unit", "antonym", "comparison", "quantifier")
"""Kinds that are columns. Exchanged names are not: on answers to questions they are wrong as often as right, and count
in ``agreement`` alone."""


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """One sentence's features, and what they were read from.

    Attributes
    ----------
    values : dict of str to float
        By name, in the order of :data:`~syncheck.schemas.TEXT_FEATURES`; NaN means not measured.
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
        Log-odds of support, to which no measure of wording is added; None is not measured.
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
    return TextFeatures({name: values[name] for name in TEXT_FEATURES}, contrasted)
