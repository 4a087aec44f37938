"""The ledger of contrasts: how often each rule is right, beside what the reader thinks of the same claims.

    python benchmarks/contrast_ledger.py --data DATA --half chosen --write

Four sets of labelled claims: those written for this project that the reader was not trained on (one context in twelve
of ``examples/starter_kit/claims``, and ``unseen``); the natural claims of the six sources of ``carry_over.py``; the
claims about tables of InfoTabS (dev and alpha1), of TabFact's validation part and of ``cells_and_sums.jsonl``; and
sentences copied from the passages: of the first two sets as they are and with one number or unit changed, or asked as a
question that is answered with yes or no, and a cell of each table, said of its row and of another one. A hit is a claim
in which a rule finds a contrast; it is true if the claim lacks support, and false if it has it. Hits stand in three
bands of the reader's log-odds of support: below -1, from -1 to 1, and above 1. Rules are chosen on one half of the
contexts, by the counts that ``--write`` puts into the package, and reported on the other. The reader's answers are kept
in ``--cache``.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise, permutations, product
from os.path import commonprefix
from pathlib import Path

from carry_over import index_of, load_sources, supports_of
from tqdm import tqdm
from written_claims import UNSEEN, load_written

from syncheck.aligners import load_aligner
from syncheck.contrasts.contrast import BANDS, band_of, contrast_with, with_answers
from syncheck.contrasts.parsing import parse
from syncheck.contrasts.rules import RULES, Difference
from syncheck.evaluation.tables import aligned
from syncheck.features.sentence import BEST_CHUNKS, says_not_stated, statement
from syncheck.reading.tables import cells_in

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "starter_kit"))
from claim_files import WRITTEN, is_held_out  # noqa: E402
from contrast_pairs import SUPPORTED  # noqa: E402
from support_pairs import SupportPair, load_pairs  # noqa: E402

SETS = ("written", "sources", "tables", "copied")
TABLES = ("infotabs-dev", "infotabs-alpha1", "tabfact-validation")
CELLS = Path(__file__).parent / "cells_and_sums.jsonl"
LEAST, MOST = 25, 220
"""Characters of a copied sentence."""
NUMBER = re.compile(r"(?<![\w.,/:-])\d+(?:[.,]\d+)*(?![\w/:-])")
STATED = re.compile(r"((?:The|A|An|All|Our|Your) [^,;:.]+?) (is|are|was|were|can|may|must|will) (?!not)([^,;:.]+)\.")
"""Sentence that can be asked as a question."""
MOST_ASKED = 90
YEAR = re.compile(r"1\d{3}|20\d\d")
UNITS = {"mg": "g", "kg": "g", "km": "m", "million": "billion", "billion": "million", "hours": "minutes"}
UNITS |= {
    "minutes": "hours",
    "days": "weeks",
    "weeks": "days",
    "months": "years",
    "years": "months",
    "percent": "points",
}
UNITS |= {"euros": "dollars", "metres": "kilometres", "miles": "kilometres", "a.m.": "p.m.", "p.m.": "a.m."}
"""What the unit after a number is changed to."""
LEDGER = Path(__file__).parents[1] / "syncheck" / "assets" / "contrasts" / "ledger.txt"
ALL = "all claims"


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule that speaks about a claim."""

    rule: str
    kind: str
    of: str
    band: int
    supported: bool
    words: Difference
    pair: SupportPair


def load_claims(data: Path) -> dict[str, list[SupportPair]]:
    """Read the three sets."""
    held_out = [group for group in load_written(WRITTEN) if is_held_out(group)] + load_written(UNSEEN)
    written = [
        SupportPair(group.passages, claim.text, int(claim.label == SUPPORTED), "written", group.group)
        for group in held_out
        for claim in group.claims
    ]
    sources = load_sources(data / "ragtruth-qa", data / "attribution-pairs", data / "support-pairs")
    tables = [
        replace(pair, group=f"{name} {pair.group}")
        for name in TABLES
        for pair in load_pairs(data / "table-pairs", name)
    ]
    for pair in map(json.loads, CELLS.read_text(encoding="utf-8").splitlines()):
        for label, claim in enumerate((pair["unsupported"], pair["supported"])):
            tables.append(SupportPair(tuple(pair["context"]), claim, label, "tables", pair["context_id"]))
    copies = [*copied([*written, *sources]), *from_rows([*written, *tables])]
    return dict(zip(SETS, (written, sources, tables, copies), strict=True))


