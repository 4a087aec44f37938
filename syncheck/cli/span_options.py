"""Options of ``syncheck spans`` and ``syncheck spans-score``."""

from __future__ import annotations

import argparse

from syncheck.cli.options import count, share

SPAN_METHODS = ("mikani", "refind", "hallurag", "classifier", "fava", "mark-all", "mark-none")


def add_spans(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``syncheck spans``."""
    add = parser.add_argument
    add("--method", choices=SPAN_METHODS, default="mikani", help="method that marks the spans (%(default)s)")
    add("--input", default="-", metavar="PATH", help="Mu-SHROOM JSON Lines or a folder, or - for standard input")
    add("--output", default="-", metavar="PATH", help="JSON Lines file, or a folder if the input is one")
    add("--device", default="cpu", choices=("cpu", "cuda"))
    add("--span-model", metavar="DIR", default="bundled", help="for mikani: 'bundled', 'bundled-rarity' or a folder")
    add(
        "--model",
        metavar="DIR_OR_ID",
        help="for refind and hallurag, a causal language model (bundled); for classifier and fava, the checkpoint",
    )
    add(
        "--threshold",
        type=float,
        metavar="DELTA",
        help="for refind: mark tokens with a context sensitivity ratio of at least DELTA",
    )
    add("--fit-thresholds", metavar="PATH", help="for refind: choose the thresholds on these labelled items")
    add(
        "--form",
        choices=("replay", "mixed"),
        default="replay",
        help="for refind: take the log-probabilities without the passages from the replaying model (replay) or from "
        "the model that wrote the response (mixed) (%(default)s)",
    )
    add("--encoder", metavar="DIR_OR_ID", help="for hallurag: a sentence encoder (letter trigrams)")
    add(
        "--too-long",
        choices=("leave-out", "refuse"),
        default="leave-out",
        help="for methods that replay answers, if texts exceed the model's window: leave out the retrieved texts that "
        "do not fit and list them in the output, or refuse the record (%(default)s)",
    )
    add("--html", metavar="FILE", help="also write an HTML page that shows the answers with their spans")
    add_word_sources(parser)
    add_asked(parser)
    _add_retrieval(parser)


def add_word_sources(parser: argparse.ArgumentParser) -> None:
    """Add the options of word sources other than texts and the signals of a language model."""
    add = parser.add_argument_group(
        "word sources", "for a span model of mikani that was trained with them"
    ).add_argument
    add("--classifier", metavar="DIR_OR_ID", help="token classifier whose risks are used")
    add(
        "--wrong-class",
        type=int,
        default=1,
        metavar="N",
        help="index of the classifier's class that means wrong, also for --method classifier (%(default)s)",
    )
    add(
        "--tagger",
        nargs="+",
        metavar="NAME",
        help="part-of-speech tagger: nltk, or a spaCy pipeline per language, such as en=en_core_web_sm "
        "de=de_core_news_sm",
    )


def add_asked(parser: argparse.ArgumentParser) -> None:
    """Add the options of the instruct model."""
    asked = "for hallurag (lists spans), fava (edits) and a span model of mikani that was trained with it"
    add = parser.add_argument_group("an instruct model", asked).add_argument
    add("--llm", "--asked", metavar="DIR_OR_ID", help="Hugging Face model")
    add("--endpoint", metavar="URL", help="URL of an OpenAI-compatible server, up to /v1")
    add("--endpoint-model", metavar="NAME", help="name of the model on the server")
    add("--api-key-variable", metavar="VARIABLE", help="environment variable that holds the server's API key")


def _add_retrieval(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group(
        "retrieval", "for records without retrieved texts; needs the extra 'retrieval'"
    ).add_argument
    add(
        "--passages",
        metavar="PATH",
        help="texts to retrieve from: a text file (one per paragraph), JSON Lines with 'text', or a folder of such "
        "files",
    )
    add(
        "--reranker",
        metavar="DIR_OR_ID",
        help="encoder that ranks the results of BM25, or 'none' (multilingual-e5-large if it is in the local cache)",
    )
    add("--reranker-prefix", default="", metavar="TEXT", help="prefix of each text, such as 'query: ' for E5")


def add_spans_score(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``syncheck spans-score``."""
    add = parser.add_argument
    add("--reference", required=True, metavar="PATH", help="labelled JSON Lines, or a folder of them")
    add("--predictions", required=True, metavar="PATH", help="predicted labels, a file or folder")
    add(
        "--refused",
        choices=("error", "nothing"),
        default="error",
        help="treat a refused item as an error, or as one in which nothing was marked (%(default)s)",
    )
    add("--languages", nargs="+", metavar="CODE", help="languages to score (all in the reference)")
    add("--draws", type=count, default=1000, metavar="N", help="number of bootstrap resamples (%(default)s)")
    add("--seed", type=int, default=0)
    add("--output", metavar="FILE", help="also write the table as JSON")
    add("--fail-under", type=share, metavar="IOU", help="exit with 1 if the mean IoU is below IOU (0 to 1)")
    add("--html", metavar="FILE", help="also write an HTML page with the predicted spans above the annotators'")
