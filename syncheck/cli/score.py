"""``syncheck score``: signals and scores of given responses."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import syncheck
from syncheck import corpus, spans
from syncheck.aggregators.aggregator import ANSWER_SCALES, answer_scale_of
from syncheck.base.errors import InputError
from syncheck.base.printable import counted
from syncheck.base.records import JsonDict, field
from syncheck.citations import has_citations
from syncheck.cli.monitors import Scorer, models_of, scoring_monitor
from syncheck.cli.options import Options, add_files, add_model, open_share, refuse_first
from syncheck.cli.record_runs import answer_records, is_store
from syncheck.config import GENERIC, GENERIC_BUNDLED, GENERIC_READER
from syncheck.corpus.records import answer_of
from syncheck.report.labels import citation_facts
from syncheck.results import Answer, Case, Report, label_dict
from syncheck.results.report import ANSWER_PRIOR, CitationCounts
from syncheck.results.types import WITHOUT_CLAIM

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
    add(
        "--sentences found|given",
        "find the sentences in the response, or use those given in the record (%(default)s)",
        default="found",
    )
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
        type=open_share,
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
        type=open_share,
    )
    add("--allow-unscored", "with these gates: do not fail on what could not be checked (it fails)")


def score(args: argparse.Namespace) -> int:
    """Score the responses of a file or a corpus; returns the exit code."""
    _check(args)
    monitor = scoring_monitor(args, "generic")
    if args.fail_under is not None and monitor.aggregator is None:
        raise InputError("--fail-under needs scores, and --model has none without a trained --monitor DIR")
    gates = _gates(args, monitor)
    cases: list[Case] = []
    scorer = _scorer(args, monitor, cases)

    def seen(row: JsonDict) -> None:
        for gate in gates:
            gate.add(row)

    refused = answer_records(args, monitor, scorer.one, scorer, seen=seen)
    if args.html is not None:
        from syncheck.report import render_html

        Path(args.html).write_text(render_html(cases, refused=refused), encoding="utf-8")
    missed = [gate.missed(allow_unscored=args.allow_unscored) for gate in gates]
    unchecked = [gate.unchecked(allow_unscored=args.allow_unscored) for gate in gates]
    for said in filter(None, (*missed, *unchecked)):
        sys.stderr.write(f"syncheck score: {said}\n")
    return 2 if refused else int(any(missed))


def _gates(args: argparse.Namespace, monitor: syncheck.Monitor | syncheck.Verifier) -> list[_Gate | _CitationGate]:
    """Make the gates that were asked for, for sentences and for whole answers."""
    gates: list[_Gate | _CitationGate] = []
    if args.fail_under_citations is not None:
        gates.append(_CitationGate(args.fail_under_citations))
    if args.fail_under is not None:
        gates.append(_Gate("--fail-under", args.fail_under))
    if args.fail_answers_under is not None:
        scale = answer_scale_of(monitor.name, monitor.aggregator)
        if scale is None:
            raise InputError(
                "--fail-answers-under needs the scale of whole answers, which was measured for "
                f"{' and '.join(ANSWER_SCALES)} alone; leave --monitor and --model out, or use --fail-under"
            )
        prior = ANSWER_PRIOR if args.answer_prior is None else args.answer_prior
        gates.append(_Gate("--fail-answers-under", args.fail_answers_under, partial(scale.probability, prior=prior)))
    return gates


def _scorer(args: argparse.Namespace, monitor: Scorer, cases: list[Case]) -> corpus.RecordScorer:
    """Build the scorer of records that the options ask for; it adds those of a page to ``cases``."""
    from syncheck.corpus.scoring import score_row

    opener, replay = _opener(args, monitor)

    def row(record: JsonDict, report: Report) -> JsonDict:
        if not isinstance(monitor, syncheck.Verifier) and has_citations(report):
            report = monitor.verifier.cited(report)
        verifier = monitor if isinstance(monitor, syncheck.Verifier) else monitor.verifier
        if args.html is not None or args.format == "human":
            report = verifier.explain(report)
        if args.relevance:
            report = verifier.rated(report)
        output = score_row(record, report)
        if opener is not None:
            from syncheck.cli.spans import unread

            lang = field(record, "lang", str, default="")
            report = report.with_spans(opener, lang=lang)
            output |= (label_dict(report.spans) if report.spans else {}) | unread(report.span_item(lang=lang), replay)
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
    refuse_first(faults)


def _opener(args: argparse.Namespace, monitor: Scorer) -> tuple[spans.SpanRegressor | None, spans.TokenReplay | None]:
    """Make the detector of wrong characters, and name the source of the monitored model's signals if it reads any."""
    if args.spans is None:
        return None, None

    replay = None
    if spans.reads_signals(args.spans):
        model = models_of(args) if isinstance(monitor, syncheck.Verifier) else (monitor.model, monitor.tokenizer)
        replay = spans.TokenReplay(*model)
    return spans.load_span_regressor(args.spans, measure=replay), replay


