"""Server of your own model: answers by any decoder, with their scores."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Protocol

from syncheck.base.errors import InputError
from syncheck.monitor import Monitor
from syncheck.results.events import EndEvent, Event
from syncheck.results.protocol import Reveal
from syncheck.results.types import RagPrompt
from syncheck.serving.chat import ChatRequest, ServiceError, refusing, text_of, unsupported
from syncheck.serving.checked import NO_PASSAGES, Failing
from syncheck.serving.limits import Deadline, in_thread
from syncheck.serving.sources import LIMITS, NEUTRAL, DecoderSource, require_neutral, whole_number

_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    **NEUTRAL,
    "stop": ([], ""),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "top_k": (-1, 0),
    "min_p": (0,),
    "repetition_penalty": (1,),
}
"""Fields of requests to OpenAI or vLLM that are not supported, with the values that have no effect and are accepted."""
_LEAST_TEMPERATURE, _MOST_TEMPERATURE = 0.01, 100.0
"""Range in which logits that are divided by the temperature are still numbers that differ."""


class Decoder(Protocol):
    """Protocol of a decoder that writes an answer as events; ``options`` are those of a request that are accepted."""

    def __call__(  # noqa: D102
        self, prompt: RagPrompt, *, reveal: Reveal, seed: int, max_new_tokens: int, **options: Any
    ) -> Iterator[Event]: ...


@dataclass(eq=False)
class OwnModel(DecoderSource):
    """Source of answers by the monitored model, whose monitor has an aggregator.

    Of the ``decoders``, by the name that a request gives, only ``sample`` takes ``temperature`` and ``top_p``. Requests
    that name none get the ``default``, or, with a ``temperature`` above 0, are sampled. ``max_new_tokens`` is the
    length of answers for requests that give none, and the limit for all.
    """

    monitor: Monitor
    decoders: Mapping[str, Decoder]
    _: KW_ONLY
    default: str
    name: str
    failing: Failing = "closed"
    max_new_tokens: int = 512
    address: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        self.decoders = dict(sorted(self.decoders.items(), key=lambda decoder: decoder[0] != self.default))

    async def close(self) -> None:
        """Do nothing; the model stays with its owner."""

    async def models(self, authorization: str | None) -> dict[str, Any]:
        """List the one model."""
        return {"object": "list", "data": [{"id": self.name, "object": "model", "owned_by": "syncheck"}]}

    def require_usable(self, request: ChatRequest) -> None:
        """Refuse, with a ServiceError, a request that can be refused without the model."""
        if self.failing == "closed" and not request.passages:
            raise ServiceError(400, "no_passages", NO_PASSAGES)
        self._asked(request)

    async def begin(self, request: ChatRequest, deadline: Deadline) -> AsyncGenerator[Event]:
        """Build the prompt of a request, and the events, for which the model runs in threads."""
        return _in_threads(await in_thread(self._begun, request))

    def usage(self, event: EndEvent) -> dict[str, Any]:
        """Count the tokens of prompt and answer."""
        assert isinstance(event.report.prompt, RagPrompt)
        read, written = len(event.report.prompt.with_context_ids), len(event.report.written_token_ids)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}

    @refusing()
    def _begun(self, request: ChatRequest) -> Iterator[Event]:
        decoder, options = self._asked(request)
        return self.decoders[decoder](self._prompt(request), reveal=request.reveal, **options)

    @refusing()
    def _asked(self, request: ChatRequest) -> tuple[str, dict[str, Any]]:
        """Choose decoder and options of a request; refuse options that would be ignored."""
        body = request.body
        require_neutral(body, _NEUTRAL)
        sampling = _sampling(body)
        is_random = sampling.get("temperature", 0) > 0
        decoder = request.decoder or ("sample" if is_random and self.default == "greedy" else self.default)
        if decoder not in self.decoders:
            raise ServiceError(
                400, "unknown_decoder", f"decoder must be one of {tuple(self.decoders)}; found {decoder!r}"
            )
        if is_random and decoder != "sample":
            raise unsupported(f"decoder {decoder!r} takes no temperature; leave it out, or send 0")
        if sampling.get("top_p", 1) != 1 and decoder not in ("greedy", "sample"):
            raise unsupported(f"decoder {decoder!r} takes no top_p; leave it out, or send 1")
        options: dict[str, Any] = {"seed": whole_number(body, "seed", 0), "max_new_tokens": self.max_new_tokens}
        for name in LIMITS:
            length = whole_number(body, name, self.max_new_tokens, least=1)
            options["max_new_tokens"] = min(options["max_new_tokens"], length)
        if decoder == "sample":
            options |= {"temperature": 1.0, "top_p": 1.0} | sampling
        if request.stop_below is not None:
            if decoder not in ("greedy", "sample"):
                raise unsupported(f"decoder {decoder!r} has its own thresholds, no stop_below")
            options["stop_below"] = request.stop_below
        return decoder, options

    def _prompt(self, request: ChatRequest) -> RagPrompt:
        """Write the prompt: by the monitor's template, or, for a chat with history, by that of the tokenizer."""
        messages, passages = request.body["messages"], list(request.passages)
        system = [text_of(m) for m in messages if m.get("role") in ("system", "developer")]
        if sum(m.get("role") in ("user", "assistant") for m in messages) == 1:
            told = "\n".join(filter(None, system)) or None
            return self.monitor.prompt(question=request.question, context=passages, system=told)
        if not getattr(self.monitor.tokenizer, "chat_template", None):
            raise unsupported(
                "the model served here has no chat template, so that it takes no earlier turns; send one message of "
                "the user, with all that the question needs from earlier turns, and system messages if there are any"
            )
        turns = [{"role": str(m.get("role")), "content": text_of(m)} for m in messages]
        return self.monitor.prompt(messages=turns, context=passages, question=request.question)


async def _in_threads(events: Iterator[Event]) -> AsyncGenerator[Event]:
    """Take each event in a thread."""
    try:
        while (event := await in_thread(next, events, None)) is not None:
            yield event
    finally:
        if (close := getattr(events, "close", None)) is not None:
            await in_thread(close)


def _sampling(body: Mapping[str, Any]) -> dict[str, float]:
    """Read temperature and top_p, as far as a request has them."""
    options = {name: body[name] for name in ("temperature", "top_p") if body.get(name) is not None}
    if any(type(value) not in (int, float) for value in options.values()):
        raise InputError("temperature and top_p must be numbers")
    temperature, top_p = options.get("temperature", 0), options.get("top_p", 1)
    if temperature != 0 and not _LEAST_TEMPERATURE <= temperature <= _MOST_TEMPERATURE:
        raise InputError(f"temperature must be 0, or from {_LEAST_TEMPERATURE:g} to {_MOST_TEMPERATURE:g}")
    if not 0 < top_p <= 1:
        raise InputError("top_p must be above 0, and at most 1")
    return options
