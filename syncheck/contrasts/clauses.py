"""Simple sentences of a compound one: "the pool is open" and "the sauna is open" of "the pool and the sauna are open".

Of a sentence that is partly wrong, the right part may agree so well with the evidence that no rule compares the wrong
part with what contradicts it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from syncheck.contrasts.coordination import is_verb
from syncheck.contrasts.grammar import ARTICLES, AUXILIARIES, RELATIVE
from syncheck.contrasts.parsing import ParsedText
from syncheck.contrasts.tokens import Token, between

JOINING = frozenset("and but while whereas".split())
"""Words between simple sentences."""
PRONOUNS = frozenset("it he she they this that there we you i".split())
"""Subjects that leave open what a simple sentence is about."""
DETERMINERS = ARTICLES | frozenset("both all each every no our your his her their its my this that these those".split())
ADVERBS = frozenset("still also then now never always only not just later soon once often".split())
"""Words before a verb that are no subject."""
CONDITIONS = frozenset("if unless than".split())
"""Words with which the parts of a sentence do not hold by themselves."""
SUBORDINATE = frozenset("when although because while since once after before as".split())
"""Words that, at its beginning, make the first part of a sentence no statement of its own."""
PRESENT = frozenset(
    """
    get gets go goes come comes take takes make makes give gives keep keeps hold holds cost costs pay pays last
    lasts open opens close closes enter enters need needs use uses start starts begin begins end ends stay stays
    live lives work works sell sells buy buys send sends bring brings lead leads own owns run runs win wins lose
    loses play plays rise rises fall falls grow grows leave leaves stand stands lie lies sit sits serve serves
    show shows contain contains include includes remain remains belong belongs become becomes mean means know
    knows say says want wants eat eats drink drinks receive receives provide provides offer offers allow allows
    require requires
    """.split()
)
"""Common verbs in the present, which are told from nouns only by where they stand."""
LONGEST_SUBJECT = 4
"""Largest number of words of two subjects that share a verb."""


def clauses(sentence: ParsedText) -> list[str]:
    """Return the simple sentences of a compound one, without those that a pronoun is the subject of; else none."""
    tokens = sorted(sentence.tokens, key=lambda token: token.start)
    parts = _parts(tokens)
    if len(parts) < 2 or tokens[0].word in SUBORDINATE or not CONDITIONS.isdisjoint(sentence.words):
        return []
    gaps = (between(sentence.text, a, b) for a, b in itertools.pairwise(tokens) if a.clause != b.clause)
    if any(not gap.startswith(";") for gap in gaps):
        return []
    first, *rest = parts
    verb = _verb(first)
    said = _of_two_subjects(sentence, first, rest) if verb is None else _of_one(sentence, first, verb, rest)
    return [f"{text}." for text in said]


def _parts(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the words between those that join simple sentences, and between semicolons."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        is_new = token.word in JOINING or (parts[-1] and token.clause != parts[-1][-1].clause)
        if is_new and parts[-1]:
            parts.append([])
        if token.word not in JOINING:
            parts[-1].append(token)
    return [part for part in parts if part]


def _of_two_subjects(sentence: ParsedText, first: Sequence[Token], rest: Sequence[Sequence[Token]]) -> Iterator[str]:
    """Yield "the pool is open" and "the sauna is open" of "the pool and the sauna are open"."""
    second, *more = rest
    verb = _verb(second)
    both = (first, second)
    if not verb or more or max(len(first), verb) > LONGEST_SUBJECT or any(p[0].word not in DETERMINERS for p in both):
        return
    yield f"{_text(sentence, first)} {_text(sentence, second[verb:])}"
    yield _text(sentence, second)


def _of_one(sentence: ParsedText, first: Sequence[Token], verb: int, rest: Sequence[Sequence[Token]]) -> Iterator[str]:
    """Yield the first part, and each later one with a subject of its own or with that of the first."""
    if verb == 0 or any(_verb(part) is None and not _number(part) for part in rest):
        return
    subject = first[:verb]
    is_named = first[0].word not in PRONOUNS
    helping = itertools.takewhile(lambda token: token.word in AUXILIARIES, first[verb:])
    begins = _text(sentence, [*subject, *helping])
    said = _text(sentence, [*itertools.takewhile(_is_verb, first[verb:])] or first[verb : verb + 1])
    if is_named:
        yield _text(sentence, first)
    for part in rest:
        if _verb(part) is None:  # "and the pump six months", after "The filter lasts eight years"
            number = _number(part)
            yield f"{_text(sentence, part[:number])} {said} {_text(sentence, part[number:])}"
            continue
        start = next((n for n, token in enumerate(part) if token.word not in ADVERBS), 0)
        if not _is_verb(part[start]):
            if part[0].word not in PRONOUNS:
                yield _text(sentence, part)
        elif is_named and not any(token.word in RELATIVE for token in first):
            is_passive = part[start].word not in AUXILIARIES and " by " in _text(sentence, part)
            yield f"{begins if is_passive else _text(sentence, subject)} {_text(sentence, part)}"


def _verb(part: Sequence[Token]) -> int | None:
    """Return the place of the first verb that is recognised as one."""
    found = (place for place, token in enumerate(part) if _is_verb(token) or (place and token.word in PRESENT))
    return next((place for place in found if part[place - 1].word not in DETERMINERS), None)


def _number(part: Sequence[Token]) -> int:
    """Return the place of the first number after a subject with an article; 0 without one."""
    number = next((place for place, token in enumerate(part) if token.number), 0)
    return number if part[0].word in DETERMINERS and number > 1 else 0


def _is_verb(token: Token) -> bool:
    return not token.name and (token.word in AUXILIARIES or token.word.endswith("n't") or is_verb(token))


def _text(sentence: ParsedText, tokens: Sequence[Token]) -> str:
    last = tokens[-1]
    return sentence.text[tokens[0].start : last.start + len(last.text)]
