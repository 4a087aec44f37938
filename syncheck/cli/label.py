"""``syncheck label``: labels of sentences from the keyboard or from an offline page, and two readers' labels joined."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import TextIO

from syncheck import labelling
from syncheck.base.errors import InputError
from syncheck.base.printable import aligned, counted, printable
from syncheck.cli.monitors import refuse_idle, scoring_monitor
from syncheck.cli.options import Options, add_model, check_file, say
from syncheck.labelling.responses import NO_CLAIM, Label
from syncheck.reading.tags import quotation
from syncheck.report.html import render_label_page
from syncheck.report.labels import decimal

KEYS: dict[str, Label] = {"s": True, "n": False, "c": NO_CLAIM}
"""Labels by key: supported, not supported, claims nothing."""
_HELP = "[s]upported  [n]ot  [m]ark words  no [c]laim  s[k]ip  [u]ndo  all [p]assages  [q]uit"
_SIDE_BY_SIDE = 90
"""Width in columns from which the evidence is shown next to the answer."""
_GAP = 3


def label_options(add: Options) -> None:
    """Add the options of ``label``."""
    add(
        "input INPUT",
        "JSON Lines with question, context and response, or with --records what `syncheck generate` wrote",
    )
    add("--records FILE", "the records that were answered, from which answers take question and passages, by id")
    add("--output FILE", "labelled JSON Lines; if it exists, its labels are kept and labelling continues")
    add("--html FILE", "instead of asking in the terminal, write an offline page that asks and saves labels.jsonl")
    add("--labels FILE", "for --html: earlier labels, with which the page starts")
    add(
        "--second FILE",
        "instead of asking, join the labels in INPUT with those of a second reader in this file, and print how far "
        "they agree; both labels of a sentence about which they disagree are in --output, and do not count",
    )
    add("--count N = 50", "largest number of labels")
    add(
        "--order nearest|random = nearest",
        "nearest: sentences with scores closest to the threshold first, for `calibrate --method shift --risk "
        "none`; random: whole answers in random order, for a threshold with a guarantee",
    )
    add(
        "--responses N = 200",
        "number of responses drawn at random from INPUT; with --order nearest, all of them are in the output",
    )
    add("--seed SEED = 0", "seed of the random draw")
    add_model(add)


def label(args: argparse.Namespace) -> int:
    """Ask for labels, the most informative sentences first, or write the page that asks; returns the exit code."""
    if (args.output is None) == (args.html is None):
        raise InputError("pass either --output, to label here, or --html, for a page to label on")
    check_file("--output", args.output)
    check_file("--labels", args.labels)
    if args.second is not None:
        return _join(args)
    if args.labels is not None and args.html is None:
        raise InputError("--labels needs --html; without it, the labels that --output already holds are kept")
    before = args.labels if args.html is not None else args.output
    kept = labelling.load_jsonl(before) if before is not None and Path(before).exists() else []
    sheet = labelling.LabelSheet.of_responses(
        scoring_monitor(args, "generic"),
        labelling.load_unlabelled(args.input, asked=args.records),
        order=args.order,
        kept=kept,
        most=args.responses,
        seed=args.seed,
    )
    for name, reason in sheet.left_out.items():
        sys.stderr.write(f"{args.input}: {printable(name)}: left out: {printable(reason)}\n")
    if args.html is not None:
        Path(args.html).write_text(_page(sheet, args), encoding="utf-8")
        sys.stderr.write(f"{args.html}: {counted(min(len(sheet.open), args.count), 'sentence')} to label\n")
        return 0
    known = sheet.labelled()
    with _keys(sys.stdin) as (read, read_line):
        _ask(sheet, args.output, read, read_line, most=args.count)
    new = counted(sheet.labelled() - known, "new label")
    sys.stderr.write(f"{args.output}: {new}, {sheet.labelled()} in all\n")
    return 0


def _join(args: argparse.Namespace) -> int:
    """Write the labels of two readers, and print how far they agree."""
    given = [name for name in "html labels records model monitor aligner".split() if getattr(args, name) is not None]
    refuse_idle(given, "--second asks and scores nothing")
    if Path(args.output).exists():
        raise InputError(f"{args.output} exists, and its labels would be lost; pass another --output")
    first, second = labelling.load_jsonl(args.input), labelling.load_jsonl(args.second)
    joined, agreements = labelling.second_reading(first, second)
    labelling.LabelSheet(joined, (), "nearest").save(args.output)
    rows = [["label", "first", "second", "both", "agreement", "kappa"]]
    for row in agreements:
        rows.append([row.name, *map(str, (row.first, row.second, row.both)), decimal(row.share), decimal(row.kappa)])
    sys.stdout.write("\n".join([*aligned(rows), ""]))
    read, agreed = agreements[-1].first, agreements[-1].both
    alone = sum(s.label is not None for r in (*first, *second) for s in r.sentences or ()) - 2 * read
    sys.stderr.write(
        f"{args.output}: {counted(read, 'sentence')} read twice, {counted(read - agreed, 'disagreement')}, which no "
        "training uses\n"
    )
    if alone:
        sys.stderr.write(f"{counted(alone, 'sentence')} labelled by one reader alone: without a label\n")
    return 0


def _ask(
    sheet: labelling.LabelSheet, output: str, read: Callable[[], str], read_line: Callable[[], str], *, most: int
) -> None:
    """Ask until ``most`` more labels are given, no sentence is left, or the user quits."""
    labelled: list[bool] = []  # of the sentences asked so far, whether they got a label
    while len(labelled) < len(sheet.open) and sum(labelled) < most:
        asked = sheet.open[len(labelled)]
        last = min(most, sum(labelled) + len(sheet.open) - len(labelled))
        say(_shown(sheet, asked, of=f"{sum(labelled) + 1} of {last}"))
        words: list[str] = []
        while (key := read()) in ("p", "m", "?"):
            if key == "p":
                say(f"{printable(chr(10).join(sheet.responses[asked.response].passages))}\n")
            elif key == "m":
                say("words that are not supported: ")
                say(_marked(sheet, asked, words, read_line().strip()))
            say(f"{_HELP} ")
        if key in KEYS:
            sheet.label(asked, KEYS[key], words if key == "n" else ())
            sheet.save(output)
            labelled.append(True)
        elif key == "k":
            labelled.append(False)
        elif key == "u" and labelled:
            if labelled.pop():
                sheet.label(sheet.open[len(labelled)], None)
                sheet.save(output)
        elif key in ("q", ""):
            return


def _marked(sheet: labelling.LabelSheet, asked: labelling.OpenSentence, words: list[str], typed: str) -> str:
    """Add words that are not supported to ``words``, and say which are marked."""
    try:
        sheet.find(asked, typed)
    except InputError as error:
        return f"{printable(str(error))}\n"
    words.append(typed)
    return f"marked, for [n]ot: {printable(', '.join(map(repr, words)))}\n"


def _shown(sheet: labelling.LabelSheet, asked: labelling.OpenSentence, *, of: str) -> str:
    """Draw a sentence in its answer, with the evidence next to it; the score, which would bias, is not shown."""
    width = min(shutil.get_terminal_size().columns, 140)
    before, text, after = map(printable, sheet.text(asked))
    found, evidence = asked.evidence, "no evidence found"
    if found is not None:
        evidence = f"passage {found.passage + 1}: {printable(quotation(found.text))}"
    lines = ["", f"-- {of} --", *textwrap.wrap(printable(sheet.responses[asked.response].question), width), ""]
    column = (width - _GAP) // 2 if width >= _SIDE_BY_SIDE else width
    left = textwrap.wrap(" ".join(f"{before} >> {text} << {after}".split()), column)
    right = textwrap.wrap(" ".join(evidence.split()), column)
    if width >= _SIDE_BY_SIDE:
        lines += [f"{a:<{column}}{' ' * _GAP}{b}".rstrip() for a, b in zip_longest(left, right, fillvalue="")]
    else:
        lines += [*left, "", *right]
    return "\n".join([*lines, "", f"{_HELP} "])


@contextmanager
def _keys(source: TextIO) -> Iterator[tuple[Callable[[], str], Callable[[], str]]]:
    """Yield readers of the next key, at once from a terminal, otherwise a line, and of a line; "" at the end."""
    if not source.isatty():
        yield lambda: next((line.strip().lower() for line in source if line.strip()), ""), source.readline
        return
    import termios
    import tty

    handle = source.fileno()
    before = termios.tcgetattr(handle)
    tty.setcbreak(handle)  # Ctrl-C still interrupts

    def read() -> str:
        sys.stdout.flush()
        key = source.read(1).lower()
        sys.stdout.write(f"{printable(key)}\n")
        return "" if key == "\x04" else key

    def read_line() -> str:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)
        line = source.readline()
        tty.setcbreak(handle)
        return line

    try:
        yield read, read_line
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


def _page(sheet: labelling.LabelSheet, args: argparse.Namespace) -> str:
    everything, asked = sheet.whole_records(), []
    for place in sheet.open[: args.count]:
        texts = dict(zip(("before", "text", "after"), sheet.text(place), strict=True))
        evidence = None if place.evidence is None else quotation(place.evidence.text)
        asked.append({"response": place.response, "sentence": place.sentence, **texts, "evidence": evidence})
    key = hashlib.sha256(json.dumps([everything, asked], sort_keys=True).encode()).hexdigest()[:16]
    data = {"records": everything, "open": asked, "whole": args.order == "nearest", "key": key}
    return render_label_page(data, name="labels.jsonl", title="Label sentences")
