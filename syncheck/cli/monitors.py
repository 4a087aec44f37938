"""Models, monitor and passages that the options name; ``syncheck convert-aligner``."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import syncheck
from syncheck import aligners, signals
from syncheck.base.errors import InputError, MismatchError
from syncheck.cli.options import Options, aligner_options
from syncheck.config import DEFAULT_SCHEMA, GENERIC, GENERIC_BUNDLED, GENERIC_READER, MonitorConfig
from syncheck.features.schemas import needs_lid, needs_signals
from syncheck.text.sentences import ENGLISH_ABBREVIATIONS
from syncheck.text.sentences.boundaries import SegmenterConfig

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from syncheck.kit import KitPurpose

Scorer: TypeAlias = "syncheck.Monitor | syncheck.Verifier"
_ALIGNERS: dict[str, str | None] = {GENERIC: None, GENERIC_BUNDLED: "bundled", GENERIC_READER: "reader"}
"""Aligners of the bundled monitors that read text alone, by their names for ``--monitor``; None for the best one."""


def convert_aligner_options(add: Options) -> None:
    """Add the options of ``convert-aligner``."""
    add("--aligner FILE", "an AlignScore .ckpt", required=True)
    add("--aligner-backbone DIR_OR_ID")
    add("--output DIR", "folder to pass to --aligner afterwards", required=True)


def read_passages(name: str, *, option: str) -> list[str]:
    """Read the paragraphs of a UTF-8 file, with runs of white space as one space; ``option`` is for the message."""
    try:
        text = Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {option} {name!r} as UTF-8 text: {error}") from error
    passages = [" ".join(block.split()) for block in text.split("\n\n") if block.strip()]
    if not passages:
        raise InputError(f"{option} {name!r} holds no text; its paragraphs become the passages")
    return passages


def check_device(name: str) -> None:
    """Refuse ``cuda``, with an InputError, if torch finds no such device."""
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"--device cuda: torch {torch.__version__} finds no CUDA device; install a driver and a torch version "
            "that go together, or pass --device cpu"
        )


def scoring_monitor(args: argparse.Namespace, purpose: KitPurpose) -> Scorer:
    """Load what scores for ``score``, ``label``, ``generate`` and the servers.

    It is the monitor or verifier named by ``--monitor``, or the kit's. For another model, it reads text as ``generic``
    does, or with ``--aligner`` by this aligner alone.
    """
    alone = _features_asked(args) and args.aligner != "none"
    alone &= all(getattr(args, name, None) is None for name in ("lid_reference", "schema"))
    scorer: Scorer
    if args.monitor is not None or (args.model is None and not alone):
        scorer = _trained(args, purpose)
    elif _features_asked(args) and not alone:
        scorer = monitor_to_measure(args)
    elif args.model is None and purpose == GENERIC:
        scorer = syncheck.Verifier(aligner_for(args))
    else:
        model, tokenizer = models_of(args)
        scorer = syncheck.Monitor(model, tokenizer, aligner=aligner_for(args) if alone else None)
    if sentences := sentence_options(args):
        config = replace(scorer.config, segmenter=replace(scorer.config.segmenter, **sentences))
        scorer = scorer.replaced(config=config)
    if (effort := getattr(args, "effort", None)) is not None:
        scorer = scorer.with_effort(effort)
    prior = getattr(args, "prior", None)
    return scorer if prior is None else scorer.with_prior(prior)


def monitor_with_model(args: argparse.Namespace, purpose: KitPurpose) -> syncheck.Monitor:
    """Load the monitor of a command that runs its language model; otherwise as :func:`scoring_monitor`."""
    scorer = scoring_monitor(args, purpose)
    if isinstance(scorer, syncheck.Verifier):
        model, tokenizer = models_of(args)
        return syncheck.Monitor(
            model,
            tokenizer,
            config=scorer.config,
            aggregator=scorer.aggregator,
            aligner=scorer.aligner,
            trained_on=scorer.trained_on,
            name=scorer.name,
        )
    return scorer


def models_of(args: argparse.Namespace) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load the language model that ``--model`` names, or the kit's, and its tokenizer."""
    from syncheck.base.pretrained import load_model
    from syncheck.kit_model import kit_language_model

    return kit_language_model(args.device) if args.model is None else load_model(args.model, args.device)


