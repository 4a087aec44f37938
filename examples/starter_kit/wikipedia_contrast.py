"""Groups of claims about sentences of Wikipedia: edits that reverse a sentence, and edits that do not.

The context holds either the sentence or its edited twin; whichever stands there is supported, and the other is not.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence

from contrast_lists import ANTONYMS, COMPARISONS, ORDERS, QUANTIFIERS, SYNONYMS, VERB_BASES
from contrast_pairs import CONTRADICTED, NOT_STATED, SUPPORTED, Claim, ContrastGroup
from fact_values import number_word
from wikipedia_articles import Article, Substitution

__all__ = ["EDITS", "WikipediaContrast", "passive_turned", "same_meaning"]

_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][a-z]{2,}(?: [A-Z][a-z]+)*\b")
_ANY_NAME = re.compile(r"\b[A-Z][a-z]{2,}(?: [A-Z][a-z]+)*\b")
_NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w.,]\d)")
_YEAR = re.compile(r"\b(1[0-9]\d\d|20[0-2]\d)\b")
_MONTH = re.compile(
    r"\b(January|February|March|April|May|June|July|August|September|October|November|December)(?= \d|\b)"
)
_NUMBER_WORD = re.compile(r"\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b")
_ORDINAL = re.compile(r"\b(first|second|third|fourth|fifth|sixth|seventh)\b")
_AUXILIARY = re.compile(
    r"\b(is|was|are|were|has been|have been|had been|can|could|will|would|did|does|do)\b(?! not| never|n't)"
)
_NEGATED = re.compile(r"\b(is|was|are|were|has|have|had|can|could|will|would) (not|never|no longer) (?!only)")
_PAST = re.compile(
    r"(?<=[a-z)] )(" + "|".join(VERB_BASES) + r")(?= (?:the|a|an|his|her|its|their|to|in|as|at|from|for|with|on|[A-Z]))"
)
_PASSIVE = re.compile(
    r"^((?:The |A |An )?[A-Z][\w' -]{2,60}?) (was|were) (\w+ed|written|built|made|sold|led|held)"
    r" by ((?:the |a )?[A-Z][\w.' -]{2,40}?)( (?:in|on|at|for|from) [^,]{2,40})?\.$"
)
_PARENTHESIS = re.compile(r" \([^()]*\)")
_LEAD = re.compile(r"^((?:In|On|By|At|After|During|Since|From) [^,]{3,40}), (?=\w)")
_TAIL_DATE = re.compile(r"^(.{25,}?) (in (?:[A-Z][a-z]+ )?\d{4}|on \d{1,2} [A-Z][a-z]+ \d{4})\.$")
_PRONOUN = re.compile(r"^(?:He|She|It|They)\b")
_JOINT = re.compile(
    r", (?:and|but|which|who|where|while|with) | (?:because|when|after|before|in|by|for|to|from|at|that) "
)
_SYMMETRIC = re.compile(r"\b(and|or|with|between|married|met|near|both|together|alongside|versus|vs)\b")
_BORN = re.compile(
    r"^([A-Z][^(,]{3,40}) \((?:born )?(\d{1,2} [A-Z][a-z]+|[A-Z][a-z]+ \d{1,2},) (\d{4})"
    r"[^)]*\) (is|was) (an? [^.]{10,120})\.$"
)
_MONTHS = _MONTH.pattern[3:].split(")")[0].split("|")
_ALL_ORDINALS = _ORDINAL.pattern[3:-3].split("|")

Edit = Callable[[random.Random, str, Sequence[str], Substitution], str | None]


def replaced(text: str, match: re.Match[str], new: str) -> str:
    """Replace a match; a capital stays a capital."""
    if match.group()[:1].isupper() and new:
        new = new[0].upper() + new[1:]
    return text[: match.start()] + new + text[match.end() :]


def _turned(pairs: Sequence[tuple[str, str]]) -> Edit:
    table = {old: new for a, b in reversed(pairs) for old, new in ((a, b), (b, a))}
    pattern = re.compile(r"\b(" + "|".join(sorted(map(re.escape, table), key=len, reverse=True)) + r")\b")

    def edit(rng: random.Random, text: str, near: Sequence[str], foreign: Substitution) -> str | None:
        found = list(pattern.finditer(text))
        if not found:
            return None
        match = rng.choice(found)
        return replaced(text, match, table[match.group()])

    return edit


def number_changed(rng: random.Random, text: str, near: Sequence[str], foreign: Substitution) -> str | None:
    """Exchange a number for one of the context, a close one, or one that looks like it."""
    found = [*_NUMBER.finditer(text), *_NUMBER_WORD.finditer(text), *_ORDINAL.finditer(text)]
    if not found:
        return None
    match = rng.choice(found)
    old = match.group()
    if not old[0].isdigit():
        words = _NUMBER_WORD.pattern[3:-3].split("|") if _NUMBER_WORD.fullmatch(old) else _ALL_ORDINALS
        return replaced(text, match, rng.choice([w for w in words if w != old]))
    others = [n for s in near for n in _NUMBER.findall(s) if n not in text and abs(len(n) - len(old)) < 2]
    if others and rng.random() < 0.5:
        return replaced(text, match, rng.choice(others))
    digits = list(old)
    places = [i for i, d in enumerate(digits) if d.isdigit()]
    swaps = [i for i in places if i + 1 in places and digits[i] != digits[i + 1] and digits[i + 1] != "0"]
    if swaps and rng.random() < 0.3:
        i = rng.choice(swaps)
        digits[i], digits[i + 1] = digits[i + 1], digits[i]
    else:
        place = rng.choice(places[-2:])
        digits[place] = rng.choice([d for d in "123456789" if d != digits[place]])
    return replaced(text, match, "".join(digits))


def date_changed(rng: random.Random, text: str, near: Sequence[str], foreign: Substitution) -> str | None:
    """Exchange a year or a month."""
    found = [*_YEAR.finditer(text), *_MONTH.finditer(text)]
    if not found:
        return None
    match = rng.choice(found)
    if not match.group().isdigit():
        return replaced(text, match, rng.choice([m for m in _MONTHS if m != match.group()]))
    others = [y for s in near for y in _YEAR.findall(s) if y not in text]
    if others and rng.random() < 0.6:
        return replaced(text, match, rng.choice(others))
    return replaced(text, match, str(int(match.group()) + rng.choice((-30, -10, -5, -2, -1, 1, 2, 5, 10, 20))))


def name_changed(rng: random.Random, text: str, near: Sequence[str], foreign: Substitution) -> str | None:
    """Exchange a name for one of the context or a foreign one."""
    found = [m for m in _NAME.finditer(text) if not _MONTH.fullmatch(m.group())]
    if not found:
        return None
    match = rng.choice(found)
    others = sorted({n for s in near for n in _NAME.findall(s) if n not in text and not _MONTH.fullmatch(n)})
    new = rng.choice(others) if others and rng.random() < 0.6 else rng.choice(foreign.names)
    return replaced(text, match, new)


def roles_exchanged(rng: random.Random, text: str, near: Sequence[str], foreign: Substitution) -> str | None:
    """Exchange two names that are not joined by "and"."""
    found = [
        m for m in _ANY_NAME.finditer(text) if not _MONTH.fullmatch(m.group()) and m.group() not in {"The", "This"}
    ]
    for first, second in zip(found, found[1:], strict=False):
        between = text[first.end() : second.start()]
        if len(between) < 6 or between.startswith(",") or _SYMMETRIC.search(between) or first.group() == second.group():
            continue
        if not re.search(r"\b(by|of|to|from|for|over|against|\w+ed|\w+s)\b", between):
            continue
        return text[: first.start()] + second.group() + between + first.group() + text[second.end() :]
    return None


def negation_changed(rng: random.Random, text: str, near: Sequence[str], foreign: Substitution) -> str | None:
    """Put a negation in, or take one out."""
    if negated := _NEGATED.search(text):
        return text[: negated.start()] + negated[1] + " " + text[negated.end() :]
    if found := list(_AUXILIARY.finditer(text)):
        match = found[0]
        head, _, rest = match.group().partition(" ")
        return replaced(text, match, f"{head} {rng.choice(('not', 'not', 'never'))}{' ' + rest if rest else ''}")
    if past := _PAST.search(text):
        base = VERB_BASES[past.group()]
        return replaced(text, past, rng.choice((f"did not {base}", f"did not {base}", f"never {past.group()}")))
    return None


def spliced(rng: random.Random, text: str, near: Sequence[str], foreign: Substitution) -> str | None:
    """Join the head of a sentence with the tail of another of the context."""
    joints, others = list(_JOINT.finditer(text)), [s for s in near if s != text and _JOINT.search(s)]
    if not joints or not others:
        return None
    tail = rng.choice(others)
    rest = tail[rng.choice(list(_JOINT.finditer(tail))).start() :]
    head = text[: rng.choice(joints).start()]
    return head + rest if len(head) > 20 and len(rest) > 15 else None


EDITS: dict[str, tuple[Edit, int]] = {
    "number": (number_changed, CONTRADICTED),
    "date": (date_changed, CONTRADICTED),
    "name": (name_changed, CONTRADICTED),
    "role": (roles_exchanged, CONTRADICTED),
    "negation": (negation_changed, CONTRADICTED),
    "antonym": (_turned(ANTONYMS), CONTRADICTED),
    "comparison": (_turned(COMPARISONS), CONTRADICTED),
    "order": (_turned(ORDERS), CONTRADICTED),
    "quantifier": (_turned(QUANTIFIERS), CONTRADICTED),
    "splice": (spliced, NOT_STATED),
}
"""Edits after which a sentence says something else, and the label that the edited sentence then has."""

_PASSIVE_VERBS = {"written": "wrote", "built": "built", "made": "made", "sold": "sold", "led": "led", "held": "held"}


def passive_turned(sentence: str) -> tuple[str, str] | None:
    """Turn "X was built by Y in 1932." into "Y built X in 1932.", and into its roles exchanged."""
    match = _PASSIVE.match(sentence)
    if match is None:
        return None
    subject, _, verb, agent, rest = match.groups()
    verb = _PASSIVE_VERBS.get(verb, verb)
    if subject.split(" ")[0] in {"The", "A", "An"}:
        inner = subject[0].lower() + subject[1:]
    else:
        inner = subject
    outer = agent[0].upper() + agent[1:]
    return f"{outer} {verb} {inner}{rest or ''}.", f"{subject} {verb} {agent}{rest or ''}."


def same_meaning(rng: random.Random, sentence: str, title: str) -> str:
    """Reword a sentence: synonyms, numbers spelled or rounded, an adverbial moved, a parenthesis or a tail dropped."""
    text = _PARENTHESIS.sub("", sentence) if rng.random() < 0.5 else sentence
    if rng.random() < 0.5 and (lead := _LEAD.match(text)):
        rest = text[lead.end() :].rstrip(".")
        moved = f"{rest[0].upper()}{rest[1:]} {lead[1][0].lower()}{lead[1][1:]}."
        text = moved if rng.random() < 0.7 else f"{rest[0].upper()}{rest[1:]}."
    elif rng.random() < 0.5 and (tail := _TAIL_DATE.match(text)) and not _PRONOUN.match(text):
        text = f"{tail[2][0].upper()}{tail[2][1:]}, {_lower_article(tail[1])}."
    if rng.random() < 0.3:
        head, comma, _ = text.rpartition(", ")
        if comma and len(head) > 40 and " and" not in text[len(head) :]:
            text = head + "."
    if rng.random() < 0.6 and (pronoun := _PRONOUN.match(text)) and not pronoun.group().startswith("They"):
        text = replaced(text, pronoun, title.split(" (")[0])
    elif rng.random() < 0.3 and text.startswith(title + " ") and len(title) > 3:
        text = "It" + text[len(title) :]
    if rng.random() < 0.5:
        text = _numbers_spelled(rng, text)
    return _synonyms(rng, text) if rng.random() < 0.75 else text


def _lower_article(text: str) -> str:
    return (
        text[0].lower() + text[1:]
        if text.split(" ")[0] in {"The", "A", "An", "It", "He", "She", "They", "His"}
        else text
    )


def _numbers_spelled(rng: random.Random, text: str) -> str:
    if word := _NUMBER_WORD.search(text):
        words = {number_word(n): str(n) for n in range(2, 13)}
        return replaced(text, word, words[word.group()])
    for match in _NUMBER.finditer(text):
        plain = match.group().replace(",", "")
        if "." in plain or _YEAR.fullmatch(plain) or text[match.end() : match.end() + 1] == "%":
            continue
        number = int(plain)
        if "," in match.group() and number >= 1000:
            step = 10 ** (len(plain) - 2)
            rounded = round(number / step) * step
            if rounded != number:
                return replaced(text, match, f"{rng.choice(('about', 'around', 'roughly'))} {rounded:,}")
    return text


_SYNONYM_TABLE = [(re.compile(rf"\b{re.escape(a)}\b"), b) for pair in SYNONYMS for a, b in (pair, pair[::-1])]


def _synonyms(rng: random.Random, text: str) -> str:
    found = [(m, new) for pattern, new in _SYNONYM_TABLE for m in [pattern.search(text)] if m]
    rng.shuffle(found)
    taken: list[tuple[re.Match[str], str]] = []
    for match, new in found[: rng.randint(1, 3)]:
        if all(match.end() <= m.start() or match.start() >= m.end() for m, _ in taken):
            taken.append((match, new))
    for match, new in sorted(taken, key=lambda pair: -pair[0].start()):
        text = replaced(text, match, new)
    return text


class WikipediaContrast:
    """Groups from articles.

    Parameters
    ----------
    articles
        The articles of one split.
    substitution
        Where foreign names come from.
    """

    def __init__(self, articles: Sequence[Article], substitution: Substitution) -> None:
        self.articles = articles
        self.substitution = substitution

    def draw(self, rng: random.Random, sentences: int) -> ContrastGroup:
        """Draw a part of an article and claims about one of its sentences."""
        while True:
            group = self._try(rng, sentences)
            if group is not None:
                return group

    def _try(self, rng: random.Random, sentences: int) -> ContrastGroup | None:
        article = rng.choice(self.articles)
        _, pool = rng.choice(article.paragraphs)
        index = rng.randrange(len(pool))
        base = pool[index]
        if len(base) > (170 if sentences == 1 else 240):
            return None
        first = max(0, index - rng.randrange(sentences))
        near = list(pool[first : first + sentences])
        title = article.title.split(" (")[0]
        twins = self._twins(rng, base, near)
        if not twins:
            return None
        claims: list[Claim] = []
        shown = base
        if rng.random() < 0.5:  # the context says the edited thing, and the sentence of the article is wrong
            kind, label, shown = twins.pop(0)
            claims.append(Claim(same_meaning(rng, base, title), label, kind))
        else:
            claims += [Claim(same_meaning(rng, twin, title), label, kind) for kind, label, twin in twins]
        context = [shown if s is base else s for s in near]
        claims = [*self._supported(rng, shown, context, title), *claims]
        claims += self._structured(rng, shown)
        claims += self._elsewhere(rng, article, pool)
        joined = " ".join(context)
        known = [c for c in claims if c.label == SUPPORTED or c.text.strip(".") not in joined]
        known = list({c.text: c for c in known}.values())
        if title not in joined and rng.random() < 0.5:
            context = [f"{title}.", *context]
        return ContrastGroup((" ".join(context),), tuple(known), "wikipedia", article.title)

    def _twins(self, rng: random.Random, base: str, near: Sequence[str]) -> list[tuple[str, int, str]]:
        """Draw up to two edits of different kinds, the rare kinds first."""
        made = []
        for kind, (edit, label) in EDITS.items():
            twin = edit(rng, base, near, self.substitution)
            if twin is not None and twin != base:
                made.append((kind, label, twin))
        rng.shuffle(made)
        common = {"number", "date", "name", "splice", "negation"}
        return sorted(made, key=lambda m: m[0] in common and rng.random() < 0.6)[:2]

    def _supported(self, rng: random.Random, shown: str, context: Sequence[str], title: str) -> Iterator[Claim]:
        for _ in range(2):
            claim = same_meaning(rng, shown, title)
            yield Claim(claim, SUPPORTED, "copy" if claim == shown else "reworded")
        others = [s for s in context if s != shown]
        if others and rng.random() < 0.2:
            parts = [same_meaning(rng, s, title).rstrip(".!?") for s in (shown, rng.choice(others))]
            rng.shuffle(parts)
            yield Claim(f"{parts[0]}, and {_lower_article(parts[1])}.", SUPPORTED, "two facts")

    def _structured(self, rng: random.Random, shown: str) -> Iterator[Claim]:
        if turned := passive_turned(shown):
            yield Claim(turned[0], SUPPORTED, "active")
            yield Claim(turned[1], CONTRADICTED, "role")
        if born := _BORN.match(shown):
            name, day, year, be, what = born.groups()
            yield Claim(f"{name} was born in {year}.", SUPPORTED, "paraphrase")
            yield Claim(f"{name} was born in {int(year) + rng.choice((-10, -2, -1, 1, 2, 10))}.", CONTRADICTED, "date")
            yield Claim(f"{name} {be} {what}.", SUPPORTED, "shortened")
            yield Claim(f"{name} {be} not {what}.", CONTRADICTED, "negation")

    def _elsewhere(self, rng: random.Random, article: Article, pool: Sequence[str]) -> Iterator[Claim]:
        others = [p for _, p in article.paragraphs if p is not pool]
        if others and rng.random() < 0.2:
            yield Claim(rng.choice(rng.choice(others)), NOT_STATED, "elsewhere")
