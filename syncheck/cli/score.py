"""``syncheck score``: signals and scores of given responses."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import syncheck
from syncheck import corpus, spans
from syncheck.aggregators.aggregator import ANSWER_SCALES, answer_scale_of
from syncheck.base.errors import InputError
from syncheck.base.printable import counted
from syncheck.base.records import JsonDict, Record
from syncheck.citations import has_citations
from syncheck.cli.monitors import Scorer, scoring_monitor
from syncheck.cli.options import Options, add_files, add_model
from syncheck.cli.record_runs import Summary, answer_records, is_store
from syncheck.config import GENERIC, GENERIC_BUNDLED, GENERIC_READER
from syncheck.report.labels import citation_facts
from syncheck.results import Answer, Case, Report, label_dict
from syncheck.results.report import ANSWER_PRIOR

BATCH_TOKENS = 16384
"""Number of tokens in a forward pass on an accelerator; on a CPU, padding costs more than a larger batch saves."""


def score_options(add: Options) -> None:
    """Add the options of ``score``."""
    add_model(add)
    add_files(add)
    add("--prior SHARE")
    add("--tokens", "also write the signals of every token (off)")
    add(
        "--batch-tokens N",
        "if --output is a store: largest number of tokens scored at once (cpu: one response, cuda: 16384)",
    )
    add("--sentences found|given = found", "find the sentences in the response, or use those given in the record")
    add(
        "--lid-reference FILE",
        "reference activations for a --model without --monitor: arrays layer_<k> of shape (T, H) (none: LID is null)",
    )
    add(
        "--spans DIR",
        "also mark the wrong characters, with 'bundled' (if no name is given), 'bundled-rarity' or a span "
        "model's folder",
        nargs="?",
        const="bundled",
    )
    add("--relevance", "also rate how likely each sentence answers the question, never part of its score (off)")
    add("--html FILE", "also write the report as an HTML page; with --spans, it shows the wrong characters")
    add(
        "--fail-under SCORE",
        "exit with 1 if a sentence scores below SCORE (0 to 1) or if something could not be checked: a sentence "
        "that claims something but has no score, an empty response or context, an empty input (never)",
    )
    add(
        "--fail-answers-under SCORE",
        "exit with 1 if the probability that a whole answer is faithful, answer_score in the output, is below SCORE "
        "(0 to 1), or if something could not be checked; with a bundled monitor that reads text alone (never)",
    )
    add(
        "--answer-prior SHARE",
        f"with --fail-answers-under: expected share of faithful answers, which shifts their scores ({ANSWER_PRIOR})",
    )
    add(
        "--citation PATTERN",
        "regular expression of the citation marks, whose first group, if any, holds numbers or names of passages (the "
        "usual forms: '[1]', links, '(Meyer, 2021)' and the like)",
    )
    add(
        "--fail-under-citations SHARE",
        "exit with 1 if, of all citations, or of all sentences that claim something, a smaller SHARE (0 to 1) is "
        "supported by the cited passages, or if there are none (never)",
    )
    add("--allow-unscored", "with these gates: do not fail on what could not be checked (it fails)")


def score(args: argparse.Namespace) -> int:
    """Score the responses of a file or a corpus; returns the exit code."""
    _check(args)
    monitor = scoring_monitor(args, "generic")
    if args.fail_under is not None and monitor.aggregator is None:
        raise InputError("--fail-under needs scores, and --model has none without a trained --monitor DIR")
    fails = None if args.fail_answers_under is None else _answer_gate(args, monitor)
    threshold = monitor.config.backtrack_threshold if args.fail_under is None else args.fail_under
    summary, cases = Summary(threshold, fails), list[Case]()
    scorer = _scorer(args, monitor, cases)
    refused = answer_records(args, monitor, scorer.one, scorer, summary=summary)
    if args.html is not None:
        from syncheck.report import render_html

        Path(args.html).write_text(render_html(cases, refused=refused), encoding="utf-8")
    missed, unchecked = _gates(args, summary)
    for said in (*missed, *unchecked):
        sys.stderr.write(f"syncheck score: {said}\n")
    return 2 if refused else int(bool(missed))


def _answer_gate(args: argparse.Namespace, monitor: Scorer) -> Callable[[Sequence[float]], bool]:
    """Make the test that tells, by the scores of its sentences, whether an answer misses ``--fail-answers-under``."""
    scale = answer_scale_of(monitor.name, monitor.aggregator)
    if scale is None:
        raise InputError(
            "--fail-answers-under needs the scale of whole answers, which was measured for "
            f"{' and '.join(ANSWER_SCALES)} alone; leave --monitor and --model out, or use --fail-under"
        )
    prior = ANSWER_PRIOR if args.answer_prior is None else args.answer_prior
    return lambda scores: not scale.probability(scores, prior=prior) >= args.fail_answers_under


def _gates(args: argparse.Namespace, summary: Summary) -> tuple[list[str], list[str]]:
    """Say which gates were missed, and what passed them unchecked."""
    missed, unchecked = [], []
    counts, least = summary.citations, args.fail_under_citations
    if least is not None:
        if not all(share is not None and share >= least for share in (counts.precision, counts.recall)):
            found = ", ".join(citation_facts(counts)) or "no citation was found"
            missed.append(f"--fail-under-citations {least:g} missed: {found}")
        if count := counts.statuses["unresolved"]:
            unchecked.append(f"--fail-under-citations {least:g} did not check {counted(count, 'citation')}")
    passed = {f"with status {status}": count for status, count in summary.without_claim.items()}
    if args.allow_unscored:
        passed |= {what: count for (noun, what), count in summary.unscored.items() if noun == "sentence"}
    for option, threshold, below in (
        ("--fail-under", args.fail_under, ("sentence", summary.below)),
        ("--fail-answers-under", args.fail_answers_under, ("answer", summary.failed)),
    ):
        if threshold is None:
            continue
        if said := _missed(*below, f"below {threshold:g}", summary, allow_unscored=args.allow_unscored):
            missed.append(f"{option} {threshold:g} missed: {said}")
        if passed:
            listed = ", ".join(f"{count} {what}" for what, count in passed.items())
            total = counted(sum(passed.values()), "sentence")
            unchecked.append(f"{option} {threshold:g} did not check {total}: {listed}")
    return missed, unchecked


def _missed(noun: str, below: int, what: str, summary: Summary, *, allow_unscored: bool) -> str:
    """List what missed a threshold; empty if nothing did. A run without records is a miss too."""
    unscored = {} if allow_unscored else dict(summary.unscored)
    if not (allow_unscored or summary.scored or summary.degenerate or unscored):
        return "the input has no records, so there was nothing to score; --allow-unscored lets that pass"
    failed = {(noun, what): below, ("sentence", "repeated"): summary.degenerate}
    counts = {what: count for what, count in failed.items() if count} | unscored
    remedy = "; --allow-unscored passes what has no score" if unscored else ""
    return ", ".join(f"{counted(count, noun)} {what}" for (noun, what), count in counts.items()) + remedy


def _scorer(args: argparse.Namespace, monitor: Scorer, cases: list[Case]) -> corpus.RecordScorer:
    """Build the scorer of records that the options ask for; it adds those of a page to ``cases``."""
    from syncheck.corpus.scoring import score_row

    opener = None if args.spans is None else spans.load_span_regressor(args.spans)

    def row(record: JsonDict, report: Report) -> JsonDict:
        verifier = monitor if isinstance(monitor, syncheck.Verifier) else monitor.verifier
        if verifier is not monitor and has_citations(report):
            report = verifier.cited(report)
        if args.html is not None or args.format == "human":
            report = verifier.explain(report)
        if args.relevance:
            report = verifier.rated(report)
        output = score_row(record, report)
        if opener is not None:
            lang = Record(record).optional("lang", str) or ""
            report = report.with_spans(opener, lang=lang)
            output |= label_dict(report.spans) if report.spans else {}
        if args.html is not None:
            answer = Answer("answer" if record.get("id") is None else str(record["id"]), report)
            cases.append(Case(report.prompt.question, report.prompt.passages, (answer,)))
        return output | ({"tokens": report.to_dict()["tokens"]} if args.tokens else {})

    batch_tokens = args.batch_tokens or (BATCH_TOKENS if args.device == "cuda" and is_store(args.output) else None)
    return corpus.RecordScorer(
        monitor,
        given=args.sentences == "given",
        signals=args.tokens,
        row=row,
        batch_tokens=batch_tokens,
        citation=args.citation,
    )


def _check(args: argparse.Namespace) -> None:
    own = args.model is not None or args.monitor not in (None, GENERIC, GENERIC_BUNDLED, GENERIC_READER)
    ungated = args.fail_under is None and args.fail_answers_under is None
    faults = {
        "--tokens writes a language model's signals, and none was named; pass --model DIR": args.tokens and not own,
        "--allow-unscored would have no effect without --fail-under SCORE or --fail-answers-under SCORE; add one, or "
        "leave it out": args.allow_unscored and ungated,
        "--answer-prior would have no effect without --fail-answers-under SCORE; add it, or leave it out": (
            args.answer_prior is not None and args.fail_answers_under is None
        ),
        "--html shows the answers of one run, but with --resume some come from an earlier one; leave one out": (
            args.resume and args.html is not None
        ),
        "--html shows the answers of one run, but a store keeps those of several; use `syncheck report` instead": (
            args.html is not None and is_store(args.output)
        ),
    }
    if found := [fault for fault, is_so in faults.items() if is_so]:
        raise InputError(found[0])
