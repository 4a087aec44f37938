"""Known abbreviations, as parameters of Punkt: a full stop after one ends no sentence."""

from __future__ import annotations

from collections.abc import Iterable

from nltk.tokenize.punkt import PunktLanguageVars, PunktParameters, PunktSentenceTokenizer

__all__ = ["ENGLISH_ABBREVIATIONS", "punkt"]

_TITLES = "Mr. Mrs. Ms. Messrs. Dr. Prof. Rev. Fr. Hon. Gov. Sen. Rep. Gen. Col. Maj. Capt. Lt. Sgt. Cpl. St. Mt. Ft."
_LATIN = "e.g. i.e. cf. viz. vs. v. ca. al. approx. resp."
_NAMES = "U.S. U.K. U.N. E.U. D.C. Inc. Ltd. Corp. Co. Bros. Dept. Univ. Assn."
_FIGURES = "Fig. Figs. Eq. Eqs. Ref. Refs."
_NUMBERED = (
    "No.# Nos.# Vol.# Ch.# Sec.# Art.# Para.# Ex.# p.# pp.# c.# "
    "Jan.# Feb.# Mar.# Apr.# Jun.# Jul.# Aug.# Sep.# Sept.# Oct.# Nov.# Dec.#"
)

ENGLISH_ABBREVIATIONS = tuple(f"{_TITLES} {_LATIN} {_NAMES} {_FIGURES} {_NUMBERED}".split())
"""English abbreviations that rarely end a sentence.

Those that often do (``etc.``, ``a.m.``, ``p.m.``, ``Jr.``) are left out: a sentence that ends in a known
abbreviation is joined with the next. Those with a ``#`` count before a number only: "No. 5", but "No. He left."
"""

_NUMBER = "##number##"
"""What Punkt calls the type of every number."""

_LANGUAGE = PunktLanguageVars()  # holds the compiled patterns, which do not depend on the parameters


def punkt(abbreviations: Iterable[str]) -> PunktSentenceTokenizer:
    """Return NLTK's untrained Punkt that knows these abbreviations.

    Parameters
    ----------
    abbreviations
        As written, with or without the last full stop, in any case; ``"No.#"`` counts before a number only.
        :class:`syncheck.SegmenterConfig` has checked them.
    """
    parameters = PunktParameters()
    for entry in abbreviations:
        word = entry.removesuffix("#").removesuffix(".").lower()
        if entry.endswith("#"):
            parameters.collocations.add((word, _NUMBER))
        else:
            parameters.abbrev_types.add(word)
    return PunktSentenceTokenizer(parameters, lang_vars=_LANGUAGE)
