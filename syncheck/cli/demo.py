"""``syncheck demo``: the bundled model answers questions, greedily and by FOD."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from syncheck.cli.monitors import read_passages
from syncheck.errors import InputError
from syncheck.kit import demo_questions, load_kit
from syncheck.report import Answer, Case, render_html, render_text, wants_colour

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Answer, print and write ``report.html``; returns the exit code."""
    from fod import FODGenerator

    questions = _questions(args)
    target = Path(args.report)
    if not target.parent.is_dir():
        raise InputError(f"--report {args.report!r}: the folder does not exist; make it first")
    monitor = load_kit("generation")
    generator = FODGenerator(monitor.model, monitor.tokenizer, monitor)
    cases = []
    for question, passages in questions:
        prompt = monitor.prompt(question=question, context=passages)
        greedy = monitor.generate(prompt, max_new_tokens=args.max_new_tokens, do_sample=False)
        found = generator.generate(
            prompt, seed=args.seed, return_dict_in_generate=True, max_new_tokens=args.max_new_tokens
        )
        answers = (Answer("greedy", greedy), Answer("FOD", found.report, dropped=found.dropped, trace=found.trace))
        cases.append(Case(question, prompt.passages, answers))
        sys.stdout.write(render_text(cases[-1:], colour=wants_colour(sys.stdout)) + "\n")
        sys.stdout.flush()
    target.write_text(render_html(cases, title="syncheck demo: greedy and faithfulness-oriented decoding"), "utf-8")
    sys.stdout.write(f"Report: {target.resolve()}\n")
    return 0


def _questions(args: argparse.Namespace) -> list[tuple[str, list[str]]]:
    if (args.question is None) != (args.context is None):
        raise InputError("--question and --context go together; pass both, or neither for the bundled questions")
    if args.question is None:
        return [(q.question, list(q.passages)) for q in demo_questions()]
    return [(args.question, read_passages(args.context, option="--context"))]