def copied(pairs: Sequence[SupportPair]) -> Iterator[SupportPair]:
    """Yield one sentence with a number of each context, as it is and with a number or unit changed."""
    for passages, group in {pair.passages: pair.group for pair in pairs}.items():
        rng = random.Random(f"copied {passages[0]}")
        text = " ".join(passages)
        texts = [chunk.text for chunk in index_of(passages).chunks]
        sentences = [found for found in texts if LEAST <= len(found) <= MOST and NUMBER.search(found)]
        rng.shuffle(sentences)
        for sentence in sentences:
            changed = with_other_number(sentence, rng)
            if changed.strip(". ") not in text and changed != sentence:
                yield SupportPair(passages, sentence, 1, "copied", group)
                yield SupportPair(passages, changed, 0, "copied", group)
                break
        stated = [found for found in map(STATED.fullmatch, texts) if found is not None and len(found[0]) <= MOST_ASKED]
        if stated:
            asked = rng.choice(stated)
            question = f"{asked[2].capitalize()} {asked[1][0].lower()}{asked[1][1:]} {asked[3]}?"
            yield SupportPair((f"{question} Yes.",), asked[0], 1, "copied", group)
            yield SupportPair((f"{question} No.",), asked[0], 0, "copied", group)


def from_rows(pairs: Sequence[SupportPair]) -> Iterator[SupportPair]:
    """Yield a cell of each table as a sentence about its row, and the same about another row that has another cell."""
    for passages, group in {pair.passages: pair.group for pair in pairs}.items():
        rng = random.Random(f"rows {passages[0]}")
        rows = []
        for chunk in index_of(passages).chunks:
            row = cells_in(chunk.text)
            if row is not None:
                rows.append((row[0], [chunk.text[start:end].split() for start, end in row[1]]))
        choices = [
            (one, other, len(shared), own, its)
            for (one, cells), (other, others) in permutations(rows, 2)
            for own, its in product(cells, others)
            if one != other and (shared := commonprefix([own, its])) and len(shared) < min(len(own), len(its))
        ]
        if choices:
            one, other, named, own, its = rng.choice(choices)
            column, value = " ".join(own[:named]), " ".join(own[named:])
            is_same = any(value in " ".join(cell[named:]) for cell in dict(rows)[other])
            yield SupportPair(passages, f"The {column} of {one} is {value}.", 1, "copied", group)
            if not is_same:
                yield SupportPair(passages, f"The {column} of {other} is {value}.", 0, "copied", group)


def with_other_number(sentence: str, rng: random.Random) -> str:
    """Change the unit of a sentence, or else one of its numbers: a digit, two neighbouring digits, or the magnitude."""
    units = [found for unit in UNITS for found in re.finditer(rf"(?<=\d ){unit}\b", sentence)]
    if units and rng.random() < 0.5:
        unit = rng.choice(units)
        return sentence[: unit.start()] + UNITS[unit.group()] + sentence[unit.end() :]
    number = rng.choice(list(NUMBER.finditer(sentence)))
    written = number.group()
    places = [n for n, letter in enumerate(written) if letter.isdigit()]
    swaps = [n for n, m in pairwise(places) if m == n + 1 and written[n] != written[m] and written[m] != "0"]
    way = rng.choice(("digit", "swap", "magnitude"))
    if way == "swap" and swaps:
        n = rng.choice(swaps)
        new = written[:n] + written[n + 1] + written[n] + written[n + 2 :]
    elif way == "magnitude" and not YEAR.fullmatch(written):
        new = written.replace(".", "") if "." in written and written[0] != "0" else f"{written}0"
    else:
        n = rng.choice(places)
        new = written[:n] + str((int(written[n]) + rng.randint(1, 8)) % 9 + 1) + written[n + 1 :]
    return sentence[: number.start()] + new + sentence[number.end() :]


def is_chosen_on(pair: SupportPair) -> bool:
    """Return True for the half of the contexts on which rules are chosen."""
    return int(sha256(f"half {pair.group}".encode()).hexdigest(), 16) % 2 == 0


