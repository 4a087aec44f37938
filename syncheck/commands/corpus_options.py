"""Options that say what is taken of labelled data, of every command that reads it."""

from __future__ import annotations

import argparse

__all__ = ["add_corpus", "add_labels"]


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Add those of :class:`~syncheck.training.Selection`, and whose prompts are measured."""
    group = parser.add_argument_group(
        "labelled data", "all of a file counts without these; of a RAGTruth folder, all answers to questions"
    )
    group.add_argument("--task", nargs="+", metavar="NAME", help="only these; RAGTruth has QA, Summary and Data2txt")
    group.add_argument("--split", metavar="NAME", help="only this one; RAGTruth has train and test")
    group.add_argument(
        "--quality",
        nargs="+",
        metavar="REMARK",
        help="only responses with one of these; RAGTruth has good, incorrect_refusal and truncated",
    )
    group.add_argument("--generator", nargs="+", metavar="NAME", help="only responses by these models")
    group.add_argument(
        "--implicit-true",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether spans count that are true of the world, though not said by the passages",
    )
    group.add_argument(
        "--due-to-null",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether spans count that take a null of a business record for a no",
    )
    group.add_argument(
        "--carry-labels",
        action="store_true",
        help="labelled sentences that are cut otherwise: what overlaps an unfaithful one is unfaithful (they are "
        "refused)",
    )
    group.add_argument(
        "--prompts",
        choices=("monitor", "task"),
        default="monitor",
        help="task: the paper's own, of RAGTruth and biographies (%(default)s: the monitor's template)",
    )
    group.add_argument(
        "--propositioner",
        metavar="NAME",
        help="cuts biographies that come without propositions: 'rules', or a checkpoint that writes them (none)",
    )
    group.add_argument(
        "--judge",
        metavar="NAME",
        help="judges propositions that come without a label: 'autoais:' and a checkpoint, as in the paper, or what "
        "--aligner takes (none)",
    )


def add_labels(parser: argparse.ArgumentParser) -> None:
    """Add the rule by which spans become labels, for commands that have no benchmark sets to choose from."""
    parser.add_argument(
        "--labels",
        choices=("overlap", "paper"),
        default="overlap",
        help="what makes a sentence unfaithful: any character of a span, or, as in the paper, a span that contains it "
        "or is contained by it (%(default)s)",
    )