class _CitationGate:
    """Counter of citations and of sentences that should have one, which miss a share of both."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.counts = CitationCounts()

    def add(self, row: JsonDict) -> None:
        """Count a line of output."""
        if "error" not in row:
            self.counts += CitationCounts.of(answer_of(row).sentences)

    def missed(self, *, allow_unscored: bool) -> str | None:
        """Describe what missed the share; None if nothing did. Answers without citations miss it."""
        shares = (self.counts.precision, self.counts.recall)
        if all(share is not None and share >= self.share for share in shares):
            return None
        found = ", ".join(citation_facts(self.counts)) or "no citation was found"
        return f"--fail-under-citations {self.share:g} missed: {found}"

    def unchecked(self, *, allow_unscored: bool) -> str | None:
        """Describe the citations that could not be checked; None if there are none."""
        count = self.counts.statuses["unresolved"]
        return f"--fail-under-citations {self.share:g} did not check {counted(count, 'citation')}" if count else None


class _Gate:
    """Counter of what misses the threshold of an option: sentences, or whole answers if ``of_answer`` scores them.

    A sentence that claims nothing, such as a bullet or a label, cannot be wrong and does not miss it, but is counted.
    Any other sentence without a score does, and so does a record with an error, with text after its end or without a
    scored sentence: an empty response is as unchecked as one whose aligner failed. One that repeats itself misses it
    whatever may be unscored.
    """

    def __init__(
        self, option: str, threshold: float, of_answer: Callable[[Sequence[float]], float] | None = None
    ) -> None:
        self.option = option
        self.threshold = threshold
        self.of_answer = of_answer
        self.below = self.degenerate = 0
        self.scored = 0
        self.unscored: Counter[tuple[str, str]] = Counter()
        self.without_claim: Counter[str] = Counter()

    def add(self, row: JsonDict) -> None:
        """Count a line of output."""
        if "error" in row:
            self.unscored["record", "with an error"] += 1
            return
        scores = [s["score"] for s in row["sentences"] if s["score"] is not None]
        unscored = [s["status"] for s in row["sentences"] if s["score"] is None and s["status"] != "degenerate"]
        degenerate = sum(s["status"] == "degenerate" for s in row["sentences"])
        self.degenerate += degenerate
        missing = [status for status in unscored if status not in WITHOUT_CLAIM]
        self.without_claim.update(status for status in unscored if status in WITHOUT_CLAIM)
        judged = scores if self.of_answer is None else [self.of_answer(scores)] if scores else []
        self.below += sum(not score >= self.threshold for score in judged)
        self.scored += bool(scores)
        self.unscored.update(("sentence", f"with status {status}") for status in missing)
        if row.get("after_end"):
            self.unscored["record", "with text after an end-of-text token"] += 1
        elif not scores and not missing and not degenerate:
            self.unscored["record", "without a sentence to check"] += 1

    def missed(self, *, allow_unscored: bool) -> str | None:
        """Describe what missed the threshold; None if nothing did. A run without records is a miss too."""
        missed = f"{self.option} {self.threshold:g} missed: "
        unscored = {} if allow_unscored else dict(self.unscored)
        if not allow_unscored and not self.scored and not self.degenerate and not unscored:
            return f"{missed}the input has no records, so there was nothing to score; --allow-unscored lets that pass"
        judged = "sentence" if self.of_answer is None else "answer"
        failed = {(judged, f"below {self.threshold:g}"): self.below, ("sentence", "repeated"): self.degenerate}
        counts = {what: count for what, count in failed.items() if count} | unscored
        if not counts:
            return None
        listed = ", ".join(f"{counted(count, noun)} {what}" for (noun, what), count in counts.items())
        remedy = "; --allow-unscored passes what has no score" if unscored else ""
        return f"{missed}{listed}{remedy}"

    def unchecked(self, *, allow_unscored: bool) -> str | None:
        """Describe the sentences that passed without a score; None if there are none."""
        let_pass = {f"with status {status}": count for status, count in self.without_claim.items()}
        if allow_unscored:
            let_pass |= {what: count for (noun, what), count in self.unscored.items() if noun == "sentence"}
        if not let_pass:
            return None
        total = counted(sum(let_pass.values()), "sentence")
        listed = ", ".join(f"{count} {what}" for what, count in let_pass.items())
        return f"{self.option} {self.threshold:g} did not check {total}: {listed}"
