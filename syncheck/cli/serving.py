"""``syncheck gateway`` checks the answers of a server, and ``syncheck serve`` those of your own model."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncheck.base.checks import stripped_key
from syncheck.base.errors import InputError, MissingExtraError, NotReadyError
from syncheck.cli.generate import decoder
from syncheck.cli.monitors import monitor_with_model, scoring_monitor
from syncheck.cli.options import DECODERS
from syncheck.decoding import seeded_generator
from syncheck.monitor import Monitor
from syncheck.results.events import Event
from syncheck.results.types import RagPrompt

if TYPE_CHECKING:
    from syncheck.results.protocol import Reveal
    from syncheck.serving.app import AnswerSource
    from syncheck.serving.own_model import Decoder

_OF_FOD = frozenset(DECODERS) - {"greedy", "sample", "flare"}
"""Decoders of fod that can be served; flare needs passages of its own to retrieve from."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def gateway(args: argparse.Namespace) -> int:
    """Serve the gateway until it is interrupted; returns the exit code."""
    if not args.upstream.startswith(("http://", "https://")):
        raise InputError(f"--upstream must begin with http:// or https://; found {args.upstream!r}")
    _require_extra()
    from syncheck.serving.gateway import Gateway

    upstream_key = _key(args.upstream_key_file, "SYNCHECK_UPSTREAM_KEY")
    monitor = scoring_monitor(args, "generic")
    return _serve(
        Gateway(monitor, args.upstream, failing=args.failing, api_key=upstream_key, timeout=args.upstream_timeout), args
    )


def serve(args: argparse.Namespace) -> int:
    """Serve a model until it is interrupted; returns the exit code."""
    _require_extra()
    from syncheck.serving.own_model import OwnModel

    monitor = monitor_with_model(args, "generation")
    if monitor.aggregator is None:
        raise NotReadyError("serve needs a monitor that scores; pass --monitor DIR, or leave the other options out")
    source = OwnModel(
        monitor,
        _decoders(monitor),
        default=args.decoder,
        name=Path(args.model).name if args.model else "syncheck-kit",
        failing=args.failing,
        max_new_tokens=args.max_new_tokens,
    )
    return _serve(source, args)


def _decoders(monitor: Monitor) -> dict[str, Decoder]:
    """Return the decoders by name, those of fod with their defaults."""
    found: dict[str, Decoder] = {"greedy": partial(_plain, monitor, False), "sample": partial(_plain, monitor, True)}
    return found | {name: partial(_by_fod, name, decoder(monitor, name, {})) for name in DECODERS if name in _OF_FOD}


def _plain(
    monitor: Monitor, do_sample: bool, prompt: RagPrompt, *, reveal: Reveal, seed: int, **options: Any
) -> Iterator[Event]:
    generator = seeded_generator(monitor.model, seed)
    return monitor.stream(prompt, reveal=reveal, generator=generator, do_sample=do_sample, **options)


def _by_fod(name: str, built: Any, prompt: RagPrompt, *, reveal: Reveal, **options: Any) -> Iterator[Event]:
    shown = {"reveal": reveal} if name == "fod" else {}  # the others show a sentence when it stays
    events: Iterator[Event] = built.stream(prompt, do_sample=False, **shown, **options)
    return events


def _serve(source: AnswerSource, args: argparse.Namespace) -> int:
    import uvicorn

    from syncheck.serving.app import ServerConfig, create_app
    from syncheck.serving.connections import PromptConnection

    loopback = args.host in _LOOPBACK
    config = ServerConfig(
        reveal=args.reveal,
        stop_below=args.stop_below,
        stop_after=args.stop_after,
        max_running=args.max_running,
        max_waiting=args.max_waiting,
        max_body=args.max_body,
        max_context=args.max_context,
        timeout=args.timeout,
        api_key=_key(args.api_key_file, "SYNCHECK_API_KEY"),
        only_loopback=loopback,
        resume_seconds=args.resume_seconds,
    )
    listening = _listening(args.host, args.port)
    if not loopback and config.api_key is None:
        sys.stderr.write(f"syncheck: anyone who reaches {args.host} can ask; pass --api-key-file to change that\n")
    sys.stderr.write(f"syncheck: listening on http://{args.host}:{args.port}\n")
    served = uvicorn.Config(
        create_app(source, config),
        http=PromptConnection,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    with listening, suppress(KeyboardInterrupt):
        uvicorn.Server(served).run([listening])
    return 0


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; an address that is not available raises InputError."""
    if port > 65_535:
        raise InputError(f"--port must be at most 65535; found {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error}; choose another --port or --host") from error


def _key(file: str | None, variable: str) -> str | None:
    """Return the key in a file or an environment variable; other users could see the value of an option."""
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
