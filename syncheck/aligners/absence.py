"""Absence: what a sentence says that the passages do not tell, and claims that would be supported if they did.

"The passages do not say when the mill opened." is true unless they support "The mill opened in 1803." or the like for a
date that they have. So each date is tried, or each number, name or place, as the words that ask want it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import exp, log, log1p
from typing import Literal

from syncheck.aligners.protocol import Unaligned
from syncheck.reading.evidence import EvidenceIndex
from syncheck.results.types import Evidence, Support
from syncheck.text.claimless import says_not_stated, statement
from syncheck.text.notation import MONTHS

Wanted = Literal["time", "duration", "amount", "person", "place", "which", "reason", "manner", "truth", "thing"]
"""What would have to stand in a passage that tells: a time, a duration, a number, a name, a place, one of several, a
reason, that something is so or not, or anything."""
TYPED: frozenset[Wanted] = frozenset({"time", "duration", "amount", "person", "place", "manner"})
"""Answers of which it takes more than the subject to be told."""
MOST_PROBES = 24
"""Largest number of claims that are tried; those of the chunks that share most with what is absent come first."""


@dataclass(frozen=True, slots=True)
class Absence:
    """What is said to be absent: its words, and what would have to stand in a passage that tells it."""

    text: str
    wanted: Wanted
    rest: str = ""
    """What the sentence states beside that, before or after a "but"; "" if nothing."""
    is_loose: bool = False
    """True if passages that tell something need not tell that: it is a refusal that names nothing, it wants something
    further or more specific, or speaks of one passage alone."""


_SOURCE = (
    r"(?:(?:the|these|this|those|any\s+of\s+the)\s+)?(?:(?:given|provided|above|available|retrieved|supplied)\s+)*"
    r"(?:passages?|contexts?|texts?|sources?|documents?|documentation|articles?|excerpts?|contract|minutes|manual|page|"
    r"report|leaflet|policy|information|record|table|data)(?:\s+(?:given|provided|above))?"
)
_NOT = r"(?:do(?:es)?|did|is|are|was|were|has|have|can|could)(?:\s+not|n['\u2019]t)"
_ADVERB = r"(?:(?:explicitly|directly|clearly|specifically|actually|even|anywhere)\s+)?"
_TELL = (
    r"(?:mention|specif(?:y|ies)|provide|state|say|tell|contain|indicate|address|discuss|describe|explain|give|"
    r"list|name|reveal|note|clarify|show|report|make\s+(?:it\s+)?clear|talk\s+about|speak\s+of)"
)
_STATED = r"(?:mentioned|specified|provided|stated|given|indicated|explained|listed)"
_TOLD = rf"(?:{_STATED}|addressed|discussed|described|named|told|said|known|clear|disclosed|found)"
_FACTS = (
    r"(?:(?:any|further|specific|sufficient|explicit|direct|clear)\s+)*"
    r"(?:information|details?|mention|data|evidence|word)"
)
_QUALIFIED = re.compile(
    r"\b(?:additional|further|more|other|else|beyond|specific(?:ally)?|detailed|exact|explicit|comprehensive|complete|"
    r"direct(?:ly)?|particular)\b",
    re.IGNORECASE,
)
"""Words by which a passage that tells something may still not tell what is meant."""
_OPENING = re.compile(
    r"^\W*(?:(?:however|therefore|additionally|unfortunately|sorry|moreover|finally|please|but|and|so|answer:)[,\s]+"
    r"|(?:please\s+)?note\s+that\s+|it(?:\s+is|['\u2019]s)\s+(?:important\s+to\s+note|worth\s+noting)\s+that\s+)+",
    re.IGNORECASE,
)
_MANNER = re.compile(r"\b(?:instructions?|steps|recipe|guidance|procedure|method|how\s+to)\b", re.IGNORECASE)
_ONE_PASSAGE = re.compile(r"\b(?:passage|document|source|text|this\s+passage)\s+#?\d", re.IGNORECASE)
_ABOUT = r"(?:about|on|of|regarding|concerning|as\s+to|for|to\s+(?:answer|determine|say|tell))"
_ASKED = (
    r"(?:whether|if|when|where|who|whom|whose|which|what|why|how|that|"
    r"(?:from|at|in|to|by|against|with|for|under|on|since)\s+(?:which|what|whom|where))\b"
)
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\b(?:no|not\s+enough|not\s+any|insufficient)\s+{_FACTS}\s+(?:(?:is|are)\s+)?(?:{_TOLD}\s+)?(?:in\s+{_SOURCE}\s+)?"
        rf"(?:{_ABOUT}\s+(?P<about>.+)|(?P<asked>{_ASKED}.+))",
        rf"\bnone\s+of\s+{_SOURCE}\s+{_ADVERB}{_TELL}s?\s+(?:(?:anything|{_FACTS})\s+(?:{_ABOUT}\s+)?)?(?P<none>.+)",
        rf"\b(?:{_SOURCE}(?:\s+#?\d+)?|nothing|none\s+of\s+\w+\s+\w+|(?:it|they)(?=\s+do))\s+{_NOT}\s+{_ADVERB}{_TELL}\s+(?:us\s+)?"
        rf"(?:(?:anything|{_FACTS})\s+(?:{_ABOUT}\s+)?)?(?P<told>.+)",
        r"\bsays?\s+nothing\s+(?:about|on|of)\s+(?P<nothing>.+)",
        rf"^nothing\s+(?:is|was)\s+{_TOLD}\s+(?:in\s+{_SOURCE}\s+)?(?:{_ABOUT}\s+(?P<silent>.+)|(?P<asks>{_ASKED}.+))",
        rf"^there\s+is\s+nothing\s+(?:in\s+{_SOURCE}\s+)?(?:about|regarding|concerning)\s+(?P<missing>.+)",
        r"^no\s+mention\s+is\s+made\s+of\s+(?P<made>.+)",
        rf"\b{_SOURCE}\s+(?:is|are|remains?)\s+silent\s+(?:on|about|as\s+to)\s+(?P<kept>.+)",
        rf"^(?P<nowhere>.+?)\s+(?:is|are|was|were)\s+nowhere\s+{_TOLD}\b.*$",
        rf"\bit\s+{_NOT}\s+{_ADVERB}{_TOLD}\s+(?:in\s+{_SOURCE}\s*,?\s*)?(?P<it>{_ASKED}.+)",
        rf"\b(?:unclear|unknown|unspecified)\s+(?:from\s+{_SOURCE}\s+)?(?P<unclear>{_ASKED}.+)",
        r"\bI\s+(?:do\s+not|don['\u2019]t|can\s*not|can['\u2019]t|could\s+not|couldn['\u2019]t)\s+(?:know|find|say|tell|determine|see)"
        r"\s+(?:(?:out|anything|any\s+\w+)\s+)?(?:(?:about|on|for)\s+)?(?P<i>.+)",
        r"\b(?:unable|impossible|not\s+possible)\s+to\s+(?:determine|say|tell|find|establish)\s+(?P<unable>.+)",
        rf"^(?P<done>.+?)\s+(?:{_NOT}|cannot\s+be|could\s+not\s+be)\s+{_ADVERB}(?:be\s+)?"
        rf"(?:{_STATED}|{_TOLD}(?=\s+(?:in|by|from)\s+{_SOURCE}))\b(?:\s+(?:in|by|from|anywhere|here)\b.*)?$",
        rf"^(?P<open>.+?)\s+(?:is|are|remains?)\s+(?:unclear|unspecified|unknown\s+from\s+{_SOURCE})$",
    )
)
_GENERIC = re.compile(
    r"\b(?:(?:unable|impossible|not\s+possible|not|cannot|n['\u2019]t)\s+(?:to\s+)?(?:be\s+)?answer(?:ed)?|the\s+answer|(?:this|the|your)\s+question|"
    r"not\s+(?:stated|mentioned|specified|provided)|insufficient\s+information|not\s+enough\s+information|I\s+do(?:\s+not|n['\u2019]t)\s+know)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(r"\b(?:answers?|question)\b|^\s*$", re.IGNORECASE)
_POINTS = re.compile(r"\s*(?:this|that|it|these|they|which|so)\s*", re.IGNORECASE)
_TRAILING = re.compile(
    rf"(?:\s*,?\s*(?:(?:as|since|because)\s+(?:{_SOURCE}|it|they)\s.*|(?:in|from|by|based\s+on|according\s+to|within)\s+{_SOURCE}"
    rf"|(?:is|are|was|were)\s+{_TOLD}(?:\s+in\s+{_SOURCE})?|here|anywhere))+\s*$",
    re.IGNORECASE,
)
_BUT = re.compile(
    r"\s*[;,]\s*(?:but|however|though|although|yet|while|only\s+that)\b,?\s*|\s*;\s*|\s+but\s+", re.IGNORECASE
)
_ASKING: tuple[tuple[str, Wanted], ...] = (
    (
        r"(?:at\s+what\s+time|when|(?:in\s+|on\s+|since\s+|until\s+)?(?:which|what)\s+(?:year|date|day|month|time))\b",
        "time",
    ),
    (r"how\s+(?:long|old)\b", "duration"),
    (r"how\s+(?:much|many|large|big|heavy|high|tall|wide|far|fast|often|deep)\b", "amount"),
    (r"(?:by\s+|to\s+|for\s+)?(?:who|whom|whose)\b", "person"),
    (r"(?:from\s+)?where\b", "place"),
    (r"(?:whether(?:\s+or\s+not)?|if|that)\b", "truth"),
    (r"(?=(?:is|are|was|were|do|does|did|can|could|may|must|should|will|has|have)\b)", "truth"),
    (r"why\b", "reason"),
    (
        r"(?:(?:from|at|in|to|by|against|with|for|under|on|since)\s+)?(?:which|what)\s+(?!(?:is|are|was|were|do|does|did|the|a|an|it|they|he|she|happens?)\b)",
        "which",
    ),
    (r"how(?:\s+to)?\b", "manner"),
    (r"(?:(?:what|which)(?:\s+(?:is|are|was|were)\b)?)", "thing"),
)
_NAMED: tuple[tuple[str, Wanted], ...] = (
    (r"(?:\w+\s+)?(?:date|year|times?|day|month|hours)\b", "time"),
    (r"(?:age|duration|length\s+of\s+time|\w*\s*period)\b", "duration"),
    (r"(?:\w+\s+)?(?:price|cost|number|amount|fee|weight|size|height|rate|sum|salary|population)s?\b", "amount"),
    (r"(?:names?|identity|translator|author|owner|founder|winner)\b", "person"),
    (r"(?:\w+\s+)?(?:address|location|place)\b", "place"),
)


def absence_in(sentence: str, question: str) -> Absence | None:
    """Read what a sentence says is absent.

    None if it names nothing and there is no question that would, or points to what it states itself.

    Examples
    --------
    >>> absence_in("The passages do not say when the mill opened.", "")
    Absence(text='the mill opened', wanted='time', rest='', is_loose=False)
    """
    stated = _OPENING.sub("", statement(sentence).strip(" .!()"))
    parts = [part for part in _BUT.split(stated) if part.strip()]
    for number, part in enumerate(parts):
        matches = (form.search(part) for form in _FORMS)
        named = next((next(filter(None, match.groups())) for match in matches if match is not None), "")
        if not named and _GENERIC.search(part) is None:
            continue
        rest = ". ".join(other for other in (*parts[:number], *parts[number + 1 :]) if len(other.split()) > 2)
        named = "" if _ASKS.search(named) else _TRAILING.sub("", named).strip(" ,.")
        if _POINTS.fullmatch(named):
            return None
        if named or question.strip():
            is_loose = not named or _QUALIFIED.search(part) is not None or _ONE_PASSAGE.search(sentence) is not None
            return Absence(*wanted_by(named or question), rest, is_loose)
    return None


def wanted_by(text: str) -> tuple[str, Wanted]:
    """Tell what a question, a clause that asks, or a noun asks for; its words without the word that asks."""
    text = text.strip(" ?.,")
    for form, wanted in _ASKING:
        asked = re.match(form, text, re.IGNORECASE)
        if asked is not None:
            return text[asked.end() :].strip() or text, wanted
    for form, wanted in _NAMED:
        if re.match(
            rf"(?:(?:the|its|their|any|a)\s+)?(?:exact\s+|total\s+|maximum\s+|minimum\s+)?{form}", text, re.IGNORECASE
        ):
            return text, wanted
    return text, "manner" if _MANNER.search(text) else "thing"


_NUMBER = (
    r"(?:\d[\d.,:]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|"
    r"sixty|hundred|thousand|half\s+an?)"
)
_MONTH = rf"(?:{'|'.join(MONTHS)})"
_SPAN = r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)"
_WHEN = r"(?:(?:in|on|at|since|from|until|by|before|after|within|during|for|every)\s+(?:the\s+)?)?"
_NAME = r"[A-Z][\w'\u2019-]*(?:\s+(?:(?:of|de|the)\s+)?[A-Z0-9][\w'\u2019.-]*)*"
_CANDIDATES: dict[Wanted, re.Pattern[str]] = {
    "time": re.compile(
        rf"{_WHEN}(?:(?:\d{{1,2}}\s+)?{_MONTH}(?:\s+\d{{1,4}})?(?:\s+to\s+{_MONTH})?|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?"
        rf"|(?:1\d|20)\d\d|\d{{1,2}}[:.]\d\d|\d{{1,2}}\s?[ap]\.?m\b|{_NUMBER}[\s-](?:\w+\s)?{_SPAN}(?:\s+of\s+the\s+\w+)?"
        r"|(?:the\s+)?(?:first|last)\s+\w+\s+day|noon|midnight)(?!\w)"
    ),
    "duration": re.compile(rf"{_WHEN}{_NUMBER}[\s-](?:\w+\s)?{_SPAN}\b", re.IGNORECASE),
    "amount": re.compile(rf"[$\u20ac\u00a3]?\b{_NUMBER}(?:[\s-]?(?:%|[a-z\u00b5]+))?", re.IGNORECASE),
    "person": re.compile(rf"(?:(?:Mr|Ms|Mrs|Dr|Prof)\.?\s+)?{_NAME}|\b[Tt]he\s+[a-z]+(?:\s+[a-z]+er)?"),
    "place": re.compile(rf"\b(?:in|at|to|from|on|near)\s+(?:the\s+)?(?:{_NAME}|[a-z][\w'-]*)|{_NAME}"),
    "which": re.compile(rf"{_NAME}|\b{_NUMBER}(?:\s[a-z]+)?"),
}
_REASON = re.compile(
    r"\b(?:because|since|due\s+to|owing\s+to|thanks\s+to|so\s+that|in\s+order\s+to|caused|reason|as\s+a\s+result)\b",
    re.I,
)
_AUXILIARY = re.compile(r"(is|are|was|were|do|does|did|can|could|may|must|should|will|has|have)\b\s*", re.IGNORECASE)


def probes(absence: Absence, chunks: Iterable[str]) -> list[str]:
    """Word the claims of which one is supported if the chunks tell what is said to be absent; none if they cannot.

    Examples
    --------
    >>> probes(Absence("the mill opened", "time"), ["It burned in 1911.", "Fire!"])
    ['The mill opened in 1911.']
    """
    text, after = absence.text, ""
    inverted = _AUXILIARY.match(text)
    if inverted is not None:
        text = text[inverted.end() :]
        after = "" if inverted[1].lower() in ("do", "does", "did") else f" {inverted[1].lower()}"
    if not text:
        return []
    wording = _CANDIDATES.get(absence.wanted)
    if wording is None:
        is_told = absence.wanted != "reason" or any(_REASON.search(chunk) for chunk in chunks)
        told = (
            absence.text
            if absence.wanted == "truth" and after
            else re.sub(r"(?<=\w)\s+(?:do(?:es)?|did|means?)$", "", text)
        )
        return [_sentence(told)] if is_told else []
    candidates = (match[0].strip(" .,") for chunk in chunks for match in wording.finditer(chunk))
    worded = [_with(text, after, candidate, absence.wanted) for candidate in candidates]
    return list(dict.fromkeys(worded))[:MOST_PROBES]


def _with(text: str, after: str, candidate: str, wanted: Wanted) -> str:
    is_noun = re.match(r"(?:the|its|their|a|an)\s", text, re.IGNORECASE) is not None
    if re.match(r"(?:the\s+)?number\s+of\b", text, re.IGNORECASE):
        return _sentence(f"{text} is {candidate.split()[0]}")
    if wanted == "person" and not is_noun:
        return _sentence(f"{candidate} {text}")
    if wanted == "which":
        return _sentence(f"the {text} is {candidate}")
    if wanted == "person" or (not after and wanted_by(text)[1] == wanted):
        return _sentence(f"{text} is {candidate}")
    return _sentence(f"{text}{after} {candidate}")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


SMALLEST_SUPPORT = 1e-6
"""Least distance from 0 and 1 of a support that is turned into log-odds."""
SEARCHED_CHUNKS = 4
"""Number of chunks whose times, numbers, names and places are tried."""
LIKELY_TYPED, LIKELY_OTHER = 0.75, 0.4
"""P(told) at which a sentence has half of :data:`MOST_ABSENT`: where times, numbers, names or places are tried, and
where nothing could be."""
SLOPE = 1.2
"""How steeply its score falls there, in log-odds; these numbers were chosen on 30 sentences."""
MOST_ABSENT = 0.95
"""Score of a sentence whose absence nothing speaks against: passages may tell it in other words."""
LEAST_LOOSE = 0.6
"""Score of a loose absence where the passages seem to tell it: people marked 12 of 184 such sentences in RAGTruth."""
SAID_ABOVE = 0.8
"""Support above which a passage that calls something not stated itself is believed."""

Ask = Callable[[Sequence[str], Sequence[str]], Sequence[Support | Unaligned]]
"""Aligner of passages and claims, with a reason for a claim without support."""


@dataclass(frozen=True, slots=True)
class Presence:
    """How likely the passages tell what a sentence calls absent."""

    absence: Absence
    told: float
    """P(told) in [0, 1]."""
    evidence: Evidence | None
    """What tells it, if anything does."""

    @property
    def absent(self) -> float:
        """P(faithful) of what the sentence says of absence."""
        odds = SLOPE * (logit(LIKELY_TYPED if self.absence.wanted in TYPED else LIKELY_OTHER) - logit(self.told))
        least = LEAST_LOOSE if self.absence.is_loose else 0.0
        return least + (MOST_ABSENT - least) / (1 + exp(-odds))


def look_for(
    said: Sequence[tuple[Absence, Support]], index: EvidenceIndex, question: str, ask: Ask
) -> list[Presence | None]:
    """Look for what sentences call absent, all in one batch of the aligner.

    Parameters
    ----------
    said
        What each sentence says is absent, and the support of the sentence itself.
    index
        The passages.
    question
        The question, which helps to find the passages that may tell.
    ask
        The aligner.

    Returns
    -------
    list of Presence or None
        None for an aligner that does not distinguish contradicted from not stated, for a passage that says itself that
        something is not stated, and for claims that the aligner failed to judge.
    """
    tried = [_tried(absence, support, index, question) for absence, support in said]
    every = [probe for wanted in tried for probe in wanted or ()]
    judged = iter(ask(index.passages, every) if every else ())
    presences: list[Presence | None] = []
    for (absence, _), wanted in zip(said, tried, strict=True):
        supports = [support for support in (next(judged) for _ in wanted or ()) if isinstance(support, Support)]
        is_judged = wanted is not None and len(supports) == len(wanted)
        presences.append(_presence(absence, supports) if is_judged else None)
    return presences


def logit(share: float) -> float:
    """Compute the log-odds of a probability, which is kept away from 0 and 1."""
    share = min(max(share, SMALLEST_SUPPORT), 1 - SMALLEST_SUPPORT)
    return log(share) - log1p(-share)


def _tried(absence: Absence, support: Support, index: EvidenceIndex, question: str) -> list[str] | None:
    nearest = index.best(absence.text, 1)
    says_so = support.score > SAID_ABOVE and any(says_not_stated(index.chunks[chunk].text) for chunk in nearest)
    if support.contradicted is None or says_so:
        return None
    best = index.best(f"{absence.text} {question}", SEARCHED_CHUNKS)
    return probes(absence, [index.chunks[chunk].text for chunk in best])


def _presence(absence: Absence, supports: Sequence[Support]) -> Presence:
    is_yes_or_no = absence.wanted == "truth"  # that it is not so tells it too
    likely = [min(1.0, s.score + (s.contradicted or 0) * is_yes_or_no) for s in supports]
    told = max(likely, default=0.0)
    evidence = supports[likely.index(told)].evidence if told > 0.5 else None
    return Presence(absence, min(told, LIKELY_TYPED) if absence.wanted == "manner" else told, evidence)
