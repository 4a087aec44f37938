"""Options of ``syncheck spans`` and ``syncheck spans-score``."""

from __future__ import annotations

import argparse

from syncheck.cli.options import add_options, share

SPAN_METHODS = ("mikani", "refind", "hallurag", "classifier", "fava", "mark-all", "mark-none")


def add_spans(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``syncheck spans``."""
    add_options(
        parser,
        """
        --method = mikani  method that marks the spans (%(default)s)
        --input PATH = -  Mu-SHROOM JSON Lines or a folder, or - for standard input
        --output PATH = -  JSON Lines file, or a folder if the input is one
        --device cpu|cuda = cpu
        --span-model DIR = bundled  for mikani: 'bundled', 'bundled-rarity' or a folder
        --model DIR_OR_ID  for refind and hallurag, a causal language model (bundled); for classifier and fava, the
            checkpoint
        --threshold DELTA  for refind: mark tokens with a context sensitivity ratio of at least DELTA
        --fit-thresholds PATH  for refind: choose the thresholds on these labelled items
        --form replay|mixed = replay  for refind: take the log-probabilities without the passages from the replaying
            model (replay) or from the model that wrote the response (mixed) (%(default)s)
        --encoder DIR_OR_ID  for hallurag: a sentence encoder (letter trigrams)
        --too-long leave-out|refuse = leave-out  for methods that replay answers, if texts exceed the model's window:
            leave out the retrieved texts that do not fit and list them in the output, or refuse the record
            (%(default)s)
        --html FILE  also write an HTML page that shows the answers with their spans
        """,
        method={"choices": SPAN_METHODS},
        threshold={"type": float},
    )
    add_word_sources(parser)
    add_asked(parser)
    _add_retrieval(parser)


def add_word_sources(parser: argparse.ArgumentParser) -> None:
    """Add the options of word sources other than texts and the signals of a language model."""
    add_options(
        parser.add_argument_group("word sources", "for a span model of mikani that was trained with them"),
        """
        --classifier DIR_OR_ID  token classifier whose risks are used
        --wrong-class N = 1  index of the classifier's class that means wrong, also for --method classifier
            (%(default)s)
        --tagger NAME...  part-of-speech tagger: nltk, or a spaCy pipeline per language, such as en=en_core_web_sm
            de=de_core_news_sm
        """,
        wrong_class={"type": int},
    )


def add_asked(parser: argparse.ArgumentParser) -> None:
    """Add the options of the instruct model."""
    asked = "for hallurag (lists spans), fava (edits) and a span model of mikani that was trained with it"
    add_options(
        parser.add_argument_group("an instruct model", asked),
        """
        --llm/--asked DIR_OR_ID  Hugging Face model
        --endpoint URL  URL of an OpenAI-compatible server, up to /v1
        --endpoint-model NAME  name of the model on the server
        --api-key-variable VARIABLE  environment variable that holds the server's API key
        """,
    )


def _add_retrieval(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser.add_argument_group("retrieval", "for records without retrieved texts; needs the extra 'retrieval'"),
        """
        --passages PATH  texts to retrieve from: a text file (one per paragraph), JSON Lines with 'text', or a folder
            of such files
        --reranker DIR_OR_ID  encoder that ranks the results of BM25, or 'none' (multilingual-e5-large if it is in the
            local cache)
        --reranker-prefix TEXT  prefix of each text, such as 'query: ' for E5
        """,
        reranker_prefix={"default": ""},
    )


def add_spans_score(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``syncheck spans-score``."""
    add_options(
        parser,
        """
        --reference PATH  labelled JSON Lines, or a folder of them
        --predictions PATH  predicted labels, a file or folder
        --refused error|nothing = error  treat a refused item as an error, or as one in which nothing was marked
            (%(default)s)
        --languages CODE...  languages to score (all in the reference)
        --draws N = 1000  number of bootstrap resamples (%(default)s)
        --seed SEED = 0
        --output FILE  also write the table as JSON
        --fail-under IOU  exit with 1 if the mean IoU is below IOU (0 to 1)
        --html FILE  also write an HTML page with the predicted spans above the annotators'
        """,
        **dict.fromkeys(("reference", "predictions"), {"required": True}),
        fail_under={"type": share},
    )
