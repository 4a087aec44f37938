"""``syncheck generate``: answers by any of the decoders."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch

from syncheck.commands.monitors import monitor_for, prompt_for
from syncheck.commands.passages import read_passages
from syncheck.commands.score import sentence_dicts
from syncheck.errors import InputError, NotReadyError
from syncheck.jsonlines import process
from syncheck.monitor import Monitor
from syncheck.report import Report
from syncheck.types import SentenceScore

__all__ = ["run"]

Work = Callable[[dict[str, Any]], dict[str, Any]]
"""A record to its answer."""

_NEED_SCORES = frozenset(("fod", "fod-backtrack", "abstain"))


def run(args: argparse.Namespace) -> int:
    """Answer the questions of a file; returns the exit code."""
    monitor = monitor_for(args, "generation")
    if args.decoder in _NEED_SCORES and monitor.aggregator is None:
        raise NotReadyError(
            f"--decoder {args.decoder} needs a trained monitor; pass --monitor DIR, or leave --model out"
        )
    work = _plain(monitor, args) if args.decoder in ("greedy", "sample") else _by_fod(monitor, args)
    return 2 if process(args.input, args.output, work) else 0


def _plain(monitor: Monitor, args: argparse.Namespace) -> Work:
    sampling = {"do_sample": args.decoder == "sample"}
    if args.decoder == "sample":
        given = {"temperature": args.temperature, "top_p": args.top_p}
        sampling |= {name: 1.0 if value is None else value for name, value in given.items()}

    def work(record: dict[str, Any]) -> dict[str, Any]:
        generator = torch.Generator(device=monitor.model.device).manual_seed(args.seed)
        prompt = prompt_for(monitor, record)
        report = monitor.generate(prompt, generator=generator, max_new_tokens=args.max_new_tokens, **sampling)
        return _answer(record, report, report.response)

    return work


def _by_fod(monitor: Monitor, args: argparse.Namespace) -> Work:
    generator = _generator(monitor, args)

    def work(record: dict[str, Any]) -> dict[str, Any]:
        output = generator.generate(
            prompt_for(monitor, record),
            seed=args.seed,
            return_dict_in_generate=True,
            do_sample=False,
            max_new_tokens=args.max_new_tokens,
        )
        text = output.report.response + (output.message or "")
        return _answer(record, output.report, text) | {"trace": _trace(output)}

    return work


def _generator(monitor: Monitor, args: argparse.Namespace) -> Any:  # noqa: ANN401 - fod is not imported here
    """Build the decoder that is asked for."""
    # fod stands on syncheck's public API; the CLI loads it only when it is asked for.
    import fod

    models = (monitor.model, monitor.tokenizer, monitor)
    sampling: dict[str, Any] = {n: v for n in ("temperature", "top_p") if (v := getattr(args, n)) is not None}
    message: dict[str, Any] = {} if args.message is None else {"message": args.message}
    if args.decoder == "fod":
        return fod.FODGenerator(
            *models,
            backtrack_threshold=args.backtrack_threshold,
            prune_threshold=args.prune_threshold,
            beam_size=args.beam_size,
            samples_per_step=args.samples_per_step,
            on_nothing=args.on_nothing,
            **(message | sampling),
        )
    if args.decoder == "fod-backtrack":
        return fod.BacktrackGenerator(*models, backtrack_threshold=args.backtrack_threshold)
    if args.decoder == "abstain":
        return fod.AbstainGenerator(*models, threshold=args.backtrack_threshold, **message)
    if args.decoder == "rerank":
        return fod.RerankGenerator(*models, by=args.rerank_by, samples=args.samples, **sampling)
    if args.decoder == "cad":
        return fod.CADGenerator(*models, alpha=args.alpha, plausibility=args.plausibility)
    if args.flare_threshold is None or args.passages is None:
        raise InputError("--decoder flare needs --flare-threshold P and --passages FILE to retrieve from")
    retriever = fod.PassageIndex(read_passages(args.passages, option="--passages"))
    return fod.FLAREGenerator(*models, retriever=retriever, threshold=args.flare_threshold)


def _answer(record: dict[str, Any], report: Report, text: str) -> dict[str, Any]:
    return {
        "id": record.get("id"),
        "response": text,
        "sentences": sentence_dicts(report),
        "stop": report.stop,
    }


def _trace(output: Any) -> dict[str, Any]:
    """Return how the answer came about, as far as its decoder says."""
    found: dict[str, Any] = {"sampled_tokens": output.sampled_tokens, "dropped": _brief(output.dropped)}
    if output.message is not None:
        found["message"] = output.message
    search = output.get("search")
    if search is not None:
        found |= {
            "backtracked": search.backtracked,
            "marked": list(output.marked),
            "rounds": [
                {
                    "candidates": [_brief(c.sentences) for c in step.candidates],
                    "passed": len(step.passed),
                    "kept": [beam.faithfulness for beam in step.beams],
                }
                for step in search.rounds
            ],
            "tree": [node.to_dict() for node in output.trace],
        }
    if "rewards" in output:
        found |= {"rewards": list(output.rewards), "chosen": output.chosen}
    if "retrievals" in output:
        found["retrievals"] = [{"query": r.query.text, "passages": list(r.passages)} for r in output.retrievals]
    return found


def _brief(sentences: tuple[SentenceScore, ...]) -> list[dict[str, Any]]:
    return [{"text": s.text, "score": s.score, "status": s.status} for s in sentences]
