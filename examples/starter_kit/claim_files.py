"""Claims that were written one by one: how a folder of them is read, what they count for, and which are held out.

``claims/README.md`` tells the format and what each letter, with which the name of a file begins, stands for.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from contrast_pairs import CONTRADICTED, NOT_STATED, SUPPORTED, Claim, ContrastGroup

WRITTEN = Path(__file__).with_name("claims")
WRITTEN_SOURCES = ("matched", "written", "answers")
MATCHED, ANSWERS = frozenset("jklmnopqrstwxyz"), frozenset("uv")
"""Letters of the files whose neighbouring claims are pairs that differ in one thing, and of those with answers."""


def load_written(folder: Path, pattern: str = "*.txt") -> list[ContrastGroup]:
    """Read a pattern's files: ``P:`` begins a passage, ``+`` a supported claim, ``-`` contradicted, ``?`` neither.

    A context that shares claims with the one before it is its twin; both have the first passage of the first as group.
    The kind of a claim is the letter with which the file's name begins.
    """
    groups: list[ContrastGroup] = []
    for path in sorted(folder.glob(pattern)):
        for passages, claims in _written_in(path):
            is_twin = groups and {c.text for c in groups[-1].claims} & {c.text for c in claims}
            groups.append(ContrastGroup(passages, claims, "written", groups[-1].group if is_twin else passages[0]))
    return groups


def _written_in(path: Path) -> list[tuple[tuple[str, ...], tuple[Claim, ...]]]:
    labels = {"+ ": SUPPORTED, "- ": CONTRADICTED, "? ": NOT_STATED}
    found: list[tuple[list[str], list[Claim]]] = []
    for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
        if line.startswith("P:"):
            if not found or found[-1][1]:
                found.append(([], []))
            found[-1][0].append(line[2:].strip())
        elif line[:2] in labels and found:
            found[-1][1].append(Claim(line[2:].strip(), labels[line[:2]], path.stem[0]))
        elif found and not found[-1][1]:
            found[-1][0][-1] += "\n" + line.strip()
        else:
            raise ValueError(f"{path.name}: expected 'P:', '+ ', '- ' or '? ', found {line!r}")
    if found and not found[-1][1]:
        raise ValueError(f"{path.name}: expected claims after the last passage, found none")
    return [(tuple(passages), tuple(claims)) for passages, claims in found]


def is_held_out(group: ContrastGroup) -> bool:
    """Return True for one context in twelve, and for its twins."""
    return int(sha256((group.group or group.passages[0]).encode()).hexdigest(), 16) % 12 == 0


def source_of(group: ContrastGroup) -> str:
    """Return the source that a written group counts for, by the letter of its file."""
    letter = group.claims[0].kind
    return "matched" if letter in MATCHED else "answers" if letter in ANSWERS else "written"
