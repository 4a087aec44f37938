"""A gate for tests, by the bundled verifier ``generic``, in the best form on this machine, which is loaded once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

from syncheck.base.checks import check_share, check_text
from syncheck.base.errors import InputError
from syncheck.base.printable import counted
from syncheck.reading.tags import quotation
from syncheck.results.types import WITHOUT_CLAIM
from syncheck.verifier import Verifier, require_verifier

if TYPE_CHECKING:
    from syncheck.results import Report
    from syncheck.results.types import SentenceScore

_LOADING = Lock()


@cache
def _generic() -> Verifier:
    return Verifier()


def verifier_or_generic(verifier: Verifier | None) -> Verifier:
    """Take the verifier that was passed, or for None the bundled one, which is loaded once for all callers."""
    if verifier is None:
        with _LOADING:
            return _generic()
    require_verifier(verifier)
    return verifier


def assert_faithful(
    answer: str,
    passages: str | Sequence[str],
    at_least: float = 0.8,
    *,
    question: str = "",
    verifier: Verifier | None = None,
) -> Report:
    """Fail a test unless every sentence of an answer is faithful to the passages.

    Parameters
    ----------
    answer, passages
        The answer, written by any model, and the passages from which it was answered.
    at_least
        Score, in [0, 1], that each sentence must reach. A sentence that claims something but has no score fails, and
        so does an answer in which there is nothing to check.
    question
        The question that it answers, which some aligners read.
    verifier
        Scores the answer; None takes the bundled one, ``generic``.

    Returns
    -------
    Report
        The report of an answer that passed; ``unscored`` is the number of its sentences that claim nothing.

    Raises
    ------
    AssertionError
        If a sentence does not reach the score; the message lists such sentences, each with the nearest passage. Also
        if an answer cannot be checked in full.
    InputError, WrongTypeError
        If an argument cannot be used.

    Examples
    --------
    >>> from syncheck.integrations import assert_faithful
    >>> assert_faithful("The bridge opened in 1967.", ["The bridge opened in 1967. It has two lanes."])
    <Report: ...>
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    check_text(answer, "answer")
    check_share(at_least, "at_least")
    verifier = verifier_or_generic(verifier)
    if verifier.aggregator is None:
        raise InputError("the verifier has no aggregator, so no sentence has a score; train one")
    report = verifier.check(answer, passages=passages, question=question)
    checked = [sentence for sentence in report.sentences if sentence.status not in WITHOUT_CLAIM]
    if not checked:
        raise AssertionError(f"nothing to check in the answer {answer!r}: no sentence claims anything")
    if failed := [s for s in checked if s.score is None or s.score < at_least]:
        begun = f"{len(failed)} of {counted(len(checked), 'sentence')} {'does' if len(failed) == 1 else 'do'} not reach"
        others = len(report.sentences) - len(checked)
        beside = f" ({others} more claim nothing and were not checked)" if others else ""
        raise AssertionError("\n".join([f"{begun} {at_least:g}{beside}:", *map(_described, failed)]))
    return report


def _described(sentence: SentenceScore) -> str:
    why = f"{sentence.status}: {_on_one_line(sentence.reason)}" if sentence.reason else sentence.status
    score = f"no score ({why})" if sentence.score is None else f"{sentence.score:.2f}"
    nearest = "" if sentence.evidence is None else f"\n    nearest: {_on_one_line(quotation(sentence.evidence.text))}"
    return f"  {score}  {_on_one_line(sentence.text)}{nearest}"


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
