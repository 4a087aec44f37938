"""Features of a sentence that need no language model: they come from its text, the context and the aligner."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import nan

from syncheck.features.contrast import Contrasted, contrast_with
from syncheck.features.groundedness import ContextChunks, Rarity, groundedness
from syncheck.lexical import ContextLexicon, lexical_shares, novel_pairs
from syncheck.schemas import TEXT_FEATURES
from syncheck.types import ContrastKind

_NUMBERS = r"(?:\s+#?\d+(?:\s*(?:,|and|&|-)\s*(?:passage\s+)?\d+)*)?"
_SOURCE = (
    r"(?:the\s+|these\s+|this\s+)?(?:(?:given|provided|above|available|following|supplied|relevant)\s+)*"
    r"(?:passages?|contexts?|texts?|sources?|information|documents?|article)(?:\s+(?:given|provided|above))?" + _NUMBERS
)
_BEFORE = r"\b(?:according\s+to|based\s+(?:up)?on|from|as\s+(?:stated|mentioned|per|described)\s+in|in|per)\s+"
_SAYS = r"\s+(?:states?|says?|mentions?|notes?|explains?|suggests?|indicates?|provides?|describes?)(?:\s+that)?\b"
_ASIDE = re.compile(
    rf"{_BEFORE}{_SOURCE}\s*[,:]?|\b{_SOURCE}(?:\s+also)?{_SAYS}|\(\s*{_SOURCE}\s*\)"
    r"|(?:^|\n)\s*\d+[.)](?!\d)|\[\d+\]",
    re.IGNORECASE,
)

CONTRASTS: tuple[ContrastKind, ...] = ("negation", "number", "unit", "antonym", "comparison", "quantifier")
"""Contrasts that are features. Exchanged names count in ``agreement`` alone: in answers to questions they are wrong as
often as right."""


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """The features of one sentence by name, in the order of ``TEXT_FEATURES``, and its contrasts for a report."""

    values: dict[str, float]
    contrasted: Contrasted


def statement(sentence: str) -> str:
    """Return a sentence without list numbers, citation marks and phrases such as "According to passage 2,".

    A sentence that has nothing else is returned as it is.

    Examples
    --------
    >>> statement("1. According to passage 2, the bridge opened in 1967 [3].")
    'the bridge opened in 1967 .'
    """
    rest = " ".join(_ASIDE.sub(" ", sentence).split())
    return rest if re.search(r"\w", rest) else sentence


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
        Log-odds of support; None is not measured.
    chunks, lexicon
        The context.
    best
        Numbers of the chunks that share most with the sentence, at most four, the best first.
    rarity
        Weights of stems.
    """
    stated = statement(sentence)
    contrasted = contrast_with(stated, [chunks.texts[number] for number in best])
    values = asdict(lexical_shares(stated, lexicon)) | asdict(groundedness(stated, chunks, best, rarity=rarity))
    values |= {f"contrast_{kind}": float(contrasted.count(kind)) for kind in CONTRASTS}
    values["align_logit"] = nan if logit is None else logit
    values["agreement"] = contrasted.agreement
    values["novel_pairs"] = novel_pairs(stated, lexicon)
    return TextFeatures({name: values[name] for name in TEXT_FEATURES}, contrasted)
