"""``syncheck gateway`` checks the answers of a server, and ``syncheck serve`` those of your own model."""

from __future__ import annotations

import argparse
import math
import os
import socket
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import syncheck
from syncheck import decoding
from syncheck.base.checks import stripped_key
from syncheck.base.errors import InputError, MissingExtraError, NotReadyError
from syncheck.cli.generate import add_thresholds, decoder
from syncheck.cli.monitors import Scorer, monitor_with_model, scoring_monitor
from syncheck.cli.options import DECODERS, OF_A_WRITER, Options, add_model, add_settings, count, flag, index, named
from syncheck.results.events import Event
from syncheck.results.types import RagPrompt

if TYPE_CHECKING:
    from syncheck.results.protocol import Reveal
    from syncheck.serving.app import AnswerSource
    from syncheck.serving.gateway import Gateway
    from syncheck.serving.repairing import UpstreamDecoder
    from syncheck.serving.sources import Decoder

_SERVED = [name for name in DECODERS if name != "flare"]  # which needs passages of its own to retrieve from
_FAREWELL_SECONDS = 10
"""Time for the last check and the error of an answer that is not complete when the server stops."""


def gateway_options(add: Options) -> None:
    """Add the options of ``gateway``."""
    about = "URL of an OpenAI-compatible server, with the API version, such as http://localhost:8000/v1"
    add("--upstream URL", about, required=True)
    _add_server(add)
    group = add.group("upstream")
    group("--upstream-key-file FILE", "API key for the upstream ($SYNCHECK_UPSTREAM_KEY, or else the client's own)")
    group("--upstream-timeout SECONDS = 60", "longest wait for the upstream to send something")
    group(
        "--reasoning pass|drop",
        "pass the model's reasoning on beside the answer, unchecked, or drop it (drop; pass with --failing open)",
    )
    group("--opens-reasoning", "the chat template opens the reasoning, so that answers begin inside it")
    _add_decoder(add)
    add_model(add)
    add_settings(add)


def _add_decoder(add: Options) -> None:
    """Add the options of a decoder before the upstream; all but the first are None unless given."""
    group = add.group("decoder", "with --decoder, answers are repaired, not only checked")
    group("--decoder", "write each answer by FOD, sentence by sentence (off)", choices=("fod",))
    group(
        "--continue chat|prefill",
        "how the upstream continues an answer: chat completions with continue_final_message (vLLM, SGLang), "
        "or a last message of the assistant (chat)",
    )
    group(
        "--repair search|drop|mark",
        "after a sentence below tau 1: search over samples, drop it and go on, or mark it (search)",
    )
    group("--samples N", "samples of a round of the search (6)")
    group("--beams N", "answers that are kept after a round (2)")
    group("--rounds N", "largest number of rounds of the search for an answer (no limit)")
    group("--budget-samples N", "largest number of samples for an answer (no limit)")
    group("--budget-tokens N", "largest number of tokens for an answer, rejected ones included (no limit)")
    group("--budget-seconds SECONDS", "longest time for an answer, which then ends (no limit)")
    add_thresholds(group, "tau 1", "tau 2")


_OF_THE_DECODER = """
    continue repair samples beams rounds budget_samples budget_tokens budget_seconds backtrack_threshold
    prune_threshold
    """.split()


def serve_options(add: Options) -> None:
    """Add the options of ``serve``."""
    add("--decoder = greedy", "decoding method, unless a request chooses another", choices=_SERVED)
    add("--max-new-tokens N = 256")
    _add_server(add)
    add_model(add, default=OF_A_WRITER)
    add_settings(add)


