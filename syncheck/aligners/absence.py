"""Absence: what a sentence says that the passages do not tell, and claims that would be supported if they did.

"The passages do not say when the mill opened." is true unless they support "The mill opened in 1803." or the like for a
date that they have. So each date is tried, or each number, name or place, as the words that ask want it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import exp, log, log1p
from typing import Literal, cast

from syncheck.aligners.protocol import Unaligned
from syncheck.base.files import asset_patterns
from syncheck.reading.claim import says_not_stated, statement
from syncheck.reading.claimless import SOURCES
from syncheck.reading.evidence import EvidenceIndex
from syncheck.results.types import Evidence, Support
from syncheck.text.notation import MONTHS

Wanted = Literal["time", "duration", "amount", "person", "place", "which", "reason", "manner", "truth", "thing"]
"""What would have to stand in a passage that tells: a time, a duration, a number, a name, a place, one of several, a
reason, that something is so or not, or anything."""
TYPED: frozenset[Wanted] = frozenset({"time", "duration", "amount", "person", "place", "manner"})
"""Answers of which it takes more than the subject to be told."""
MOST_PROBES = 24  # claims that are tried; those of the chunks that share most with what is absent come first


@dataclass(frozen=True, slots=True)
class Absence:
    """What is said to be absent: its words, and what would have to stand in a passage that tells it."""

    text: str
    wanted: Wanted
    rest: str = ""  # what the sentence states beside that, before or after a "but"; "" if nothing
    is_loose: bool = False
    """True if it names nothing, wants something further or more specific, or speaks of one passage alone."""


_ENGLISH = asset_patterns("english/absence.txt", month=rf"(?:{'|'.join(MONTHS)})", sources=SOURCES)


def _of_kind(kind: str) -> list[tuple[Wanted, re.Pattern[str]]]:
    return [(cast("Wanted", name.split()[1]), form) for name, form in _ENGLISH.items() if name.startswith(f"{kind} ")]


def absence_in(sentence: str, question: str) -> Absence | None:
    """Read what a sentence says is absent: "the mill opened" (time) in "They do not say when the mill opened".

    None if it names nothing and there is no question that would, or points to what it states itself.
    """
    stated = _ENGLISH["opening"].sub("", statement(sentence).strip(" .!()"))
    parts = [part for part in _ENGLISH["but"].split(stated) if part.strip()]
    for number, part in enumerate(parts):
        matches = (form.search(part) for _, form in _of_kind("form"))
        named = next((" ".join(filter(None, match.groups())) for match in matches if match is not None), "")
        if not named and _ENGLISH["generic"].search(part) is None:
            continue
        rest = ". ".join(other for other in (*parts[:number], *parts[number + 1 :]) if len(other.split()) > 2)
        named = "" if _ENGLISH["asks"].search(named) else _ENGLISH["trailing"].sub("", named).strip(" ,.")
        if _ENGLISH["points"].fullmatch(named):
            return None
        if named or question.strip():
            loose = _ENGLISH["qualified"].search(part) or _ENGLISH["one passage"].search(sentence)
            is_loose = not named or loose is not None
            return Absence(*wanted_by(named or question), rest, is_loose)
    return None


def wanted_by(text: str) -> tuple[str, Wanted]:
    """Tell what a question, a clause that asks, or a noun asks for; its words without the word that asks."""
    text = text.strip(" ?.,")
    for wanted, form in _of_kind("asking"):
        if (asked := form.match(text)) is not None:
            return text[asked.end() :].strip() or text, wanted
    for wanted, form in _of_kind("named"):
        if form.match(text):
            return text, wanted
    return text, "manner" if _ENGLISH["manner"].search(text) else "thing"


def probes(absence: Absence, chunks: Iterable[str]) -> list[str]:
    """Word the claims of which one is supported if the chunks tell what is said to be absent; none if they cannot.

    For the time of "the mill opened", "It burned in 1911." gives "The mill opened in 1911.".
    """
    text, after = absence.text, ""
    inverted = _ENGLISH["auxiliary"].match(text)
    if inverted is not None:
        text = text[inverted.end() :]
        after = "" if inverted[1].lower() in ("do", "does", "did") else f" {inverted[1].lower()}"
    if not text:
        return []
    wording = _ENGLISH.get(f"candidate {absence.wanted}")
    if wording is None:
        is_told = absence.wanted != "reason" or any(_ENGLISH["reason"].search(chunk) for chunk in chunks)
        is_asked = absence.wanted == "truth" and after
        told = absence.text if is_asked else re.sub(r"(?<=\w)\s+(?:do(?:es)?|did|means?)$", "", text)
        return [_sentence(told)] if is_told else []
    candidates = (match[0].strip(" .,") for chunk in chunks for match in wording.finditer(chunk))
    worded = (_sentence(_with(text, after, candidate, absence.wanted)) for candidate in candidates)
    return list(dict.fromkeys(worded))[:MOST_PROBES]


def _with(text: str, after: str, candidate: str, wanted: Wanted) -> str:
    if re.match(r"(?:the\s+)?number\s+of\b", text, re.IGNORECASE):
        return f"{text} is {candidate.split()[0]}"
    if wanted == "person" and not re.match(r"(?:the|its|their|a|an)\s", text, re.IGNORECASE):
        return f"{candidate} {text}"
    if wanted == "which":
        return f"the {text} is {candidate}"
    if wanted == "person" or (not after and wanted_by(text)[1] == wanted):
        return f"{text} is {candidate}"
    return f"{text}{after} {candidate}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


SMALLEST_SUPPORT = 1e-6  # least distance from 0 and 1 of a support that is turned into log-odds
SEARCHED_CHUNKS = 4  # number of chunks whose times, numbers, names and places are tried
LIKELY_TYPED, LIKELY_OTHER = 0.75, 0.4
"""P(told) at which a sentence has half of :data:`MOST_ABSENT`: where times, numbers, names or places are tried, and
where nothing could be."""
SLOPE = 1.2  # how steeply its score falls there, in log-odds; these numbers were chosen on 30 sentences
MOST_ABSENT = 0.95  # score of a sentence whose absence nothing speaks against: passages may tell it in other words
LEAST_LOOSE = 0.6  # score of a loose absence that the passages seem to tell: people marked 12 of 184 in RAGTruth
SAID_ABOVE = 0.8  # support above which a passage that calls something not stated itself is believed

Ask = Callable[[Sequence[str], Sequence[str]], Sequence[Support | Unaligned]]
"""Aligner of passages and claims, with a reason for a claim without support."""


@dataclass(frozen=True, slots=True)
class Presence:
    """How likely the passages tell what a sentence calls absent."""

    absence: Absence
    told: float  # P(told) in [0, 1]
    evidence: Evidence | None  # what tells it, if anything does

    @property
    def absent(self) -> float:
        """P(faithful) of what the sentence says of absence."""
        odds = SLOPE * (logit(LIKELY_TYPED if self.absence.wanted in TYPED else LIKELY_OTHER) - logit(self.told))
        least = LEAST_LOOSE if self.absence.is_loose else 0.0
        return least + (MOST_ABSENT - least) / (1 + exp(-odds))


def look_for(
    said: Sequence[tuple[Absence, Support]], index: EvidenceIndex, question: str, ask: Ask
) -> list[Presence | None]:
    """Look for what sentences call absent, each with the support of the sentence itself, in one batch of the aligner.

    None for an aligner that does not distinguish contradicted from not stated, one that fails, and a passage that
    itself says that something is not stated.
    """
    tried: list[list[str] | None] = []
    for absence, support in said:
        nearest, best = index.best(absence.text, 1), index.best(f"{absence.text} {question}", SEARCHED_CHUNKS)
        says_so = support.score > SAID_ABOVE and any(says_not_stated(index.chunks[chunk].text) for chunk in nearest)
        is_open = support.contradicted is not None and not says_so
        tried.append(probes(absence, [index.chunks[chunk].text for chunk in best]) if is_open else None)
    every = [probe for wanted in tried for probe in wanted or ()]
    judged = iter(ask(index.passages, every) if every else ())
    presences: list[Presence | None] = []
    for (absence, _), wanted in zip(said, tried, strict=True):
        supports = [one for one in (next(judged) for _ in wanted or ()) if isinstance(one, Support)]
        if wanted is None or len(supports) < len(wanted):
            presences.append(None)
            continue
        is_yes_or_no = absence.wanted == "truth"  # that it is not so tells it too
        likely = [min(1.0, s.score + (s.contradicted or 0) * is_yes_or_no) for s in supports]
        told = max(likely, default=0.0)
        evidence = supports[likely.index(told)].evidence if told > 0.5 else None
        told = min(told, LIKELY_TYPED) if absence.wanted == "manner" else told
        presences.append(Presence(absence, told, evidence))
    return presences


LARGEST_EXPONENT = 700.0
"""Largest number of which ``exp`` is finite, rounded down."""


def against(support: Support, opposite: Support) -> Support:
    """Weigh the support of "yes" against that of "no", or the reverse: half the difference of their log-odds.

    Alone, an aligner may find support for both.
    """
    own, other = (logit(s.score) if s.log_odds is None else s.log_odds for s in (support, opposite))
    log_odds = (own - other) / 2
    score = 1 / (1 + exp(min(-log_odds, LARGEST_EXPONENT)))
    evidence = support.evidence if log_odds >= 0 else opposite.evidence
    return Support(score, evidence, log_odds, None if support.contradicted is None else 1 - score)


def logit(share: float) -> float:
    """Compute the log-odds of a probability, which is kept away from 0 and 1."""
    share = min(max(share, SMALLEST_SUPPORT), 1 - SMALLEST_SUPPORT)
    return log(share) - log1p(-share)
