"""Contrasts: differences between an English sentence and the chunk that agrees best with it, found word by word.

Counts of words hardly notice a "1976" where the evidence has "1967". Here a sentence is aligned with a chunk, and rules
find words that take the place of others (:mod:`~syncheck.contrasts.misplaced`) or reverse the statement
(:mod:`~syncheck.contrasts.reversals`), and comparisons that its numbers contradict
(:mod:`~syncheck.contrasts.comparisons`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from itertools import combinations

from syncheck.contrasts.clauses import clauses
from syncheck.contrasts.comparisons import compared, confirmed
from syncheck.contrasts.crossed import crossed, crossed_opposites
from syncheck.contrasts.differences import Difference, Found
from syncheck.contrasts.ellipsis import denied_in_short
from syncheck.contrasts.limited import limited
from syncheck.contrasts.misplaced import is_name, is_number, misplaced, turned_bounds, units
from syncheck.contrasts.negations import excepted, negations
from syncheck.contrasts.parsing import ParsedText, parse
from syncheck.contrasts.replaced import replaced
from syncheck.contrasts.respelling import respelled
from syncheck.contrasts.reversals import exchanged, turned
from syncheck.contrasts.roles import turned_roles
from syncheck.contrasts.ruled_out import ruled_out
from syncheck.contrasts.sequence import turned_sequence
from syncheck.contrasts.shares import shares
from syncheck.contrasts.spliced import spliced
from syncheck.results.types import ContrastKind

HELD_ENOUGH = 0.6
"""Share of a sentence's content stems, without those of the contrast, that a chunk must have to contradict it."""
CLAUSE_HELD = 0.75
"""The same for a simple sentence of a compound one."""
AS_CLOSE = 0.7
"""Share of the greatest closeness from which chunks are compared."""

SURE: frozenset[ContrastKind] = frozenset({"antonym", "comparison", "order"})
"""Kinds of contrasts in the closest chunk that only a chunk which is nearly as close can outweigh."""
SURELY_AS_CLOSE = 0.9
"""Share of the greatest closeness from which it can."""
OF_WHOLE_SENTENCES: frozenset[ContrastKind] = frozenset({"name"})
"""Kinds of contrasts that are not looked for in the simple sentences of a compound one, whose words belong together."""


@dataclass(frozen=True, slots=True)
class Contrasted:
    """A sentence compared with the chunk that agrees best with it."""

    chunk: int
    """Index of the chunk; -1 if there is none."""
    agreement: float
    """Share of the sentence's content stems that the chunk has, plus half the share of its words that the chunk has in
    the same order, minus the penalties of contrasts; higher is better."""
    inverted: float
    """Share of pairs of shared stems whose order is reversed, in [0, 1]; lower is better."""
    found: tuple[Difference, ...]
    sentence: str
    """The sentence, with its numbers as the chunks write them."""

    def count(self, kind: ContrastKind) -> int:
        """Return the number of contrasts of a kind."""
        return sum(contrast.kind == kind for contrast in self.found)


PENALTIES: dict[ContrastKind, float] = {
    **dict.fromkeys(("number", "unit", "antonym", "order"), 0.5),
    **dict.fromkeys(("name", "quantifier"), 0.3),
    "negation": 0.6,
    "comparison": 0.4,
}
INVERTED_PENALTY = 0.3


def contrast_with(sentence: str, chunks: Sequence[str], *, read: Callable[[str], ParsedText] = parse) -> Contrasted:
    """Compare a sentence with the few chunks that share most with it, best first; return the best agreement.

    If nothing is found, the simple sentences of a compound one are compared too. Without chunks, the agreement is 0 and
    nothing is found; nor is anything in a question, which claims nothing. ``read`` may be a cached :func:`parse`.
    """
    sides = [read(chunk) for chunk in chunks]
    claim = read(respelled(read(sentence), sides))
    whole = _closest(claim, sides)
    if whole.found or whole.chunk < 0 or _is_question(claim):
        return whole
    for clause in clauses(claim):
        part = _closest(read(clause), sides, held_enough=CLAUSE_HELD)
        found = tuple(contrast for contrast in part.found if contrast.kind not in OF_WHOLE_SENTENCES)
        if found:
            return replace(whole, chunk=part.chunk, agreement=whole.agreement - _penalty(found), found=found)
    return whole