def _add_server(add: Options) -> None:
    add(
        "--failing closed|open = closed",
        "if text cannot be checked: return an error (closed), or pass it on and mark it (open)",
    )
    add("--host HOST = 127.0.0.1", "address to listen on (%(default)s: only this machine)")
    add("--port PORT = 8100", "port to listen on", type=count)
    add(
        "--reveal verified|immediate = verified",
        "send text with its score (verified) or as it arrives (immediate), unless a request chooses",
    )
    add(
        "--stop-below SCORE",
        "end an answer before the first sentence that scores below SCORE, unless a request chooses (never)",
    )
    add(
        "--passages-from messages|tools = messages",
        "take passages from all messages of requests without context, or only from results of tools, beside context",
    )
    add("--stop-after", "end it after that sentence, which is then sent, unless a request chooses")
    group = add.group("limits")
    group("--api-key-file FILE", "key that clients must send ($SYNCHECK_API_KEY, or none)")
    group("--max-running N = 4", "largest number of answers at one time")
    group("--max-waiting N = 32", "largest number of waiting requests; further ones get status 429", type=index)
    group("--max-body BYTES", "largest size of a request (%(default)s)", default=f"{2 * 2**20}")
    group("--max-context CHARACTERS = 400000", "largest size of a request's question and passages")
    group("--timeout SECONDS = 300", "longest time for an answer, including waiting")
    group(
        "--grace SECONDS = 30",
        "how long open answers may take once the server is told to stop; then they end with an error",
    )


def gateway(args: argparse.Namespace) -> int:
    """Serve the gateway until it is interrupted; returns the exit code."""
    if not args.upstream.startswith(("http://", "https://")):
        raise InputError(f"--upstream must begin with http:// or https://; found {args.upstream!r}")
    _require_extra()
    from syncheck.serving.gateway import Gateway

    key = _key(args.upstream_key_file, "SYNCHECK_UPSTREAM_KEY")
    monitor = scoring_monitor(args, "generic")
    options = named(args, "failing reasoning opens_reasoning") | {"api_key": key, "timeout": args.upstream_timeout}
    return _serve(_repairing(Gateway(monitor, args.upstream, **options), monitor, args), args)


def _repairing(gateway: Gateway, monitor: Scorer, args: argparse.Namespace) -> AnswerSource:
    """Put the decoder of ``--decoder`` before a gateway; without one, the gateway is left as it is."""
    if args.decoder is None:
        if given := [name for name in _OF_THE_DECODER if getattr(args, name) is not None]:
            raise InputError(f"{flag(given[0])} needs --decoder fod")
        return gateway
    if args.stop_below is not None or args.stop_after or args.reasoning == "pass":
        idle = "--stop-below, --stop-after and --reasoning pass"
        raise InputError(f"--decoder fod has thresholds of its own and drops reasoning; leave {idle} out")
    if not isinstance(monitor, syncheck.Verifier):
        if monitor.reads_signals:
            raise InputError("--decoder fod needs a monitor that reads text alone; leave --monitor and --model out")
        monitor = monitor.verifier
    by: Any = getattr(args, "continue") or "chat"
    from syncheck.serving.repairing import RepairingGateway

    return RepairingGateway(gateway, monitor, _upstream_decoder(monitor, args), by=by)


def _upstream_decoder(verifier: syncheck.Verifier, args: argparse.Namespace) -> UpstreamDecoder:
    import fod

    asked = named(args, "backtrack_threshold prune_threshold")
    asked |= {"samples_per_step": args.samples, "beam_size": args.beams}
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    repair: Any = args.repair or "search"
    if repair != "search" and (args.samples is not None or args.beams is not None):
        raise InputError(f"--samples and --beams are for --repair search; found --repair {repair}")
    config = fod.FODConfig(**given) if repair == "search" else fod.RepairConfig(**given)
    limits = {name: getattr(args, f"budget_{name}") for name in ("samples", "tokens", "seconds")}
    options = {"repair": repair, "config": config, "budget": fod.Budget(rounds=args.rounds, **limits)}

    def decode(continue_from: Any, *, in_thread: Any, **asked: Any) -> AsyncGenerator[Event]:
        return fod.UpstreamFOD(verifier, continue_from, in_thread=in_thread, **options).stream_async(**asked)

    return decode


