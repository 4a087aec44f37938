"""Repairing gateway: answers that a decoder writes with an upstream server, each sentence checked or replaced."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, Protocol

from syncheck.results import ContinuationRequest, Piece
from syncheck.results.events import EndEvent, Event
from syncheck.results.protocol import Reveal
from syncheck.serving.chat import ChatRequest, ServiceError
from syncheck.serving.checked import NO_PASSAGES
from syncheck.serving.continuing import ContinueBy, ServerContinuations, WritePrompt
from syncheck.serving.gateway import Gateway
from syncheck.serving.limits import Deadline, in_thread
from syncheck.serving.writing import NEUTRAL, Begun, DecoderSource, require_neutral, whole_number
from syncheck.verifier import Verifier


class UpstreamDecoder(Protocol):
    """Protocol of a decoder that writes an answer with a server; :meth:`fod.UpstreamFOD.stream_async` is one."""

    def __call__(  # noqa: D102
        self,
        continue_from: Callable[[ContinuationRequest], AsyncGenerator[Piece]],
        *,
        question: str,
        passages: Sequence[str],
        seed: int,
        reveal: Reveal,
        in_thread: Callable[..., Awaitable[Any]],
    ) -> AsyncGenerator[Event]: ...


class RepairingGateway(DecoderSource):
    """Source of answers that the decoder ``fod`` writes with the upstream server of a gateway.

    Its ``verifier`` scores the sentences. ``by`` and ``write_prompt`` say how the server is asked to continue. An
    answer without passages, which only passes failing open, is the plain one of the ``gateway``.
    """

    decoders: tuple[str, ...] = ("fod",)
    monitor: Verifier

    def __init__(
        self,
        gateway: Gateway,
        verifier: Verifier,
        decode: UpstreamDecoder,
        *,
        by: ContinueBy = "chat",
        write_prompt: WritePrompt | None = None,
    ) -> None:
        self.monitor = verifier
        self.failing = gateway.failing
        self.address = gateway.address
        self._gateway = gateway
        self._decode = decode
        self._by = by
        self._write_prompt = write_prompt

    async def close(self) -> None:
        """Close the connections to the upstream server."""
        await self._gateway.close()

    async def models(self, authorization: str | None) -> dict[str, Any]:
        """Ask for the upstream server's list of models."""
        return await self._gateway.models(authorization)

    async def complete(self, request: ChatRequest, authorization: str | None, deadline: Deadline) -> dict[str, Any]:
        """Write a whole answer, with its outcome as ``syncheck``."""
        if not request.passages:
            return await self._gateway.complete(request, authorization, deadline)
        return await super().complete(request, authorization, deadline)

    def stream(
        self, request: ChatRequest, authorization: str | None, deadline: Deadline
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield an answer in chunks, with their events as ``syncheck``."""
        if not request.passages:
            return self._gateway.stream(request, authorization, deadline)
        return super().stream(request, authorization, deadline)

    def require_usable(self, request: ChatRequest) -> None:
        """Refuse, with a ServiceError, a request that the upstream server need not see."""
        if request.decoder not in (None, *self.decoders):
            raise ServiceError(
                400, "unknown_decoder", f"decoder must be one of {self.decoders}; found {request.decoder!r}"
            )
        if not request.passages:
            if self.failing == "closed":
                raise ServiceError(400, "no_passages", NO_PASSAGES)
            return
        require_neutral(request.body, NEUTRAL)
        for name in ("max_tokens", "max_completion_tokens"):
            whole_number(request.body, name, 1, least=1)
        whole_number(request.body, "seed", 0)
        if request.stop_below is not None:
            raise ServiceError(400, "unsupported", "decoder 'fod' has its own thresholds, no stop_below")
        if request.body["messages"][-1].get("role") == "assistant":
            raise ServiceError(
                400,
                "unsupported",
                "the last message is the assistant's, and the answer is continued here; leave it out",
            )

    async def begin(self, request: ChatRequest, authorization: str | None, deadline: Deadline) -> Begun:
        """Begin an answer; the upstream server is asked with its first event."""
        continuations = ServerContinuations(
            self._gateway.upstream,
            request.body,
            by=self._by,
            write_prompt=self._write_prompt,
            deadline=deadline,
            authorization=authorization,
            opens_reasoning=self._gateway.opens_reasoning,
        )
        events = self._decode(
            continuations,
            question=request.question,
            passages=request.passages,
            seed=whole_number(request.body, "seed", 0),
            reveal=request.reveal,
            in_thread=in_thread,
        )
        return Begun(events, _usage)

    def model_of(self, request: ChatRequest) -> str:
        """Name the model that was asked for."""
        return str(request.body.get("model", ""))


def _usage(event: EndEvent) -> dict[str, Any]:
    """Count what the upstream server has spent, rejected sentences included."""
    spent = event.output.spent
    return {
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "total_tokens": spent.prompt_tokens + spent.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": spent.cached_tokens},
        "syncheck": {
            "requests": spent.requests,
            "samples": spent.samples,
            "rounds": spent.rounds,
            "cached_of": spent.cached_of,
            "is_exact": spent.is_exact,
        },
    }
