r"""Make groups of claims about one context that differ in little: supported, contradicted, not stated.

    python examples/starter_kit/contrast_pairs.py --articles articles.jsonl.xz --groups 60000 --output made.jsonl

Matching words cannot solve them: within each stratum of word overlap the supported claims are as many as the others
(:class:`Balance`). Facts come from wordings that mean the same (``fact_relations.txt``) and from sentences of
Wikipedia; there either the claim or the context is edited, so that an unnatural sentence says nothing of its label.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from fact_values import Value, draw_value
from wikipedia_articles import Substitution, load_articles

__all__ = [
    "Balance",
    "CONTRADICTED",
    "Claim",
    "ContrastGroup",
    "FactContrast",
    "NOT_STATED",
    "SUPPORTED",
    "UNSUPPORTED",
    "load_groups",
]

CONTRADICTED, SUPPORTED, NOT_STATED = 0, 1, 2
UNSUPPORTED = 3
"""Label of claims known not to be supported, whether contradicted or not stated."""
STRATA = (0.4, 0.6, 0.75, 0.85, 0.95)
"""Bounds between the strata of word overlap."""
SLACK = 30
"""By how many claims the supported and the other ones of a stratum may differ."""
DRAWS = 1000
"""Draws of a value after which all values of its kind are held to be taken."""

_KINDS = {"n": "negation", "q": "quantifier", "c": "comparison", "o": "order", "d": "condition", "r": "role"}
_SLOT = re.compile(r"\{(\w)(\*?)(?::(\w+))?\}")
_WORD = re.compile(r"\w+")
_NAMES = {"person", "company", "city", "country", "team", "animal", "place", "device", "drug", "room", "group", "food"}
_DATES = {"year", "date", "day", "weekday", "clock", "since", "duration"}
_SHORT = "a an and as at by for from in is it its of on or that the this to was were with be are has had".split()


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim, one of three labels, and the kind of its difference from the context."""

    text: str
    label: int
    kind: str


@dataclass(frozen=True, slots=True)
class ContrastGroup:
    """A context and claims about it."""

    passages: tuple[str, ...]
    claims: tuple[Claim, ...]
    source: str
    group: str


class Maker(Protocol):
    """Draws groups whose contexts hold about ``sentences`` sentences."""

    def draw(self, rng: random.Random, sentences: int) -> ContrastGroup:
        """Draw one group."""
        ...


@dataclass(frozen=True, slots=True)
class Relation:
    """Wordings of one fact, of its contradictions with their kinds, and of statements it leaves open."""

    same: tuple[str, ...]
    opposed: tuple[tuple[str, str], ...]
    open: tuple[str, ...]
    slots: Mapping[str, str]
    subjects: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Fact:
    relation: Relation
    values: Mapping[str, Value]
    wording: int

    def text(self, rng: random.Random) -> str:
        return filled(rng, self.relation.same[self.wording], self.values)


