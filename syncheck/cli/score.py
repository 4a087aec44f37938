"""``syncheck score``: signals and scores of given responses."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from syncheck.cli.gate import ScoreGate
from syncheck.cli.monitors import monitor_for, prompt_for
from syncheck.cli.record_runs import digest_of_run, process
from syncheck.cli.span_sources import unread
from syncheck.errors import InputError
from syncheck.files import field
from syncheck.monitor import Monitor
from syncheck.report import Answer, Case, Report, render_html
from syncheck.spans import SignalSource, SpanRegressor, TokenReplay, label_dict, load_span_regressor, reads_signals

__all__ = ["page_file", "run", "sentence_dicts"]


_SENTENCE_FIELDS = (
    "text",
    "start",
    "end",
    "token_start",
    "token_end",
    "score",
    "status",
    "verdict",
    "remarks",
    "features",
    "reason",
    "evidence",
)


def run(args: argparse.Namespace) -> int:
    """Score the responses of a file; returns the exit code."""
    _check(args)
    monitor = monitor_for(args, "surrogate")
    if args.fail_under is not None and monitor.aggregator is None:
        raise InputError("--fail-under needs scores, and --model has none without a trained --monitor DIR")
    gate = ScoreGate(0.0 if args.fail_under is None else args.fail_under)
    page, (opener, replay) = page_file(args.html), _opener(args, monitor)
    cases: list[Case] = []

    def work(record: dict[str, Any]) -> dict[str, Any]:
        report = _score(monitor, record, given=args.sentences == "given")
        output: dict[str, Any] = {"id": record.get("id"), "sentences": sentence_dicts(report)}
        if opener is not None:
            lang = field(record, "lang", str, default="")
            report = report.with_spans(opener, lang=lang)
            output |= (label_dict(report.spans) if report.spans else {}) | unread(report.span_item(lang=lang), replay)
        if page is not None:
            answer = Answer("answer" if record.get("id") is None else str(record["id"]), report)
            cases.append(Case(report.prompt.question, report.prompt.passages, (answer,)))
        return output | ({"tokens": report.to_dict()["tokens"]} if args.tokens else {})

    run_digest = digest_of_run(args, monitor)
    refused = process(args.input, args.output, work, run=run_digest, resume=args.resume, seen=gate.add)
    if page is not None:
        page.write_text(render_html(cases, refused=refused), encoding="utf-8")
    missed = None if args.fail_under is None else gate.missed(allow_unscored=args.allow_unscored)
    if missed is not None:
        sys.stderr.write(f"syncheck score: {missed}\n")
    return 2 if refused else int(missed is not None)


def _check(args: argparse.Namespace) -> None:
    if args.allow_unscored and args.fail_under is None:
        raise InputError("--allow-unscored would have no effect without --fail-under SCORE; add it, or leave it out")
    if args.resume and args.html is not None:
        raise InputError(
            "--html draws the answers of one run, and --resume leaves some to an earlier one; leave one out"
        )


def page_file(name: str | None) -> Path | None:
    """Return where the page of ``--html`` goes, None without it.

    Raises
    ------
    InputError
        If its folder does not exist.
    """
    if name is not None and not Path(name).parent.is_dir():
        raise InputError(f"--html {name!r}: the folder does not exist; make it first")
    return None if name is None else Path(name)


def sentence_dicts(report: Report) -> list[dict[str, Any]]:
    """Return a report's sentences with the fields of the CLI contract."""
    return [{name: s[name] for name in _SENTENCE_FIELDS} for s in report.to_dict()["sentences"]]


def _opener(args: argparse.Namespace, monitor: Monitor) -> tuple[SpanRegressor | None, TokenReplay | None]:
    """Return what finds wrong characters, and what gives it the monitored model's signals where it reads any."""
    if args.spans is None:
        return None, None
    replay = TokenReplay(monitor.model, monitor.tokenizer, too_long="leave_out") if reads_signals(args.spans) else None
    return load_span_regressor(args.spans, sources=() if replay is None else (SignalSource(replay),)), replay


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