def serve(args: argparse.Namespace) -> int:
    """Serve a model until it is interrupted; returns the exit code."""
    _require_extra()
    from syncheck.serving.sources import OwnModel

    monitor = monitor_with_model(args, "generation")
    if monitor.aggregator is None:
        raise NotReadyError("serve needs a monitor that scores; pass --monitor DIR, or leave the other options out")
    plain: dict[str, Decoder] = {"greedy": partial(_plain, monitor, False), "sample": partial(_plain, monitor, True)}
    of_fod = {name: partial(_by_fod, decoder(monitor, name, {})) for name in _SERVED if name not in plain}
    name = Path(args.model).name if args.model else "syncheck-kit"
    options = named(args, "failing max_new_tokens") | {"default": args.decoder, "name": name}
    return _serve(OwnModel(monitor, plain | of_fod, **options), args)


def _plain(
    monitor: syncheck.Monitor, do_sample: bool, prompt: RagPrompt, *, reveal: Reveal, seed: int, **options: Any
) -> Iterator[Event]:
    generator = decoding.seeded_generator(monitor.model, seed)
    return monitor.stream(prompt, reveal=reveal, generator=generator, do_sample=do_sample, **options)


def _by_fod(built: Any, prompt: RagPrompt, *, reveal: Reveal, **options: Any) -> Iterator[Event]:
    events: Iterator[Event] = built.stream(prompt, do_sample=False, **options)  # each sentence once it stays
    return events


def _serve(source: AnswerSource, args: argparse.Namespace) -> int:
    import uvicorn

    from syncheck.serving.app import create_app, end_in
    from syncheck.serving.chat import ServerConfig
    from syncheck.serving.checked import verifier_of
    from syncheck.serving.limits import PromptConnection

    loopback = args.host in ("127.0.0.1", "localhost", "::1")
    limits = named(args, "max_running max_waiting max_body max_context timeout")
    answers = named(args, "reveal stop_below stop_after passages_from")
    key = _key(args.api_key_file, "SYNCHECK_API_KEY")
    config = ServerConfig(**answers, **limits, api_key=key, only_loopback=loopback)
    _warm_up(verifier_of(source.monitor))
    listening = _listening(args.host, args.port)
    if not loopback and key is None:
        sys.stderr.write(f"syncheck: anyone who reaches {args.host} can ask; pass --api-key-file to change that\n")
    sys.stderr.write(f"syncheck: listening on http://{args.host}:{args.port}\n")
    app = create_app(source, config)

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            end_in(app, args.grace)
            await super().shutdown(sockets)

    served = uvicorn.Config(
        app,
        http=PromptConnection,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=math.ceil(args.grace + _FAREWELL_SECONDS),
    )
    with listening, suppress(KeyboardInterrupt):
        Server(served).run([listening])
    return 0


def _warm_up(verifier: syncheck.Verifier) -> None:
    """Check an answer, so that the first request finds all that is loaded at first use; NotReadyError if that fails."""
    report = verifier.check("It opened in 1903 [1].", passages=["It opened in 1803."], question="When did it open?")
    for sentence in report.sentences:
        if sentence.status == "failed":
            raise NotReadyError(f"the server cannot check a sentence, so that it does not start: {sentence.reason}")


def _listening(host: str, port: int) -> socket.socket:
    """Open a socket that listens; an address that is not available raises InputError."""
    if port > 65_535:
        raise InputError(f"--port must be at most 65535; found {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error}; choose another --port or --host") from error


def _key(file: str | None, variable: str) -> str | None:
    """Read the key in a file or an environment variable; other users could see the value of an option."""
    if file is None:
        key = os.environ.get(variable)
        return stripped_key(key, f"${variable}") if key else None
    try:
        key = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the key file {file!r}: {error}") from error
    return stripped_key(key, f"the key in {file!r}")


def _require_extra() -> None:
    for package in ("starlette", "uvicorn", "httpx", "prometheus_client"):
        with MissingExtraError.unless(package, "serve"):
            __import__(package)
