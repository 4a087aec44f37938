"""Groups in which one thing is changed, made by rule from written groups: a claim, or what the passages say.

A claim with another name, another number, an opposite or a negation is not supported any more. If instead two names or
two numbers change places in the passages, a claim with one of them is not supported any more, and is again with the
other in its place. Either way both labels are worded alike, so that only reading tells them apart.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

from contrast_pairs import SUPPORTED, UNSUPPORTED, Claim, ContrastGroup

from syncheck.contrasts import parsing
from syncheck.contrasts.lexicon import CLASSES
from syncheck.contrasts.rules import OPPOSITES
from syncheck.reading.evidence import split_passages

__all__ = ["changed_claims", "edited_groups", "with_changed_claims", "with_changed_passages"]

SOURCE = "edits"
"""Source of the groups that are made here."""
COPY = "copy"
"""Kind of a claim that is a sentence of the passages."""
SHORTEST_COPY, LONGEST_COPY = 20, 220
"""Characters between which the length of such a sentence is."""
CHANGED_CLAIMS, COPIES, CHANGES, OTHER_CLAIMS = 4, 2, 3, 3
"""Most supported claims, copies, changes of each, and claims that were not supported before, of a group."""
TWINS, TWIN_CLAIMS, TWIN_COPIES = 2, 5, 2
"""Most passages with an exchange that are made of a group, and claims and copies about each."""
MOST_CHANGES = 14
"""Most changes of one claim, of all kinds in turn."""
_AUXILIARY = "is|was|are|were|has|have|had|can|could|will|would|should|may|must|does|did|do"
_DENIED = re.compile(rf"\b({_AUXILIARY}) not\b|\b(can)(?:not|[’']t)\b|\b({_AUXILIARY})n[’']t\b", re.IGNORECASE)
_STATED = re.compile(rf"\b(?:{_AUXILIARY})\b(?! not|[’'])", re.IGNORECASE)
_SYMMETRIC = re.compile(r"\b(?:and|or|with|both|between)\b")
"""Names beside these words may change places without changing what is said."""
_YEAR = re.compile(r"1\d{3}|20\d\d")
_parse = lru_cache(4096)(parsing.parse)


@dataclass(frozen=True, slots=True)
class Item:
    """A name or number of a text: where it begins, the stems of its words, and what kind of thing it is."""

    text: str
    start: int
    stems: frozenset[str]
    kind: str

    @property
    def is_name(self) -> bool:
        """True if it is no number."""
        return self.kind in ("name", "calendar")


def items_of(text: str) -> list[Item]:
    """Return the names of a text and then its numbers, each in order; words with a hyphen are left out."""
    parsed = _parse(text)
    names, numbers, seen = [], [], set[int]()
    for place in sorted(range(len(parsed.tokens)), key=lambda place: parsed.tokens[place].start):
        token = parsed.tokens[place]
        end = token.start + len(token.text)
        if token.number:
            if token.text[0].isdigit() or len(token.text) > 2:
                kind = "year" if _YEAR.fullmatch(token.text) else "number"
                numbers.append(Item(token.text, token.start, frozenset({token.word}), kind))
        elif (
            token.name
            and place not in seen
            and "-" not in text[max(0, token.start - 1) : token.start] + text[end : end + 1]
        ):
            run = [parsed.tokens[other] for other in parsed.name_at(place)]
            seen |= set(parsed.name_at(place))
            name = text[run[0].start : run[-1].start + len(run[-1].text)]
            names.append(Item(name, run[0].start, frozenset(word.stem for word in run), _kind_of_name(name)))
    return names + numbers


def _kind_of_name(name: str) -> str:
    calendar = CLASSES["calendar"]
    return "calendar" if any({word, word.removesuffix("s")} & calendar for word in name.lower().split()) else "name"


def changed_claims(claim: str, passages: Sequence[str]) -> list[tuple[str, str]]:
    """Return a claim with one thing changed, in several ways, and the kind of each change.

    Names and numbers come from the passages, or change places in the claim; a word becomes its opposite, preferably one
    that the passages have; a statement is denied, or a denial is not.
    """
    found: dict[str, str] = {}
    ways = (_with_other_items(claim, passages), _with_names_exchanged(claim), _denied(claim), _opposed(claim, passages))
    for way in ways:
        for text, kind in way:
            if text != claim:
                found.setdefault(text, kind)
    by_kind: dict[str, list[str]] = {}
    for text, kind in found.items():
        by_kind.setdefault(kind, []).append(text)
    most = max(map(len, by_kind.values()), default=0)
    in_turn = [(texts[turn], kind) for turn in range(most) for kind, texts in by_kind.items() if turn < len(texts)]
    return in_turn[:MOST_CHANGES]


def _with_other_items(claim: str, passages: Sequence[str]) -> Iterator[tuple[str, str]]:
    own = items_of(claim)
    taken = frozenset[str]().union(*(item.stems for item in own))
    others = [item for passage in passages for item in items_of(passage) if not item.stems & taken]
    for item in own:
        for other in others:
            if other.kind == item.kind:
                yield _put(claim, item.start, item.text, other.text), "name" if item.is_name else "number"


def _with_names_exchanged(claim: str) -> Iterator[tuple[str, str]]:
    if _SYMMETRIC.search(claim):
        return
    for first, second in combinations([item for item in items_of(claim) if item.is_name], 2):
        if first.kind == second.kind and not first.stems & second.stems:
            text = _put(claim, second.start, second.text, first.text)
            yield _put(text, first.start, first.text, second.text), "role"


def _denied(claim: str) -> Iterator[tuple[str, str]]:
    if found := _DENIED.search(claim):
        yield _put(claim, found.start(), found[0], next(filter(None, found.groups()))), "negation"
    elif found := _STATED.search(claim):
        yield _put(claim, found.end(), "", " not"), "negation"


def _opposed(claim: str, passages: Sequence[str]) -> Iterator[tuple[str, str]]:
    words = frozenset[str]().union(*(_parse(passage).words for passage in passages))
    for token in _parse(claim).tokens:
        for kind, opposites in OPPOSITES.get(token.word, ())[:2]:
            alike = [word for word in opposites if word[-2:] == token.word[-2:]]  # mostly the same form
            near = sorted(opposites & words)[:2] or sorted(alike, key=lambda word: (len(word), word))[:1]
            for word in near:
                if " " not in word:
                    yield (
                        _put(claim, token.start, token.text, word.capitalize() if token.text[0].isupper() else word),
                        kind,
                    )


def _put(text: str, start: int, old: str, new: str) -> str:
    """Replace what begins at a place of a text."""
    return text[:start] + new + text[start + len(old) :]


def with_changed_claims(group: ContrastGroup, rng: random.Random) -> ContrastGroup:
    """Return a group with some of its supported claims, sentences of its passages, and both with one thing changed."""
    supported = [claim for claim in group.claims if claim.label == SUPPORTED]
    others = [claim for claim in group.claims if claim.label != SUPPORTED]
    copies = [Claim(text, SUPPORTED, COPY) for text in _sentences(group.passages)]
    for listed in (supported, copies, others):
        rng.shuffle(listed)
    context, known = " ".join(group.passages), {claim.text for claim in group.claims}
    made: list[Claim] = []
    for claim in supported[:CHANGED_CLAIMS] + copies[:COPIES]:
        texts = [text for text, _ in changed_claims(claim.text, group.passages)]
        texts = [text for text in texts if text.strip(". ") not in context and text not in known]
        rng.shuffle(texts)
        if texts and claim.kind == COPY:
            made.append(claim)
        made += [Claim(text, UNSUPPORTED, claim.kind) for text in texts[:CHANGES]]
    return replace(group, claims=(*supported[:CHANGED_CLAIMS], *made, *others[:OTHER_CLAIMS]), source=SOURCE)


def with_changed_passages(group: ContrastGroup, rng: random.Random) -> list[ContrastGroup]:
    """Return the group with two names or numbers of its passages exchanged, in a few ways.

    Its claims are the supported ones, and sentences of the passages, that have one of the two: as they were, and
    exchanged.
    """
    pairs = _exchangeable(group.passages)
    rng.shuffle(pairs)
    supported = [claim for claim in group.claims if claim.label == SUPPORTED]
    found: list[ContrastGroup] = []
    for pair in pairs:
        chosen = [claim for claim in supported if _has_one(claim.text, *pair)][:TWIN_CLAIMS]
        if not chosen:
            continue
        said = [text for text in _sentences(group.passages) if _has_one(text, *pair)]
        chosen += [Claim(text, SUPPORTED, COPY) for text in rng.sample(said, min(TWIN_COPIES, len(said)))]
        both = [(replace(c, text=exchanged(c.text, *pair)), replace(c, label=UNSUPPORTED)) for c in chosen]
        passages = tuple(exchanged(passage, *pair) for passage in group.passages)
        claims = tuple(claim for of_one in both for claim in of_one)
        found.append(replace(group, passages=passages, claims=claims, source=SOURCE))
        if len(found) == TWINS:
            break
    return found


def _exchangeable(passages: Sequence[str]) -> list[tuple[str, str]]:
    """Return names, and numbers, that can change places: of one kind, and no part of another one."""
    items = {item.text: item for passage in reversed(passages) for item in reversed(items_of(passage))}
    names = [
        item
        for item in items.values()
        if item.is_name
        and "\n" not in item.text
        and not any(f"{item.text}-" in passage or f"-{item.text}" in passage for passage in passages)
        and not any(other.is_name and other is not item and other.stems & item.stems for other in items.values())
    ]
    numbers = [item for item in items.values() if not item.is_name]
    return [
        (first.text, second.text)
        for first, second in combinations(sorted(names + numbers, key=lambda item: item.text), 2)
        if first.kind == second.kind and first.text[0].isdigit() == second.text[0].isdigit()
    ]


def exchanged(text: str, first: str, second: str) -> str:
    """Put each of two names or numbers where the other one stands."""
    either = re.compile("|".join(map(_whole, sorted((first, second), key=len, reverse=True))))
    return either.sub(lambda found: second if found[0] == first else first, text)


def _has_one(text: str, first: str, second: str) -> bool:
    return (re.search(_whole(first), text) is None) != (re.search(_whole(second), text) is None)


def _whole(item: str) -> str:
    return rf"(?<![\w.,]){re.escape(item)}(?!\w)"


def _sentences(passages: Sequence[str]) -> list[str]:
    return [c.text for c in split_passages(passages) if SHORTEST_COPY < len(c.text) < LONGEST_COPY]


def edited_groups(groups: Iterable[ContrastGroup], seed: int = 0) -> Iterator[ContrastGroup]:
    """Yield what can be made of each group: once with changed claims, and with changed passages."""
    rng = random.Random(seed)
    for group in groups:
        yield with_changed_claims(group, rng)
        yield from with_changed_passages(group, rng)