def read_relations(path: Path) -> list[Relation]:
    """Read ``fact_relations.txt``; its header describes the format."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [_relation(line) for line in lines if line and not line.startswith("#")]


def _relation(line: str) -> Relation:
    same, rest = line.split(" != ")
    opposed, open_ = rest.split(" ? ")
    slots = {m[1]: m[3] for m in _SLOT.finditer(line) if m[3]}
    subjects = frozenset(m[1] for m in _SLOT.finditer(line) if m[2])
    plain = [_SLOT.sub(r"{\1}", part) for part in (same, opposed, open_)]
    kinds = [("antonym", w) if w[1:3] != ": " else (_KINDS[w[0]], w[3:]) for w in plain[1].split(" / ")]
    return Relation(tuple(plain[0].split(" / ")), tuple(kinds), tuple(plain[2].split(" / ")), slots, subjects)


def filled(rng: random.Random, wording: str, values: Mapping[str, Value]) -> str:
    """Put a spelling of each value into a wording; the first letter is a capital."""
    text = _SLOT.sub(lambda m: rng.choice(values[m[1]].spellings), wording)
    text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
    text = re.sub(r"(?<=\. )[a-z]", lambda m: m[0].upper(), text)
    return text[0].upper() + text[1:]


class FactContrast:
    """Groups from made-up facts.

    Parameters
    ----------
    relations
        What facts there are.
    """

    def __init__(self, relations: Sequence[Relation]) -> None:
        self.relations = relations

    def draw(self, rng: random.Random, sentences: int) -> ContrastGroup:
        """Draw a fact, others beside it, and claims about the first."""
        relation = rng.choice(self.relations)
        fact = self._fact(rng, relation)
        others = [self._beside(rng, fact) for _ in range(sentences - 1)]
        texts = [other.text(rng) for other in others]
        place = rng.randint(0, len(texts))
        texts.insert(place, fact.text(rng))
        claims = [*self._supported(rng, fact), *self._not_supported(rng, fact, others)]
        if others and rng.random() < 0.4:
            claims += self._joined(rng, rng.choice(others), list(claims))
        if all(other.relation is not relation for other in others) and rng.random() < 0.15:
            claims = _with_pronoun(claims, fact)
        passages = _as_passages(rng, texts)
        return ContrastGroup(passages, tuple(_distinct(rng, claims, " ".join(passages))), "facts", "")

    def _fact(self, rng: random.Random, relation: Relation) -> _Fact:
        values: dict[str, Value] = {}
        for name, kind in relation.slots.items():
            value = _other(rng, kind, values.values())
            if value is None:
                raise ValueError(f"expected fewer values of the kind {kind} in one fact: {relation.same[0]}")
            values[name] = value
        return _Fact(relation, values, rng.randrange(len(relation.same)))

    def _beside(self, rng: random.Random, fact: _Fact) -> _Fact:
        """Draw a fact to go with another one: half of them say the same of something else."""
        if rng.random() < 0.5 and fact.relation.subjects:
            return self._fact(rng, fact.relation)
        return self._fact(rng, rng.choice([r for r in self.relations if r is not fact.relation]))

    def _supported(self, rng: random.Random, fact: _Fact) -> Iterator[Claim]:
        wordings = list(range(len(fact.relation.same)))
        rng.shuffle(wordings)
        for wording in wordings[:2]:
            kind = "copy" if wording == fact.wording else "paraphrase"
            yield Claim(filled(rng, fact.relation.same[wording], fact.values), SUPPORTED, kind)
        for name, value in fact.values.items():
            if value.implied and rng.random() < 0.35:
                implied = {**fact.values, name: Value((rng.choice(value.implied),))}
                yield Claim(filled(rng, rng.choice(fact.relation.same), implied), SUPPORTED, "inference")

    def _not_supported(self, rng: random.Random, fact: _Fact, others: Sequence[_Fact]) -> Iterator[Claim]:
        relation = fact.relation
        for kind, wording in rng.sample(relation.opposed, 2):
            yield Claim(filled(rng, wording, fact.values), CONTRADICTED, kind)
        yield from self._changed(rng, fact, others)
        for name, value in fact.values.items():
            if value.excluded and rng.random() < 0.35:
                excluded = {**fact.values, name: Value((rng.choice(value.excluded),))}
                yield Claim(filled(rng, rng.choice(relation.same), excluded), CONTRADICTED, "bound")
        if rng.random() < 0.4:
            yield Claim(filled(rng, rng.choice(relation.open), fact.values), NOT_STATED, "addition")
        if rng.random() < 0.1:
            yield Claim(self._fact(rng, rng.choice(self.relations)).text(rng), NOT_STATED, "unrelated")

    def _changed(self, rng: random.Random, fact: _Fact, others: Sequence[_Fact]) -> Iterator[Claim]:
        """Replace a value by one from another fact of the same relation, where there is one.

        There is no claim where the facts have all values of the kind, as eight facts may have all days of the week.
        """
        name = rng.choice(sorted(fact.values))
        kind = fact.relation.slots[name]
        near = [o.values[name] for o in others if o.relation is fact.relation and o.values[name] != fact.values[name]]
        value = rng.choice(near) if near and rng.random() < 0.7 else _other(rng, kind, fact.values.values())
        if any(o.relation is fact.relation and o.values == {**fact.values, name: value} for o in others):
            value = _other(rng, kind, [v for o in (fact, *others) for v in o.values.values()])
        if value is None:
            return
        text = filled(rng, rng.choice(fact.relation.same), {**fact.values, name: value})
        what = "name" if kind in _NAMES else "date" if kind in _DATES else "number" if _numeric(value) else "word"
        subject = name in fact.relation.subjects
        yield Claim(text, NOT_STATED if subject else CONTRADICTED, f"subject {what}" if subject else what)

    def _joined(self, rng: random.Random, other: _Fact, claims: Sequence[Claim]) -> Iterator[Claim]:
        """Join another fact with a claim: supported if both are."""
        for label in (SUPPORTED, CONTRADICTED):
            claim = rng.choice([c for c in claims if c.label == label] or list(claims))
            halves = [claim.text.rstrip("."), filled(rng, rng.choice(other.relation.same), other.values).rstrip(".")]
            rng.shuffle(halves)
            joint = rng.choice((", and ", ", while ", "; ", ". "))
            second = halves[1] if joint == ". " else _lowered(halves[1])
            kind = "two facts" if claim.label == SUPPORTED else "partly true"
            yield Claim(f"{halves[0]}{joint}{second}.", claim.label, kind)


def _with_pronoun(claims: Sequence[Claim], fact: _Fact) -> list[Claim]:
    """Say "It" for the subject, as short answers do, where the subject is a thing and begins the claim."""
    things = {"company", "place", "device", "drug", "substance", "room", "paper"}
    names = [fact.values[n].spellings[0] for n in fact.relation.subjects if fact.relation.slots[n] in things]
    told = []
    for claim in claims:
        name = next((n for n in names if claim.text.lower().startswith(f"{n.lower()} ")), None)
        told.append(claim if name is None else Claim(f"It{claim.text[len(name) :]}", claim.label, claim.kind))
    return told


def _numeric(value: Value) -> bool:
    return any(c.isdigit() for c in "".join(value.spellings))


def _lowered(text: str) -> str:
    """Lower the first letter of a sentence that does not begin with a name."""
    first = text.split(" ", 1)[0].lower()
    return (
        text[0].lower() + text[1:] if first in {"the", "in", "no", "all", "after", "before", "a", "an", "it"} else text
    )


def _other(rng: random.Random, kind: str, taken: Iterable[Value]) -> Value | None:
    """Draw a value that shares no spelling with those that are taken; None if there seems to be none."""
    spellings = {s for value in taken for s in value.spellings}
    drawn = (draw_value(rng, kind) for _ in range(DRAWS))
    return next((value for value in drawn if not spellings & set(value.spellings)), None)


def _as_passages(rng: random.Random, texts: Sequence[str]) -> tuple[str, ...]:
    """Write sentences as one passage or as two."""
    if len(texts) > 2 and rng.random() < 0.3:
        cut = rng.randint(1, len(texts) - 1)
        return (" ".join(texts[:cut]), " ".join(texts[cut:]))
    return (" ".join(texts),)


def _distinct(rng: random.Random, claims: Sequence[Claim], context: str) -> Iterator[Claim]:
    """Leave out repeated claims, and those labelled wrong that are in the context."""
    seen: dict[str, Claim] = {}
    for claim in claims:
        if claim.label == SUPPORTED or claim.text.strip(".") not in context:
            seen.setdefault(claim.text, claim)
    yield from seen.values()


def word_overlap(claim: str, context: str) -> float:
    """Share of a claim's content words that a context holds."""
    held = set(_WORD.findall(context.lower()))
    words = [w for w in set(_WORD.findall(claim.lower())) if w not in _SHORT]
    return sum(w in held for w in words) / max(1, len(words))


