"""``syncheck label``: an offline page that asks for labels of sentences, and two readers' labels joined."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

from syncheck import labelling
from syncheck.base.errors import InputError
from syncheck.base.files import replaced
from syncheck.base.printable import aligned, counted, printable
from syncheck.cli.monitors import refuse_idle, scoring_monitor
from syncheck.cli.options import Options, add_model, check_file
from syncheck.labelling.datasets import labelled_record
from syncheck.reading.tags import quotation
from syncheck.report.html import render_label_page
from syncheck.report.labels import decimal

PAGE = "label.html"


def label_options(add: Options) -> None:
    """Add the options of ``label``."""
    add(
        "input INPUT",
        "JSON Lines with question, context and response, or with --records what `syncheck generate` wrote",
    )
    add("--records FILE", "the records that were answered, from which answers take question and passages, by id")
    add(f"--html FILE = {PAGE}", "the offline page that asks, and saves labels.jsonl")
    add("--labels FILE", "earlier labels, with which the page starts")
    add(
        "--second FILE",
        "instead of asking, join the labels in INPUT with those of a second reader in this file, and print how far "
        "they agree; both labels of a sentence about which they disagree are in --output, and do not count",
    )
    add("--output FILE", "with --second: the joined labels, as JSON Lines")
    add("--count N = 50", "largest number of labels")
    add(
        "--order nearest|random = nearest",
        "nearest: sentences with scores closest to the threshold first, for `calibrate --method shift --risk "
        "none`; random: whole answers in random order, for a threshold with a guarantee",
    )
    add(
        "--responses N = 200",
        "number of responses drawn at random from INPUT; with --order nearest, all of them are in labels.jsonl",
    )
    add("--seed SEED = 0", "seed of the random draw")
    add_model(add)


def label(args: argparse.Namespace) -> int:
    """Write the page that asks for labels, the most informative sentences first; returns the exit code."""
    check_file("--output", args.output)
    check_file("--labels", args.labels)
    if args.second is not None:
        return _join(args)
    if args.output is not None:
        refuse_idle(["output"], f"the page, {args.html}, saves the labels")
    kept = labelling.load_jsonl(args.labels) if args.labels is not None and Path(args.labels).exists() else []
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
    Path(args.html).write_text(_page(sheet, args), encoding="utf-8")
    sys.stderr.write(f"{args.html}: {counted(min(len(sheet.open), args.count), 'sentence')} to label\n")
    return 0


def _join(args: argparse.Namespace) -> int:
    """Write the labels of two readers, and print how far they agree."""
    given = [n for n in "html labels records model monitor aligner".split() if getattr(args, n) not in (None, PAGE)]
    refuse_idle(given, "--second asks and scores nothing")
    if args.output is None:
        raise InputError("--second needs --output FILE, for the joined labels")
    if Path(args.output).exists():
        raise InputError(f"{args.output} exists, and its labels would be lost; pass another --output")
    first, second = labelling.load_jsonl(args.input), labelling.load_jsonl(args.second)
    joined, agreements = labelling.second_reading(first, second)
    with replaced(Path(args.output)) as (file, _):
        for response in joined:
            file.write(f"{json.dumps(labelled_record(response), ensure_ascii=False)}\n".encode())
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


def _page(sheet: labelling.LabelSheet, args: argparse.Namespace) -> str:
    everything, asked = sheet.records(), []
    for place in sheet.open[: args.count]:
        texts = dict(zip(("before", "text", "after"), sheet.text(place), strict=True))
        evidence = None if place.evidence is None else quotation(place.evidence.text)
        asked.append({"response": place.response, "sentence": place.sentence, **texts, "evidence": evidence})
    key = hashlib.sha256(json.dumps([everything, asked], sort_keys=True).encode()).hexdigest()[:16]
    data = {"records": everything, "open": asked, "whole": args.order == "nearest", "key": key}
    return render_label_page(data, name="labels.jsonl", title="Label sentences")
