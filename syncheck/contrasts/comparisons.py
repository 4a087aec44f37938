"""Comparisons that two numbers of the evidence confirm or contradict.

"The ferry from Carrick takes 50 minutes, compared with 90 minutes from Port Ellin" says which of the two is faster. A
comparison is computed where each of its two things has words in the evidence that the other lacks, and beside them a
number of the same unit, which the comparative word fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncheck.contrasts.comparatives import Comparative, comparatives
from syncheck.contrasts.differences import Difference, Found
from syncheck.contrasts.grammar import ARTICLES, AUXILIARIES, CALENDAR
from syncheck.contrasts.measures import has_symbol
from syncheck.contrasts.opposites import OPPOSITES
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.placing import Evidence, Keys, Pair, pair_of
from syncheck.contrasts.quantities import NAMED, fits, sign_of
from syncheck.contrasts.tokens import Token, is_year
from syncheck.contrasts.units import UNITS

_UNITED = frozenset(UNITS) | {word for word, quantity in NAMED.items() if quantity != "people"}
"""Words that tell no thing from another."""
_ADVERBS = frozenset(
    """
    usually typically normally generally slightly much far considerably still even now significantly substantially
    somewhat
    """.split()
)
_UNSAID = _ADVERBS | frozenset(
    """
    one both average usual typical normal make makes made get gets run runs ran reach reaches reached total number
    amount journey ride trip crossing cross compared
    """.split()
)
"""Words of a comparison that the evidence need not have."""
_CHANGES = frozenset(
    """
    gain gains increase increases rise rises growth drop drops fall falls decline declines decrease decreases change
    changes difference differences improvement gap
    """.split()
)
"""Words for what is the difference of two numbers."""
_WITH_BOTH = frozenset("in at on from to for by with among during under near between of".split())
"""Words that may stand before both things that are compared."""
_PASSED = _WITH_BOTH | _ADVERBS | ARTICLES | frozenset("up out off down away over".split())
"""Words between a verb and a comparative word."""


def compared(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> Iterator[Found]:
    """Find comparative words that two numbers of the evidence contradict."""
    for comparison, is_true, evidence in _settled(claim, chunk, sides):
        if not is_true:
            words = claim.written(comparison.first, comparison.last)
            yield Difference("comparison", words, evidence), claim.stems - chunk.stems


def confirmed(claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]) -> frozenset[str]:
    """Return the comparative words, as written, that two numbers of the evidence confirm."""
    return frozenset(
        token.text
        for comparison, is_true, _ in _settled(claim, chunk, sides)
        if is_true
        for token in claim.tokens[comparison.first : comparison.last + 1]
    )


def _settled(
    claim: ParsedText, chunk: ParsedText, sides: Sequence[ParsedText]
) -> Iterator[tuple[Comparative, bool, str]]:
    """Yield comparisons, whether they are true, and the words of a chunk that say so, perhaps with another chunk."""
    for comparison in comparatives(claim):
        others = () if comparison.first == comparison.than else sides
        for beside in ((), *((side,) for side in others if side is not chunk)):
            found = _settle(claim, comparison, Evidence.of(claim, (chunk, *beside)))
            if found is not None:
                yield comparison, *found
                break


def _settle(claim: ParsedText, comparison: Comparative, evidence: Evidence) -> tuple[bool, str] | None:
    """Return whether a comparison is true, and the words that say so; None if the numbers do not tell."""
    keys = _keys(claim, comparison, evidence) if len(evidence.placed) > 1 else None
    said = None if keys is None else _said(claim, comparison, keys, evidence)
    if keys is None or said is None:
        return None
    counts = _counts(comparison, keys, evidence)
    if counts is not None:
        return _verdict(comparison, counts, evidence)
    keys = keys[0] - {comparison.counted}, keys[1]
    found = []
    for unit in {placed.measure.unit for placed in evidence.placed}:
        group = [one for one in evidence.placed if one.measure.unit == unit and fits(claim, comparison, one, evidence)]
        pair = pair_of(claim, group, keys, said, evidence)
        if pair is not None and {one.text for side in pair for one in side} == set(range(len(evidence.texts))):
            found.append((sum(len(said & evidence.stems[one.part]) for side in pair for one in side), pair))
    best = [pair for shared, pair in found if shared == max(shared for shared, _ in found)]
    return _verdict(comparison, best[0], evidence) if len(best) == 1 else None


def _counts(comparison: Comparative, keys: Keys, evidence: Evidence) -> Pair | None:
    """Return the numbers of two sorts of things of one text, as in "more cats than dogs"; None if that is not said."""
    ours, theirs = ([one for one in evidence.placed if one.measure.unit in stems] for stems in keys)
    is_said = comparison.counted in keys[0] and len(evidence.texts) == 1 and ours and theirs
    return (ours, theirs) if is_said else None


def _verdict(comparison: Comparative, pair: Pair, evidence: Evidence) -> tuple[bool, str] | None:
    """Return whether a comparison is true of all measures of two things, and the words that say so."""
    signs = {sign_of(comparison, one, evidence) for side in pair for one in side}
    ours, theirs = ([one.measure for one in side] for side in pair)
    is_more = min(m.low for m in ours) > max(m.high for m in theirs)
    is_less = max(m.high for m in ours) < min(m.low for m in theirs)
    if signs not in ({1}, {-1}) or is_more == is_less:
        return None
    told = [m for side in pair for m in [one.measure for one in side if one.text == 0][:1]]
    text = evidence.texts[0]
    first = min(m.first - has_symbol(text, m.first) for m in told)
    return is_more == (signs == {1}), text.written(first, max(m.last for m in told))


def _keys(claim: ParsedText, comparison: Comparative, evidence: Evidence) -> Keys | None:
    """Return the stems that tell the two things apart in the evidence."""
    left, right = (
        {claim.tokens[n].stem: claim.tokens[n] for n in places if _may_tell(claim.tokens[n], evidence)}
        for places in (_without_verb(claim, _parallel(claim, comparison), comparison), comparison.right)
    )
    sides = [{s: t for s, t in side.items() if s not in other} for side, other in ((left, right), (right, left))]
    for is_sort in (_is_name, _is_figure, _is_word):
        sorts = [{s: t for s, t in side.items() if is_sort(t)} for side in sides]
        if (sorts[0] and (sorts[1] or not comparison.right)) or is_sort is _is_word:
            sides = sorts
            break
    if right and all(map(_is_figure, right.values())) and not any(map(_is_figure, left.values())):
        return None
    ours, theirs = (frozenset(side) for side in sides)
    if not comparison.right:
        return (ours, theirs) if ours else None
    return _own(ours, theirs, evidence)


def _parallel(claim: ParsedText, comparison: Comparative) -> tuple[int, ...]:
    """Return the places before "than" of what corresponds to the words after it.

    In "higher in 2022 than in 2021", it is what follows the same preposition.
    """
    first = claim.tokens[comparison.right[0]].word if comparison.right else ""
    mates = [n for n in comparison.left if claim.tokens[n].word == first in _WITH_BOTH]
    if not mates:
        return comparison.left
    after = [n for n in comparison.left if n > mates[-1]]
    stop = next((n for n in after if claim.tokens[n].word in _WITH_BOTH), len(claim.tokens))
    return tuple(n for n in after if n < stop)


def _without_verb(claim: ParsedText, places: tuple[int, ...], comparison: Comparative) -> tuple[int, ...]:
    """Return places without those of a verb before the comparative word, as in "sold more" and "is covered longer"."""
    verb = comparison.first - 1
    while verb > 0 and claim.tokens[verb].word in _PASSED:
        verb -= 1
    auxiliary = next((n for n in comparison.left if claim.tokens[n].word in AUXILIARIES), verb)
    passed = {n for n in (verb, *range(auxiliary, comparison.first)) if not claim.tokens[n].name}
    kept = tuple(n for n in places if n not in passed)
    return kept if any(claim.tokens[n].content for n in kept) else places


def _may_tell(token: Token, evidence: Evidence) -> bool:
    told = token.content or token.number or (token.text == "A" and token.start > 0)
    return told and token.word != "one" and token.stem in evidence.held and token.word not in _UNITED


def _is_name(token: Token) -> bool:
    return token.name and not token.number


def _is_figure(token: Token) -> bool:
    return token.number


def _is_word(token: Token) -> bool:
    return not token.number or is_year(token)


def _own(ours: frozenset[str], theirs: frozenset[str], evidence: Evidence) -> Keys | None:
    """Return the stems of both things without those that stand beside the other one; all if none would be left."""
    if not ours or not theirs:
        return None
    mine, other = _apart(ours, theirs, evidence), _apart(theirs, ours, evidence)
    if not mine:
        mine = _apart(ours, other, evidence)
    elif not other:
        other = _apart(theirs, mine, evidence)
    return (mine, other) if mine and other else (ours, theirs)


def _apart(stems: frozenset[str], others: frozenset[str], evidence: Evidence) -> frozenset[str]:
    """Return the stems that share no part of the evidence with the others."""
    beside = evidence.with_any(others)
    return frozenset(known for known in stems if beside.isdisjoint(evidence.with_any({known})))


def _said(claim: ParsedText, comparison: Comparative, keys: Keys, evidence: Evidence) -> frozenset[str] | None:
    """Return what else a sentence says that the evidence has; None if the sentence may be about something else."""
    skipped = {claim.tokens[n].stem for n in range(comparison.first, comparison.last + 1)} | keys[0] | keys[1]
    about = [claim.tokens[n] for n in (*comparison.left, *comparison.right)]
    unsaid = _UNSAID | _WITH_BOTH
    rest = [t for t in about if (t.content or t.number) and t.stem not in skipped and t.word not in unsaid]
    if any(t.word in _CHANGES or (t.number and not _may_stand(claim, t, comparison, evidence)) for t in rest):
        return None
    if "per" in claim.words - evidence.words:
        return None
    missing = [t for t in rest if t.stem not in evidence.held and t.word not in NAMED]
    for token in missing:
        place = claim.tokens.index(token)
        known = token.name and not claim.full_name(place).isdisjoint(evidence.held)
        if (token.name or token.word in CALENDAR) and not known:
            return None
        if any(not opposites.isdisjoint(evidence.words) for _, opposites in OPPOSITES.get(token.word, ())):
            return None
    plain = {t.stem for t in missing if not t.name and not t.number and t.word not in UNITS}
    said = frozenset(t.stem for t in rest if t.stem in evidence.held and t.word not in NAMED)
    units = {one.measure.unit for one in evidence.placed}
    if len(plain) > (0 if comparison.general and comparison.counted not in units else 1):
        return None
    is_told = said or comparison.counted or any(t.word in NAMED for t in about) or not comparison.general
    return said if is_told else None


def _may_stand(claim: ParsedText, number: Token, comparison: Comparative, evidence: Evidence) -> bool:
    """Return True for a number that multiplies neither thing.

    It is a year, one with a unit that the evidence has too, the difference in "5 minutes faster", or "of the two".
    """
    place = claim.tokens.index(number)
    after = claim.tokens[place + 1 : place + 2]
    is_before = place < comparison.first <= place + 3
    is_measured = bool(after) and after[0].word in UNITS and number.stem in evidence.held
    is_told = not comparison.general if is_before else is_measured
    return is_year(number) or is_told or not comparison.right
