"""``syncheck generate``: answers, decoded greedily, by sampling or by FOD."""

from __future__ import annotations

import argparse
from typing import Any

import torch

from syncheck.commands.monitors import monitor_for, prompt_for
from syncheck.commands.score import sentence_dicts
from syncheck.errors import NotReadyError
from syncheck.jsonlines import process
from syncheck.monitor import Monitor
from syncheck.types import SentenceScore

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Answer the questions of a file; returns the exit code."""
    monitor = monitor_for(args, "generation")
    decode = _fod(monitor, args) if args.decoder == "fod" else _plain(monitor, args)
    return 2 if process(args.input, args.output, decode) else 0


def _plain(monitor: Monitor, args: argparse.Namespace) -> Any:  # noqa: ANN401 - a record to a record
    sampling = {"do_sample": args.decoder == "sample"}
    if args.decoder == "sample":
        sampling |= {"temperature": args.temperature, "top_p": args.top_p}

    def work(record: dict[str, Any]) -> dict[str, Any]:
        generator = torch.Generator(device=monitor.model.device).manual_seed(args.seed)
        prompt = prompt_for(monitor, record)
        report = monitor.generate(prompt, generator=generator, max_new_tokens=args.max_new_tokens, **sampling)
        return {
            "id": record.get("id"),
            "response": report.response,
            "sentences": sentence_dicts(report),
            "stop": report.stop,
        }

    return work


def _fod(monitor: Monitor, args: argparse.Namespace) -> Any:  # noqa: ANN401
    # fod stands on syncheck's public API; the CLI loads it only when it is asked for.
    from fod import FODGenerator

    if monitor.aggregator is None:
        raise NotReadyError("--decoder fod needs a trained monitor; pass --monitor DIR, or leave --model out")
    generator = FODGenerator(
        monitor.model,
        monitor.tokenizer,
        monitor,
        backtrack_threshold=args.backtrack_threshold,
        prune_threshold=args.prune_threshold,
        beam_size=args.beam_size,
        samples_per_step=args.samples_per_step,
    )

    def work(record: dict[str, Any]) -> dict[str, Any]:
        output = generator.generate(
            prompt_for(monitor, record),
            seed=args.seed,
            return_dict_in_generate=True,
            max_new_tokens=args.max_new_tokens,
        )
        return {
            "id": record.get("id"),
            "response": output.report.response,
            "sentences": sentence_dicts(output.report),
            "stop": output.report.stop,
            "trace": {
                "backtracked": output.search.backtracked,
                "dropped": _brief(output.dropped),
                "rounds": [
                    {
                        "candidates": [_brief(c.sentences) for c in step.candidates],
                        "passed": len(step.passed),
                        "kept": [b.faithfulness for b in step.beams],
                    }
                    for step in output.search.rounds
                ],
                "sampled_tokens": output.sampled_tokens,
            },
        }

    return work


def _brief(sentences: tuple[SentenceScore, ...]) -> list[dict[str, Any]]:
    return [{"text": s.text, "score": s.score, "status": s.status} for s in sentences]