class Balance:
    """Selects claims so that half of them are supported within each stratum of overlap."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, int, bool]] = Counter()

    def admitted(self, group: ContrastGroup) -> ContrastGroup | None:
        """Return the group without the claims of full strata; None where no contrast is left."""
        context = " ".join(group.passages)
        kept = []
        for claim in group.claims:
            overlap = word_overlap(claim.text, context)
            stratum = sum(overlap > bound for bound in STRATA)
            supported = claim.label == SUPPORTED
            key, other = (group.source, stratum, supported), (group.source, stratum, not supported)
            if self.counts[key] < self.counts[other] + SLACK:
                self.counts[key] += 1
                kept.append(claim)
        return ContrastGroup(group.passages, tuple(kept), group.source, group.group) if kept else None


def load_groups(path: Path) -> list[ContrastGroup]:
    """Read the file that :func:`main` wrote."""
    with path.open(encoding="utf-8") as lines:
        return [_read(json.loads(line)) for line in lines]


def _read(record: dict[str, Any]) -> ContrastGroup:
    claims = tuple(Claim(**claim) for claim in record["claims"])
    return ContrastGroup(tuple(record["passages"]), claims, record["source"], record["group"])


def main() -> None:
    """Write groups as JSON Lines and print how many claims of each kind they hold."""
    from wikipedia_contrast import WikipediaContrast

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=Path, required=True)
    parser.add_argument("--split", choices=("train", "heldout"), default="train")
    parser.add_argument("--groups", type=int, default=60000)
    parser.add_argument("--sentences", type=int, nargs="+", default=[1, 1, 2, 3, 4], help="context sizes, drawn evenly")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    articles = load_articles(args.articles, args.split)
    facts = FactContrast(read_relations(Path(__file__).with_name("fact_relations.txt")))
    makers: tuple[Maker, ...] = (facts, WikipediaContrast(articles, Substitution(articles)))
    rng, balance = random.Random(args.seed), Balance()
    counts: Counter[str] = Counter()
    with args.output.open("w", encoding="utf-8") as out:
        for number in range(args.groups):
            drawn = makers[number % 2].draw(rng, rng.choice(args.sentences))
            group = balance.admitted(drawn)
            if group is not None:
                out.write(json.dumps(asdict(group), ensure_ascii=False) + "\n")
                counts.update(f"{group.source} {claim.label} {claim.kind}" for claim in group.claims)
    for name, count in sorted(counts.items()):
        print(f"{count:8d} {name}")
    print(f"{sum(counts.values()):8d} claims")


if __name__ == "__main__":
    main()
