"""Scores in one call by the bundled verifier ``generic``, in the best form on this machine, which is loaded once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

from syncheck.base.checks import check_sequence, check_share, check_text, check_texts
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


def score(
    passages: str | Sequence[str | Sequence[str]], sentences: Sequence[str], *, verifier: Verifier | None = None
) -> list[SentenceScore]:
    """Score sentences, each for faithfulness to its own passages, as MiniCheck's ``score(docs, claims)`` does.

    Parameters
    ----------
    passages
        One entry for each sentence, either a passage or a list of passages; or a single passage for all sentences.
    sentences
        Texts that are each scored as one sentence, whatever their punctuation.
    verifier
        Scores them; None takes the bundled one, ``generic``.

    Returns
    -------
    list of SentenceScore
        ``score`` is P(faithful) in [0, 1], or None with a ``status`` that says why it could not be checked.

    Raises
    ------
    InputError, WrongTypeError
        If there are not as many entries as sentences, a text is empty, or an argument has the wrong type.

    Examples
    --------
    >>> from syncheck.integrations import score
    >>> found = score(["The bridge opened in 1967."] * 2, ["It opened in 1967.", "It opened in 1972."])
    >>> found[0].score > found[1].score
    True
    """
    check_texts(sentences, "sentences")
    if isinstance(passages, str):
        passages = [passages] * len(sentences)
    check_sequence(passages, "passages", of="strings, or of lists of strings")
    if len(passages) != len(sentences):
        raise InputError(
            f"expected passages for each of the {len(sentences)} sentences; found {len(passages)} entries. Pass one "
            "entry for each sentence (a list where a sentence has several passages), or one string for all"
        )
    if empty := [index for index, sentence in enumerate(sentences) if not sentence.strip()]:
        raise InputError(f"sentences[{empty[0]}] is empty; leave it out")
    if not sentences:
        return []
    verifier = verifier_or_generic(verifier)
    records = ({"passages": given, "sentences": [one]} for given, one in zip(passages, sentences, strict=True))
    return [report.sentences[0] for report in verifier.check_many(records)]


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