def hits_in(of: str, pairs: Sequence[SupportPair], log_odds: Sequence[float]) -> Iterator[Hit]:
    """Yield what the rules find in claims; each rule once a claim."""
    index, read, passages = None, parse, ()
    for pair, odds in zip(tqdm(pairs, desc=of, mininterval=5), log_odds, strict=True):
        stated = statement(pair.claim)
        if says_not_stated(pair.claim):
            continue
        if index is None or pair.passages != passages:
            index, read, passages = index_of(pair.passages), lru_cache(parse), pair.passages
        chunks = with_answers([chunk.text for chunk in index.chunks], index.best(stated, BEST_CHUNKS))
        for found in {found.rule: found for found in contrast_with(stated, chunks, read=read).differences}.values():
            yield Hit(found.rule, found.kind, of, band_of(odds), pair.label == 1, found, pair)


def ledger(hits: Sequence[Hit], claims: Sequence[Hit]) -> list[str]:
    """Write true and false hits of each rule by set and band, and the claims without and with support."""
    counts: dict[str, Counter[tuple[str, int, bool]]] = defaultdict(Counter)
    for hit in (*hits, *claims):
        counts[hit.rule][hit.of, hit.band, hit.supported] += 1
    bands = (f"below {BANDS[0]:g}", f"to {BANDS[1]:g}", f"above {BANDS[1]:g}")
    rows = [["rule", *(f"{of} {band}" for of in SETS for band in bands), "true of all"]]
    for rule in (ALL, *RULES):
        cells = [(counts[rule][of, band, False], counts[rule][of, band, True]) for of in SETS for band in range(3)]
        true, all_of_them = sum(true for true, _ in cells), sum(map(sum, cells))
        share = f"{true / all_of_them:.2f}" if all_of_them else "-"
        rows.append([rule, *(f"{true} / {false}" if true or false else "." for true, false in cells), share])
    return aligned(rows)


def write(hits: Sequence[Hit]) -> None:
    """Write true and false hits of each rule by band into the package."""
    remarks = [line for line in LEDGER.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    counts = Counter((hit.rule, hit.band, hit.supported) for hit in hits)
    lines = [
        f"{rule}: "
        + " ".join(f"{counts[rule, band, False]}/{counts[rule, band, True]}" for band in range(len(BANDS) + 1))
        for rule in RULES
    ]
    LEDGER.write_text("\n".join([*remarks, *lines, ""]), encoding="utf-8")


def main(words: Sequence[str] | None = None) -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder of the published sets")
    parser.add_argument("--half", choices=("chosen", "reported", "both"), default="reported", help="(%(default)s)")
    parser.add_argument("--aligner", default="reader", metavar="NAME", help="(%(default)s)")
    parser.add_argument("--cache", type=Path, default=Path("runs/ledger.json"), metavar="FILE", help="(%(default)s)")
    parser.add_argument("--write", action="store_true", help="write the counts into the package")
    parser.add_argument("--show", metavar="RULE", help="also print this rule's hits")
    args = parser.parse_args(words)
    aligner = load_aligner(args.aligner)
    if aligner is None:
        parser.error("expected an aligner; found none")
    args.cache.parent.mkdir(parents=True, exist_ok=True)
    hits, claims = [], []
    for of, pairs in load_claims(args.data).items():
        used = [p for p in pairs if args.half == "both" or is_chosen_on(p) == (args.half == "chosen")]
        log_odds = supports_of(used, aligner, args.cache)[:, 1].tolist()
        hits += hits_in(of, used, log_odds)
        nothing = Difference("number", "", "")
        claims += [Hit(ALL, "", of, band_of(o), p.label == 1, nothing, p) for p, o in zip(used, log_odds, strict=True)]
    print(f"{len(claims)} claims of the half {args.half!r}; true / false hits\n")
    print(*ledger(hits, claims), sep="\n")
    if args.write:
        write(hits)
    for hit in hits if args.show else ():
        if hit.rule == args.show:
            side = "false" if hit.supported else "true"
            print(f"\n{side} {hit.of} {hit.band} {hit.words.sentence!r} {hit.words.evidence!r}: {hit.pair.claim}")


if __name__ == "__main__":
    main()
