"""The features of one sentence; those of text, context and aligner need no language model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from math import isnan, log1p, nan
from statistics import fmean
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from syncheck.errors import InputError
from syncheck.features.contrast import Contrasted, contrast_with
from syncheck.features.groundedness import ContextChunks, Rarity, groundedness, says_not_stated
from syncheck.features.parsing import ParsedText, parse
from syncheck.lexical import ContextLexicon, LexicalShares, content_words, lexical_shares, novel_pairs, share
from syncheck.schemas import LID, SCHEMAS, TEXT_FEATURES, signal_features
from syncheck.types import ContrastKind, FeatureSchema, SentenceFeatures, SentenceSignals, Support

_SOURCE = re.compile(
    r"\b(?:passages?|contexts?|texts?|sources?|information|provided|mention(?:s|ed)?|stated?|according to|based on)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:no|not|none|neither|cannot|unable|without|however)\b|n['\u2019]t\b", re.IGNORECASE)
_LIST_ITEM = re.compile(r"\s*(?:\d+[.)](?!\d)|[-*\u2022])")


@dataclass(frozen=True, slots=True)
class Phrasing:
    """Features that are 0 or 1, described in :data:`~syncheck.schemas.FEATURES`; upper and lower case are the same.

    "He never won." and "Nothing was found." have no negation; "However, it rained." and "No. 5 is blue." have one.
    "-5 °C was measured." and "**Note** it." are list items; "(1) c" and "a) x" are not.
    """

    source_mention: float
    negation: float
    list_item: float


def has_letter(sentence: str) -> bool:
    """Return whether a sentence has a letter of any script; one without, such as a list number, claims nothing."""
    return any(map(str.isalpha, sentence))


def phrasing(sentence: str) -> Phrasing:
    """Return how a sentence is phrased."""
    return Phrasing(
        source_mention=float(bool(_SOURCE.search(sentence))),
        negation=float(bool(_NEGATION.search(sentence))),
        list_item=float(bool(_LIST_ITEM.match(sentence))),
    )


@dataclass(frozen=True, slots=True)
class EarlierSentences:
    """The earlier sentences of an answer, without those that have no letter: their supports and the last one's text.

    A support is NaN where the aligner was not called.
    """

    supports: tuple[float, ...] = ()
    last: str = ""

    @classmethod
    def of(cls, sentences: Iterable[tuple[str, float | None]]) -> EarlierSentences:
        """Return sentences with their supports, None for one that was not measured."""
        kept = [(text, nan if support is None else support) for text, support in sentences if has_letter(text)]
        return cls(tuple(support for _, support in kept), kept[-1][0] if kept else "")

    def followed_by(self, text: str, support: float | None) -> EarlierSentences:
        """Return these sentences and one more; ``support`` None is not measured."""
        if not has_letter(text):
            return self
        return EarlierSentences((*self.supports, nan if support is None else support), text)


def sentence_features(
    schema: FeatureSchema,
    signals: SentenceSignals,
    *,
    support: Support | None,
    lexicon: ContextLexicon | None,
    question_words: AbstractSet[str],
    earlier: EarlierSentences,
    text_values: Mapping[str, float] | None = None,
) -> SentenceFeatures:
    """Compute the features of one sentence, in float64, by the formulas of the paper's appendix A.1 and our own.

    NaN is what was not measured: no context (``lexicon`` None), aligner, question, LID, number, name or earlier
    sentence; all features of a sentence without a token. ``text_values`` are those of :func:`text_features`.
    """
    if not len(signals.token_ids):
        return SentenceFeatures(schema, np.full(len(schema.names), nan))
    values = {name: nan for name in schema.names if name.startswith(LID.format(k=""))}
    values |= {LID.format(k=k): value for k, value in signals.lid.items()}
    values |= signal_features(signals)
    values |= asdict(LexicalShares() if lexicon is None else lexical_shares(signals.text, lexicon))
    values["question_overlap"] = share(content_words(signals.text), question_words) if question_words else nan
    values |= asdict(phrasing(signals.text)) | _earlier_features(earlier)
    values |= _previous_features(signals.text, lexicon, earlier)
    values["align_score"] = nan if support is None else support.score
    values = {**dict.fromkeys(TEXT_FEATURES, nan), **values, **(text_values or {})}
    return SentenceFeatures(schema, _in_order(values, schema))


def _earlier_features(earlier: EarlierSentences) -> dict[str, float]:
    supports = [support for support in earlier.supports if not isnan(support)]
    return {
        "sentence_index": log1p(len(earlier.supports)),
        "earlier_support_mean": fmean(supports) if supports else nan,
        "earlier_support_min": min(supports, default=nan),
    }


def _previous_features(text: str, lexicon: ContextLexicon | None, earlier: EarlierSentences) -> dict[str, float]:
    """Measure the sentence before: errors come in runs, and a sentence without a letter has no other evidence."""
    shares = LexicalShares() if lexicon is None else lexical_shares(earlier.last, lexicon)
    previous = {
        "support": earlier.supports[-1] if earlier.supports else nan,
        "pair_overlap": shares.pair_overlap,
        "copied_run": shares.copied_run,
    }
    inherits = not has_letter(text)
    return {f"previous_{name}": value for name, value in previous.items()} | {
        f"inherited_{name}": value if inherits else nan for name, value in previous.items()
    }


def _in_order(values: Mapping[str, float], schema: FeatureSchema) -> NDArray[np.float64]:
    unknown = [name for name in schema.names if name not in values]
    if unknown:
        raise InputError(
            f"schema {schema.version!r} has unknown features: {', '.join(map(repr, unknown))}; "
            f"use a schema of {', '.join(map(repr, SCHEMAS))} or a newer version of this package"
        )
    return np.array([values[name] for name in schema.names], dtype=np.float64)


_NUMBERS = r"(?:\s+#?\d+(?:\s*(?:,|and|&|-)\s*(?:passage\s+)?\d+)*)?"
_CITED = (
    r"(?:the\s+|these\s+|this\s+)?(?:(?:given|provided|above|available|following|supplied|relevant)\s+)*"
    r"(?:passages?|contexts?|texts?|sources?|information|documents?|article)(?:\s+(?:given|provided|above))?" + _NUMBERS
)
_BEFORE = r"\b(?:according\s+to|based\s+(?:up)?on|from|as\s+(?:stated|mentioned|per|described)\s+in|in|per)\s+"
_SAYS = r"\s+(?:states?|says?|mentions?|notes?|explains?|suggests?|indicates?|provides?|describes?)(?:\s+that)?\b"
_ASIDE = re.compile(
    rf"{_BEFORE}{_CITED}\s*[,:]?|\b{_CITED}(?:\s+also)?{_SAYS}|\(\s*{_CITED}\s*\)"
    r"|(?:^|\n)\s*\d+[.)](?!\d)|\[\d+(?:\s*[,;\u2013-]\s*\d+)*\]",
    re.IGNORECASE,
)


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
    read: Callable[[str], ParsedText] = parse,
) -> TextFeatures:
    """Compute the features of one sentence that need no language model.

    ``logit`` are the log-odds of support, None if not measured; ``best`` the numbers of the chunks that share most with
    the sentence, at most four, the best first; ``read`` is that of :func:`~syncheck.features.contrast.contrast_with`.
    """
    stated = statement(sentence)
    contrasted = contrast_with(stated, [chunks.texts[number] for number in best], read=read)
    values = asdict(lexical_shares(stated, lexicon)) | asdict(groundedness(stated, chunks, best, rarity=rarity))
    compared = not says_not_stated(sentence)
    values |= {f"contrast_{kind}": float(compared and contrasted.count(kind)) for kind in get_args(ContrastKind)}
    values["align_logit"] = nan if logit is None else logit
    values["agreement"] = contrasted.agreement
    values["novel_pairs"] = novel_pairs(stated, lexicon)
    return TextFeatures({name: values[name] for name in TEXT_FEATURES}, contrasted)
