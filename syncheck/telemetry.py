"""Telemetry: spans of OpenTelemetry around checks and answers, with the names of its conventions for generative AI."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from syncheck.base.errors import MissingExtraError, NotReadyError
from syncheck.results.report import Report, sentence_dict

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

__all__ = ["Telemetry"]

_RESULT = "gen_ai.evaluation.result"
_METRIC = {"gen_ai.evaluation.name": "faithfulness"}


class Telemetry:
    """Records checks and answers as spans of OpenTelemetry, each sentence as an event; see :doc:`serving`.

    Parameters
    ----------
    text
        True records questions, answers and sentences, too; otherwise no text is recorded.
    provider
        Gives the tracer; None takes OpenTelemetry's global one.

    Raises
    ------
    MissingExtraError
        If ``opentelemetry-api`` is not installed, which the extra ``telemetry`` installs.
    """

    def __init__(self, *, text: bool = False, provider: TracerProvider | None = None) -> None:
        with MissingExtraError.unless("opentelemetry-api", "telemetry"):
            from opentelemetry import context, propagate, trace
        self.text = text
        self._context, self._propagate, self._trace = context, propagate, trace
        self._provider = provider or trace.get_tracer_provider()
        self._tracer = self._provider.get_tracer("syncheck", version("syncheck"))

    def require_provider(self) -> None:
        """Raise NotReadyError if nothing takes the spans, since no SDK is set up."""
        if isinstance(self._provider, self._trace.ProxyTracerProvider | self._trace.NoOpTracerProvider):
            raise NotReadyError(
                "no SDK of OpenTelemetry is set up, so that nothing takes the spans; run: pip install "
                "opentelemetry-distro opentelemetry-exporter-otlp, and put opentelemetry-instrument before the command"
            )

    @contextmanager
    def check(self, monitor: str | None, passages: int) -> Iterator[Callable[[Report], Report]]:
        """Record the check of an answer; what is yielded takes its report, and returns it."""
        named = {} if monitor is None else {"syncheck.monitor": monitor}
        about = {"gen_ai.operation.name": "check", "syncheck.passages": passages, **_METRIC, **named}
        with self.span(" ".join(["check", *named.values()]), about) as span:

            def tell(report: Report) -> Report:
                sentences = list(map(sentence_dict, report.sentences))
                for sentence in sentences:
                    self.result(span, sentence)
                self.outcome(span, sentences, report.seconds)
                return report

            yield tell

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Any], *, calls: bool = False) -> Iterator[Span]:
        """Make a span the current one; ``calls`` if another server does the work.

        Of an error, only the type is recorded, since its words may be text.
        """
        kind = self._trace.SpanKind.CLIENT if calls else self._trace.SpanKind.INTERNAL
        with self._tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except BaseException as error:
                span.set_attribute("error.type", getattr(error, "code", type(error).__name__))
                span.set_status(self._trace.StatusCode.ERROR)
                raise

    def join(self, headers: Mapping[str, str]) -> None:
        """Let the current task continue the trace that the headers of its request name."""
        self._context.attach(self._propagate.extract(headers))

    def headers(self) -> dict[str, str]:
        """Make the headers that continue the current trace in another server."""
        headers: dict[str, str] = {}
        self._propagate.inject(headers)
        return headers

    def result(self, span: Span, sentence: Mapping[str, Any]) -> None:
        """Record the result of a sentence, by the fields of a report or of the protocol, as an event."""
        told: dict[str, Any] = {**_METRIC, "gen_ai.evaluation.score.label": sentence["verdict"] or sentence["status"]}
        if sentence["score"] is not None:
            told["gen_ai.evaluation.score.value"] = sentence["score"]
        if self.text and "text" in sentence:
            told["syncheck.sentence.text"] = sentence["text"]
        span.add_event(_RESULT, told)

    def outcome(self, span: Span, sentences: Iterable[Mapping[str, Any]], seconds: float | None) -> None:
        """Record the sums over the sentences of an answer, and the seconds that their check took."""
        sentences = list(sentences)
        scores = [sentence["score"] for sentence in sentences if sentence["score"] is not None]
        verdicts = Counter(sentence["verdict"] for sentence in sentences if sentence["verdict"])
        told: dict[str, Any] = {f"syncheck.sentences.{verdict}": count for verdict, count in verdicts.items()}
        told |= {"syncheck.sentences": len(sentences), "syncheck.sentences.unscored": len(sentences) - len(scores)}
        told |= {"syncheck.score.lowest": min(scores)} if scores else {}
        told |= {} if seconds is None else {"syncheck.check.seconds": seconds}
        span.set_attributes(told)


def recorded(
    telemetry: Telemetry | None, monitor: str | None, passages: int
) -> AbstractContextManager[Callable[[Report], Report]]:
    """Record the check of an answer as :meth:`Telemetry.check`, or without telemetry not."""
    return nullcontext(lambda report: report) if telemetry is None else telemetry.check(monitor, passages)
