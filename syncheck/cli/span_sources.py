"""What span commands have beside their detector: an instruct model to ask, a user's texts, what was not read."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from syncheck.alignment import EndpointTextGenerator, LocalTextGenerator, TextGenerator
from syncheck.cli.monitors import read_passages
from syncheck.errors import InputError
from syncheck.labelling.passages import load_passages
from syncheck.spans import (
    DEFAULT_RERANKER,
    AskedSource,
    CheckpointEncoder,
    ChunkRetriever,
    ClassifierSource,
    Measure,
    SignalSource,
    SpanItem,
    TagSource,
    TokenClassifierDetector,
    TokenReplay,
    WordSource,
    cached_reranker,
    nltk_tags,
    spacy_tagger,
)

__all__ = ["asked_model", "check_asked", "retrieved", "retriever_of", "unread", "word_sources"]


_ASKING = ("mikani", "hallurag", "fava")
_SUFFIXES = (".jsonl", ".md", ".txt")


def check_asked(args: argparse.Namespace) -> None:
    """Refuse options of an instruct model that name two, or half of one, or one that the method does not ask.

    Raises
    ------
    InputError
        If they do.
    """
    of_endpoint = [args.endpoint, args.endpoint_model, args.api_key_variable]
    if args.llm is None and not any(of_endpoint):
        return
    if args.method not in _ASKING:
        raise InputError(f"--method {args.method} asks no model; --llm and --endpoint are of {', '.join(_ASKING)}")
    if args.llm is not None and any(of_endpoint):
        raise InputError("--llm and --endpoint are two models to ask; pass one of them")
    if args.llm is None and not (args.endpoint and args.endpoint_model):
        raise InputError("an endpoint needs --endpoint URL and --endpoint-model NAME")
    if args.method == "fava" and args.model is not None:
        raise InputError("--model is the editor of fava, and so is --llm or --endpoint; pass one of them")


def asked_model(args: argparse.Namespace) -> TextGenerator | None:
    """Return the instruct model that ``--llm`` or ``--endpoint`` names, None without them.

    Raises
    ------
    InputError
        If the variable of the endpoint's key is not set.
    CheckpointError
        If the model cannot be loaded.
    """
    if args.endpoint is not None:
        return EndpointTextGenerator(args.endpoint, args.endpoint_model, api_key_variable=args.api_key_variable)
    return None if args.llm is None else LocalTextGenerator.load(args.llm, device=args.device)


def word_sources(args: argparse.Namespace, measure: Measure | None) -> tuple[WordSource, ...]:
    """Return what the options give of each word beside its texts: signals, a classifier, a tagger, a model's verdict.

    Raises
    ------
    CheckpointError
        If the classifier, a pipeline of spaCy or the instruct model cannot be loaded.
    MissingExtraError
        If spaCy is asked for and not installed.
    InputError
        If ``--tagger`` cannot be understood, or as :func:`asked_model`.
    """
    found: list[WordSource] = [] if measure is None else [SignalSource(measure)]
    if args.classifier is not None:
        classifier = TokenClassifierDetector(args.classifier, wrong=args.wrong_class, device=args.device)
        found.append(ClassifierSource(classifier))
    if args.tagger is not None:
        found.append(_tags(args.tagger))
    asked = asked_model(args)
    return (*found, *([] if asked is None else [AskedSource(asked)]))


def _tags(names: list[str]) -> TagSource:
    if names == ["nltk"]:
        return TagSource(nltk_tags, {"tagger": "nltk"})
    pairs = [name.partition("=") for name in names]
    if not all(lang and pipeline for lang, _, pipeline in pairs):
        raise InputError(f"--tagger expects nltk, or spaCy's pipelines as en=en_core_web_sm; found {' '.join(names)!r}")
    pipelines = {lang.lower(): pipeline for lang, _, pipeline in pairs}
    return TagSource(spacy_tagger(pipelines), {"tagger": "spacy", "pipelines": pipelines})


def retriever_of(args: argparse.Namespace) -> ChunkRetriever | None:
    """Return what searches the texts of ``--passages``, None without it.

    Raises
    ------
    InputError
        If there is no text, or ``--reranker`` comes without ``--passages``.
    CheckpointError
        If the reranker cannot be loaded.
    """
    if args.passages is None:
        if args.reranker is not None or args.reranker_prefix:
            raise InputError("--reranker orders what is found in --passages PATH; pass that too")
        return None
    if args.reranker in (None, "none") and args.reranker_prefix:
        raise InputError("--reranker-prefix is of --reranker DIR_OR_ID; pass that too")
    return ChunkRetriever(_texts(Path(args.passages)), encoder=_reranker(args))


def _reranker(args: argparse.Namespace) -> CheckpointEncoder | None:
    """Return the encoder that ``--reranker`` names, without it the default one where it is in the cache; say which."""
    if args.reranker == "none":
        return None
    if args.reranker is not None:
        return CheckpointEncoder(args.reranker, prefix=args.reranker_prefix, device=args.device)
    encoder = cached_reranker(device=args.device)
    if encoder is None:
        sys.stderr.write(f"texts in the order of BM25 alone: {DEFAULT_RERANKER} is not in the local cache\n")
    else:
        sys.stderr.write(f"texts ordered by {DEFAULT_RERANKER}, from the local cache; --reranker none: BM25 alone\n")
    return encoder


def retrieved(item: SpanItem, retriever: ChunkRetriever | None) -> SpanItem:
    """Return an item with texts for its question, where it has none; one that has some as it is."""
    if retriever is None or item.passages:
        return item
    return replace(item, passages=retriever.best(item.question))


def unread(item: SpanItem, replay: TokenReplay | None) -> dict[str, Any]:
    """Say what of an item a language model has not read, as fields of its record; nothing where it has read all."""
    if replay is None:
        return {}
    if not replay.fits(item):  # word risks and hallurag go on without it; refind has refused the item
        return {"signals": "not measured: the item does not fit the model's window"}
    left_out = replay.left_out(item)
    return {"left_out": list(left_out)} if left_out else {}


def _texts(place: Path) -> list[str]:
    """Read a file, or those of a folder and its folders by name: JSON Lines of passages, or paragraphs."""
    files = [place]
    if place.is_dir():
        files = sorted(file for file in place.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
        if not files:
            raise InputError(f"--passages {str(place)!r} holds no file that ends in {', '.join(_SUFFIXES)}")
    return [text for file in files for text in _texts_of(file)]


def _texts_of(file: Path) -> list[str]:
    if file.suffix == ".jsonl":
        return [str(passage) for passage in load_passages(file)]
    return read_passages(str(file), option="--passages")