def _closest(claim: ParsedText, sides: Sequence[ParsedText], *, held_enough: float = HELD_ENOUGH) -> Contrasted:
    """Compare a sentence with each chunk that is close; return the best agreement."""
    plain = claim.plain_words.union(*(side.plain_words for side in sides))
    sides = [side.without_names(plain) if not plain.isdisjoint(side.names) else side for side in sides]
    claim = claim.without_names(plain).with_names(frozenset().union(*(side.names for side in sides)))
    near = _closenesses(claim, sides)
    beside = [
        _beside(claim, side, place, sides, closeness, held_enough)
        for place, (side, closeness) in enumerate(zip(sides, near, strict=True))
        if closeness >= AS_CLOSE * max(near)
    ]
    if not beside:
        return Contrasted(-1, 0.0, 0.0, (), claim.text)
    best = max(beside, key=lambda found: (found.agreement, -found.chunk))
    closest = max(beside, key=lambda found: (near[found.chunk], found.agreement, -found.chunk))
    is_sure = any(contrast.kind in SURE for contrast in closest.found)
    return closest if is_sure and near[best.chunk] < SURELY_AS_CLOSE * near[closest.chunk] else best


def _is_question(claim: ParsedText) -> bool:
    return claim.text.rstrip().endswith("?")


def _penalty(found: Sequence[Difference]) -> float:
    return sum(PENALTIES[contrast.kind] for contrast in found)


def _beside(
    claim: ParsedText,
    chunk: ParsedText,
    place: int,
    sides: Sequence[ParsedText],
    closeness: float,
    held_enough: float,
) -> Contrasted:
    true = confirmed(claim, chunk, sides)
    found = tuple(
        dict.fromkeys(
            replace(contrast, rule=name)
            for name, rule in ({} if _is_question(claim) else RULES).items()
            for contrast, about in rule(claim, chunk, sides)
            if claim.held_by(chunk, about) >= held_enough and not _is_true(contrast, true)
        )
    )
    inverted = _inverted(claim, chunk)
    penalty = _penalty(found) + INVERTED_PENALTY * inverted
    return Contrasted(place, closeness - penalty, inverted, found, claim.text)


def _is_true(contrast: Difference, true: AbstractSet[str]) -> bool:
    """Return True for a contrast about comparative words that numbers confirm."""
    return contrast.kind in ("comparison", "order") and not true.isdisjoint(contrast.sentence.split())


def _closenesses(claim: ParsedText, chunks: Sequence[ParsedText]) -> list[float]:
    """Return the share of content stems that each chunk has plus half the share of words that it has in order.

    Of a chunk that cannot come near the greatest closeness so far, it is what it is at most.
    """
    found: list[float] = []
    ours = [token.stem for token in claim.tokens]
    for chunk in chunks:
        held, shared = claim.held_by(chunk), sum(known in chunk.stems for known in ours)
        at_most = held + shared / max(1, len(ours)) / 2
        if found and at_most < AS_CLOSE * max(found):
            found.append(at_most)
            continue
        theirs = [token.stem for token in chunk.tokens]
        blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
        found.append(held + sum(block.size for block in blocks) / max(1, len(ours)) / 2)
    return found


def _inverted(claim: ParsedText, chunk: ParsedText) -> float:
    """Return the share of pairs of stems, each once on both sides, whose order is reversed."""
    ours, theirs = ([t.stem for t in side.tokens if t.content] for side in (claim, chunk))
    times = Counter(theirs)
    shared = [known for known in ours if times[known] == 1 and ours.count(known) == 1]
    places = [theirs.index(known) for known in shared]
    pairs = [first > second for first, second in combinations(places, 2)]
    return sum(pairs) / len(pairs) if pairs else 0.0


RULES: Mapping[str, Callable[[ParsedText, ParsedText, Sequence[ParsedText]], Iterator[Found]]] = {
    "negations": negations,
    "excepted": excepted,
    "limited": limited,
    "denied_in_short": denied_in_short,
    "misplaced years": partial(misplaced, kind="number", of_kind=partial(is_number, year=True)),
    "misplaced numbers": partial(misplaced, kind="number", of_kind=partial(is_number, year=False)),
    "crossed years": partial(crossed, kind="number", of_kind=partial(is_number, year=True)),
    "crossed numbers": partial(crossed, kind="number", of_kind=partial(is_number, year=False)),
    "units": units,
    "turned_bounds": turned_bounds,
    "misplaced names": partial(misplaced, kind="name", of_kind=is_name),
    "crossed names": partial(crossed, kind="name", of_kind=is_name),
    "replaced": replaced,
    "turned": turned,
    "crossed_opposites": crossed_opposites,
    "exchanged": exchanged,
    "turned_sequence": turned_sequence,
    "turned_roles": turned_roles,
    "spliced": spliced,
    "shares": shares,
    "ruled_out": ruled_out,
    "compared": compared,
}
"""Rules by name, in the order in which they are tried."""
