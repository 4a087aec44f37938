"""Pairs of a context and a claim made from Wikipedia articles, drawn afresh at every step.

A supported claim is a sentence that the passages hold, perhaps shortened or reworded; an unsupported one has
a changed number, a swapped name, a negation or an opposite, the head of one sentence with the tail of
another, or comes from a part of the article that the passages leave out. Wording changes are applied to both
kinds alike, so that they give nothing away.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from support_pairs import SupportPair
from wikipedia_articles import Article, Substitution

__all__ = ["WikipediaPairs"]

SUPPORTED_SHARE = 0.5

_NAME = re.compile(r"(?<!^)(?<![.!?] )\b[A-Z][a-z]{2,}(?: [A-Z][a-z]+)*\b")
_NUMBER = re.compile(r"\d[\d,.]*\d|\d")
_NUMBER_WORD = re.compile(
    r"\b(one|two|three|four|five|six|seven|eight|nine|ten|first|second|third|fourth|fifth|several|many|few|most|all)\b"
)
_PARENTHESIS = re.compile(r" \([^()]*\)")
_AUXILIARY = re.compile(r"\b(is|was|are|were|has|had|can|could|will|would|did)\b(?! not)")
_JOINT = re.compile(
    r", (?:and|but|which|who|where|while|with) | (?:and|but|because|when|after|before|in|by|for|to|from|at) "
)
_LEAD = re.compile(r"^(?:In|On|By|At|After|During|Since|From) [^,]{3,40}, (?=\w)")
_PRONOUN = re.compile(r"^(?:He|She|It|They)\b")

_OPENERS = (
    "Based on the given passages, ", "According to the text, ", "Additionally, ", "Furthermore, ", "However, ",
    "The passages say that ", "Overall, ", "Yes, ", "In summary, ", "It is also noted that ",
)  # fmt: skip
_BULLETS = ("* ", "- ", "1. ", "2. ", "3. ", "4. ")
_SAME = tuple(
    pair.split("/")
    for pair in (
        "also/,began/started,located/situated,known/called,due to/because of,during/in the course of,however/but,"
        "built/constructed,"
        "large/big,many/numerous,help/assist,near/close to,received/got,created/made,purchased/bought,often/frequently,"
        "usually/typically,around/about,approximately/about,released/published,children/kids,films/movies,film/movie,"
        "is used/serves,such as/like,including/among them,several/a number of,after/following,died/passed away,"
        "became/turned into,consists of/is made up of,attended/went to,United States/US,member/part,main/primary,"
        "over/more than,show/demonstrate,ended/finished,obtained/gained,use/employ,important/significant"
    ).split(",")
)
_OPPOSITE = tuple(
    pair.split("/")
    for pair in (
        "before/after,first/last,north/south,east/west,northern/southern,eastern/western,increase/decrease,"
        "increased/decreased,"
        "high/low,higher/lower,more/less,won/lost,largest/smallest,oldest/youngest,early/late,earlier/later,male/female,"
        "men/women,son/daughter,father/mother,brother/sister,husband/wife,king/queen,large/small,long/short,best/worst,"
        "born/died,began/ended,joined/left,accepted/rejected,included/excluded,above/below,most/least,major/minor,"
        "public/private,old/new,rural/urban,positive/negative,success/failure,successful/unsuccessful,"
        "common/rare,always/never,before/since,opened/closed,bought/sold,summer/winter,daily/monthly,with/without,"
        "he/she,his/her,million/billion,allow/prevent"
    ).split(",")
)


class WikipediaPairs:
    """Draws pairs from articles.

    Parameters
    ----------
    articles
        The articles of one split.
    substitution
        Where foreign names and numbers come from.
    """

    def __init__(self, articles: Sequence[Article], substitution: Substitution) -> None:
        self.articles = articles
        self.substitution = substitution
        self._unsupported: tuple[Callable[[random.Random, str, Sequence[str], Article], str | None], ...] = (
            self._changed_number,
            self._changed_number,
            self._swapped_name,
            self._swapped_name,
            self._foreign_name,
            self._opposed,
            self._spliced,
            self._spliced,
            self._elsewhere,
            self._elsewhere,
        )

    def draw(self, rng: random.Random) -> SupportPair:
        """Draw one pair, half of them supported."""
        supported = rng.random() < SUPPORTED_SHARE
        while True:
            article = rng.choice(self.articles)
            paragraph = rng.randrange(len(article.paragraphs))
            sentences = article.paragraphs[paragraph][1]
            index = rng.randrange(len(sentences))
            claim = _shortened(rng, sentences[index])
            if not supported:
                changed = self._corrupted(rng, claim, sentences, article)
                if changed is None:
                    continue
                claim = changed
            passages = self._passages(rng, article, sentences, index)
            if not supported and any(claim.strip(".") in passage for passage in passages):
                continue
            claim = _reworded(rng, claim, article.title)
            return SupportPair(passages, claim, int(supported), "wikipedia", article.title)

    def _corrupted(self, rng: random.Random, claim: str, sentences: Sequence[str], article: Article) -> str | None:
        changed = rng.choice(self._unsupported)(rng, claim, sentences, article)
        if changed is not None and rng.random() < 0.2:
            again = rng.choice(self._unsupported[:6])(rng, changed, sentences, article)
            changed = again or changed
        return changed

    def _passages(self, rng: random.Random, article: Article, sentences: Sequence[str], index: int) -> tuple[str, ...]:
        before, after = rng.randint(0, 5), rng.randint(0, 5)
        passages = [" ".join(sentences[max(0, index - before) : index + 1 + after])]
        for _ in range(rng.choice((0, 0, 1, 2, 3))):
            other = article if rng.random() < 0.6 else rng.choice(self.articles)
            _, pool = rng.choice(other.paragraphs)
            if pool is not sentences:
                first = rng.randrange(len(pool))
                passages.append(" ".join(pool[first : first + rng.randint(1, 6)]))
        rng.shuffle(passages)
        return tuple(passages)

    def _changed_number(self, rng: random.Random, claim: str, sentences: Sequence[str], article: Article) -> str | None:
        found = list(_NUMBER.finditer(claim))
        if not found:
            words = list(_NUMBER_WORD.finditer(claim))
            if not words:
                return None
            match = rng.choice(words)
            other = rng.choice(_NUMBER_WORD.pattern[3:-3].split("|"))
            return _replaced(claim, match, other)
        match = rng.choice(found)
        others = [n for n in _NUMBER.findall(" ".join(sentences)) if n not in claim]
        if others and rng.random() < 0.4:
            return _replaced(claim, match, rng.choice(others))
        digits = list(match.group())
        places = [i for i, d in enumerate(digits) if d.isdigit()]
        place = rng.choice(places[-2:])
        digits[place] = rng.choice([d for d in "123456789" if d != digits[place]])
        return _replaced(claim, match, "".join(digits))

    def _swapped_name(self, rng: random.Random, claim: str, sentences: Sequence[str], article: Article) -> str | None:
        text = " ".join(s for _, pool in article.paragraphs[:6] for s in pool)
        names = [n for n in set(_NAME.findall(text)) if n not in claim]
        found = list(_NAME.finditer(claim))
        if not found or not names:
            return None
        near = [n for n in sorted(names) if any(n in s for s in sentences)]
        return _replaced(claim, rng.choice(found), rng.choice(near or sorted(names)))

    def _foreign_name(self, rng: random.Random, claim: str, sentences: Sequence[str], article: Article) -> str | None:
        found = list(_NAME.finditer(claim))
        return _replaced(claim, rng.choice(found), rng.choice(self.substitution.names)) if found else None

    def _opposed(self, rng: random.Random, claim: str, sentences: Sequence[str], article: Article) -> str | None:
        turns = [(m, new) for a, b in _OPPOSITE for old, new in ((a, b), (b, a)) for m in _whole(old, claim)]
        if turns and rng.random() < 0.7:
            match, new = rng.choice(turns)
            return _replaced(claim, match, new)
        found = list(_AUXILIARY.finditer(claim))
        if not found:
            return None
        match = rng.choice(found)
        return _replaced(claim, match, f"{match.group()} {rng.choice(('not', 'not', 'never', 'no longer'))}")

    def _spliced(self, rng: random.Random, claim: str, sentences: Sequence[str], article: Article) -> str | None:
        others = [s for s in sentences if claim[:40] not in s]
        joints = list(_JOINT.finditer(claim))
        if not others or not joints:
            return None
        tail = rng.choice(others)
        cuts = list(_JOINT.finditer(tail))
        if not cuts:
            return None
        head, rest = claim[: rng.choice(joints).start()], tail[rng.choice(cuts).start() :]
        return head + rest if len(head) > 15 and len(rest) > 12 else None

    def _elsewhere(self, rng: random.Random, claim: str, sentences: Sequence[str], article: Article) -> str | None:
        others = [pool for _, pool in article.paragraphs if pool is not sentences]
        if not others:
            return None
        return _shortened(rng, rng.choice(rng.choice(others)))


def _whole(word: str, text: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"\b{word}\b", text)) if word and word in text else []


def _replaced(text: str, match: re.Match[str], new: str) -> str:
    return text[: match.start()] + new + text[match.end() :]


def _shortened(rng: random.Random, sentence: str) -> str:
    if rng.random() < 0.4:
        sentence = _PARENTHESIS.sub("", sentence)
    if rng.random() < 0.25 and (lead := _LEAD.match(sentence)):
        rest = sentence[lead.end() :]
        sentence = rest[0].upper() + rest[1:]
    if rng.random() < 0.25:
        head, comma, _ = sentence.rpartition(", ")
        if comma and len(head) > 40:
            sentence = head + "."
    return sentence


def _reworded(rng: random.Random, claim: str, title: str) -> str:
    if rng.random() < 0.5 and (pronoun := _PRONOUN.match(claim)):
        claim = _replaced(claim, pronoun, title.split(" (")[0])
    if rng.random() < 0.5:
        turns = [(m, new) for a, b in _SAME for old, new in ((a, b), (b, a)) for m in _whole(old, claim)]
        rng.shuffle(turns)
        for match, new in sorted(turns[: rng.randint(1, 3)], key=lambda t: -t[0].start()):
            claim = " ".join(_replaced(claim, match, new).split())
    if rng.random() < 0.15:
        opener = rng.choice(_OPENERS)
        claim = opener + (claim[0].lower() if rng.random() < 0.5 else claim[0]) + claim[1:]
    if rng.random() < 0.1:
        name = title.split(" (")[0]
        claim = rng.choice(_BULLETS) + rng.choice(("", f"{name}: ", f"**{name}**: ")) + claim
    if rng.random() < 0.08:
        claim = claim.lower()
    return claim