def monitor_to_measure(args: argparse.Namespace) -> Scorer:
    """Load what measures features: a monitor or verifier without an aggregator, or the one in ``--monitor``."""
    if getattr(args, "monitor", None) is not None:
        return _trained(args, "generic")
    schema = getattr(args, "schema", None) or DEFAULT_SCHEMA
    segmenter = SegmenterConfig(**sentence_options(args))
    if args.model is None and not needs_signals(schema):
        return syncheck.Verifier(aligner_for(args), config=MonitorConfig(schema=schema, segmenter=segmenter))
    model, tokenizer = models_of(args)
    reference: str | None = getattr(args, "lid_reference", None)
    lid_references = None if reference is None else signals.LidReferences.load(Path(reference), device=args.device)
    layers = tuple(lid_references.layers) if lid_references and needs_lid(schema) else None
    config = MonitorConfig(schema=schema, layers=layers, segmenter=segmenter)
    return syncheck.Monitor(model, tokenizer, config=config, lid_references=lid_references, aligner=aligner_for(args))


def _trained(args: argparse.Namespace, purpose: KitPurpose) -> Scorer:
    from syncheck import checkpoint

    named = args.monitor in _ALIGNERS
    if named and args.aligner is not None:
        raise InputError(
            f"--monitor {args.monitor} has its own aligner; leave out --aligner, or keep it and leave out --monitor"
        )
    if _features_asked(args) or (sentence_options(args) and not (named or (args.monitor or purpose) == GENERIC)):
        known = f"--monitor {args.monitor}" if args.monitor else f"the bundled monitor {purpose!r}"
        raise InputError(
            f"{known} keeps what it was trained with, so --aligner, --schema and --lid-reference cannot be used with "
            f"it, and options for sentences only with --monitor {GENERIC}; leave them out, or pass another --model "
            "without --monitor"
        )
    if named and Path(args.monitor).exists():
        raise InputError(
            f"--monitor {args.monitor} is a bundled monitor, but there is also a {args.monitor!r} here; write "
            f"./{args.monitor} for that one"
        )
    if not (named or args.monitor is None or Path(args.monitor).exists() or checkpoint.is_repository(args.monitor)):
        raise InputError(
            f"--monitor {args.monitor!r}: there is no such folder; pass a folder that `syncheck train` wrote, a "
            f"repository as 'owner/name', or {', '.join(map(repr, _ALIGNERS))}"
        )
    if args.model is None and (named or args.monitor is None):
        chosen: Scorer = syncheck.load_kit(cast("Any", args.monitor or purpose), device=args.device)
        return chosen
    if args.model is None and not needs_signals(checkpoint.read(checkpoint.fetched(args.monitor)).config.schema):
        return syncheck.Verifier.from_pretrained(args.monitor, device=args.device)
    model, tokenizer = models_of(args)
    if named:
        aligner = _ALIGNERS[args.monitor]
        own = None if aligner is None else aligners.load_aligner(aligner, device=args.device)
        return syncheck.Monitor(model, tokenizer, aligner=own)
    try:
        return syncheck.Monitor.from_pretrained(args.monitor, model=model, tokenizer=tokenizer)
    except MismatchError as error:
        if args.model is not None:
            raise
        message = f"{error}. Without --model, the kit's model was loaded; pass the --model it was trained for"
        raise MismatchError(message) from error


def _features_asked(args: argparse.Namespace) -> bool:
    asked = (args.aligner, getattr(args, "lid_reference", None), getattr(args, "schema", None))
    return any(option is not None for option in (*asked, *aligner_options(args).values()))


def aligner_for(args: argparse.Namespace) -> aligners.Aligner | None:
    """Load the aligner that ``--aligner`` and its options name; that of ``generic`` without. Says what ``auto`` is."""
    from syncheck.aligners.loading import AUTO
    from syncheck.checkpoint import generic_aligner

    if args.aligner is None and all(value is None for value in aligner_options(args).values()):
        return generic_aligner(args.device)
    aligner = aligners.load_aligner(args.aligner or "bundled", **aligner_options(args), device=args.device)
    if args.aligner == AUTO and aligner is not None:
        sys.stderr.write(f"aligner {AUTO!r} is {aligner.name!r}\n")
    return aligner


def sentence_options(args: argparse.Namespace) -> dict[str, Any]:
    """Collect the options for sentences that are given, as keywords of :class:`SegmenterConfig`."""
    options: dict[str, Any] = {
        "abbreviations": {"english": ENGLISH_ABBREVIATIONS, "none": (), None: None}[args.abbreviations],
        "line_breaks": args.line_breaks,
        "cjk_stops": args.cjk_stops or None,
        "clauses": args.clauses or None,
        "sentences": args.sentences_together,
    }
    return {name: value for name, value in options.items() if value is not None}


def convert_aligner(args: argparse.Namespace) -> int:
    """Convert a published AlignScore checkpoint to a folder without pickle; returns the exit code."""
    aligners.convert_alignscore(args.aligner, args.output, backbone=args.aligner_backbone)
    sys.stderr.write(f"converted; pass --aligner {args.output}\n")
    return 0
