"""Options of ``syncheck spans`` and ``syncheck spans-score``."""

from __future__ import annotations

import argparse

from syncheck.cli.options import count, share

__all__ = ["SPAN_METHODS", "add_asked", "add_opening", "add_spans", "add_spans_score", "add_word_sources"]


SPAN_METHODS = ("mikani", "refind", "hallurag", "classifier", "fava", "mark-all", "mark-none")


def add_spans(parser: argparse.ArgumentParser) -> None:
    """Add what finding spans needs."""
    parser.add_argument("--method", choices=SPAN_METHODS, default="mikani", help="how (%(default)s)")
    parser.add_argument("--input", default="-", metavar="PATH", help="Mu-SHROOM JSON Lines, or a folder; - for stdin")
    parser.add_argument("--output", default="-", metavar="PATH", help="JSON Lines, a folder if the input is one")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument(
        "--span-model", metavar="DIR", default="bundled", help="of mikani: 'bundled', 'bundled-rarity' or a folder"
    )
    parser.add_argument(
        "--model",
        metavar="DIR_OR_ID",
        help="of refind and hallurag, a causal language model (bundled); of classifier and fava, the checkpoint",
    )
    parser.add_argument("--threshold", type=float, metavar="DELTA", help="of refind: mark tokens of a CSR of at least")
    parser.add_argument("--fit-thresholds", metavar="PATH", help="of refind: choose them on these labelled items")
    parser.add_argument("--form", choices=("replay", "mixed"), default="replay", help="of refind (%(default)s)")
    parser.add_argument(
        "--encoder", metavar="DIR_OR_ID", help="of hallurag: a sentence encoder; letter trigrams without"
    )
    parser.add_argument(
        "--too-long",
        choices=("leave-out", "refuse"),
        default="leave-out",
        help="of methods that replay: retrieved texts that do not fit the model's window are left out, which the "
        "output says, or the record is refused (%(default)s)",
    )
    parser.add_argument("--html", metavar="FILE", help="also draw the answers with their spans, as one page")
    add_word_sources(parser)
    add_asked(parser)
    _add_retrieval(parser)


def add_opening(parser: argparse.ArgumentParser) -> None:
    """Add what opens sentence scores to characters."""
    parser.add_argument(
        "--spans",
        nargs="?",
        const="bundled",
        metavar="DIR",
        help="also find the wrong characters: 'bundled' (without a name), 'bundled-rarity' or a folder of a span model",
    )
    parser.add_argument("--html", metavar="FILE", help="also draw the report, with --spans opened to characters")


def add_word_sources(parser: argparse.ArgumentParser) -> None:
    """Add what word risks may read beside texts and the signals of a language model."""
    group = parser.add_argument_group("word sources", "of a span model of mikani that was trained with them")
    group.add_argument("--classifier", metavar="DIR_OR_ID", help="a token classifier, whose risks are read")
    group.add_argument(
        "--wrong-class", type=int, default=1, metavar="N", help="of the classifier, as a method too (%(default)s)"
    )
    group.add_argument(
        "--tagger",
        nargs="+",
        metavar="NAME",
        help="parts of speech: nltk, or spaCy's pipelines by language, such as en=en_core_web_sm de=de_core_news_sm",
    )


def add_asked(parser: argparse.ArgumentParser) -> None:
    """Add the instruct model that is asked."""
    asked = "that hallurag asks for spans, fava for an edit, and a span model of mikani that was trained with it"
    group = parser.add_argument_group("an instruct model", asked)
    group.add_argument("--llm", "--asked", metavar="DIR_OR_ID", help="a Hugging Face model")
    group.add_argument("--endpoint", metavar="URL", help="one behind an interface like OpenAI's, up to /v1")
    group.add_argument("--endpoint-model", metavar="NAME", help="the endpoint's name of it")
    group.add_argument("--api-key-variable", metavar="VARIABLE", help="environment variable with the endpoint's key")


def _add_retrieval(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("retrieval", "for records without retrieved texts; needs the extra 'retrieval'")
    group.add_argument(
        "--passages",
        metavar="PATH",
        help="paragraphs of a text file, JSON Lines with 'text', or a folder of such files",
    )
    group.add_argument(
        "--reranker",
        metavar="DIR_OR_ID",
        help="an encoder that orders what BM25 finds, or 'none' (multilingual-e5-large where it is in the local cache)",
    )
    group.add_argument("--reranker-prefix", default="", metavar="TEXT", help="put before each text: 'query: ' for E5")


def add_spans_score(parser: argparse.ArgumentParser) -> None:
    """Add what scoring predicted spans needs."""
    parser.add_argument("--reference", required=True, metavar="PATH", help="labelled JSON Lines, or a folder of them")
    parser.add_argument("--predictions", required=True, metavar="PATH", help="predicted labels, file or folder")
    parser.add_argument(
        "--refused",
        choices=("error", "nothing"),
        default="error",
        help="items that the predictions have an error for: an error, or scored as if nothing was found (%(default)s)",
    )
    parser.add_argument("--languages", nargs="+", metavar="CODE", help="that count; all of the reference without it")
    parser.add_argument("--draws", type=count, default=1000, metavar="N", help="bootstrap resamples (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", metavar="FILE", help="the table as JSON")
    parser.add_argument("--fail-under", type=share, metavar="IOU", help="exit 1 if the mean IoU is below, 0 to 1")
    parser.add_argument("--html", metavar="FILE", help="also draw the answers, predicted spans above the annotators'")
