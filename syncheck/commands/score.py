"""``syncheck score``: signals and scores of given responses."""

from __future__ import annotations

import argparse
from typing import Any

from syncheck.commands.monitors import monitor_for, prompt_for
from syncheck.errors import InputError
from syncheck.jsonlines import field, process
from syncheck.monitor import Monitor
from syncheck.report import Report

__all__ = ["run", "sentence_dicts"]

_SENTENCE_FIELDS = (
    "text",
    "start",
    "end",
    "token_start",
    "token_end",
    "score",
    "status",
    "features",
    "reason",
    "evidence",
)


def run(args: argparse.Namespace) -> int:
    """Score the responses of a file; returns the exit code."""
    monitor = monitor_for(args, "surrogate")
    if args.fail_under is not None and monitor.aggregator is None:
        raise InputError("--fail-under needs scores, and --model has none without a trained --monitor DIR")
    lowest: list[float] = []

    def work(record: dict[str, Any]) -> dict[str, Any]:
        report = _score(monitor, record, given=args.sentences == "given")
        lowest.extend(s.score for s in report.sentences if s.score is not None)
        output = {"id": record.get("id"), "sentences": sentence_dicts(report)}
        return output | ({"tokens": report.to_dict()["tokens"]} if args.tokens else {})

    failed = process(args.input, args.output, work)
    if failed:
        return 2
    return int(args.fail_under is not None and any(score < args.fail_under for score in lowest))


def sentence_dicts(report: Report) -> list[dict[str, Any]]:
    """Return a report's sentences with the fields of the CLI contract."""
    return [{name: s[name] for name in _SENTENCE_FIELDS} for s in report.to_dict()["sentences"]]


def _score(monitor: Monitor, record: dict[str, Any], *, given: bool) -> Report:
    prompt = prompt_for(monitor, record)
    if given:
        sentences = field(record, "sentences", list)
        if not all(isinstance(s, str) for s in sentences):
            raise InputError("field 'sentences' must be a list of strings")
        ids = field(record, "response_token_ids", list, default=None)
        return monitor.score(prompt, sentences=sentences, response_token_ids=ids)
    ids = field(record, "response_token_ids", list, default=None)
    if ids is not None:
        return monitor.score(prompt, response_token_ids=ids)
    return monitor.score(prompt, field(record, "response", str))
