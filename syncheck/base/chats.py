"""Chats written by a tokenizer's template, which is a program from an unknown author and runs within limits.

The template runs in a process of its own, this module run as a program, since nothing else can stop a loop inside
Python's own code: one JSON object per line in, one out. It is started with the first chat and kept.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any

from syncheck.base.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MAX_SECONDS = 5.0  # limit for writing one chat; ordinary ones take less than a millisecond
MAX_CHARACTERS = 10_000_000  # longest chat that is accepted
START_SECONDS = 60.0  # limit for starting the process; one to two seconds are usual
MAX_MEMORY_BYTES = 2 << 30  # limit of the process's address space, where the system can limit it (not Windows)
ORPHAN_SECONDS = 60  # after so long on one chat the process ends itself, in case its parent is gone
REMEDY = "leave the system prompt out, use template='plain', or write prompts of your own with prompt_from_texts"


def write_chat(tokenizer: PreTrainedTokenizerBase, turns: Sequence[Mapping[str, str]]) -> str:
    """Write a chat as ``apply_chat_template(turns, tokenize=False, add_generation_prompt=True)`` does.

    A template that refuses the turns, fails, or exceeds a limit of this module raises InputError.
    """
    try:
        template = tokenizer.get_chat_template()
    except ValueError as error:  # several templates, none of which is the default
        raise InputError(f"the tokenizer has no default chat template: {error}; {REMEDY}") from error
    special = tokenizer.special_tokens_map
    request = {"turns": [*map(dict, turns)], "template": template, "special_tokens": special, "most": MAX_CHARACTERS}
    answer = _worker.ask(json.dumps(request, default=str).encode() + b"\n")
    if "text" not in answer:
        raise InputError(f"the tokenizer's chat template refuses these turns: {answer['error']}; {REMEDY}")
    return str(answer["text"])


class _Worker:
    """The process and its pipes; takes one request at a time, from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, request: bytes) -> dict[str, Any]:
        """Send a line and return the answer; it has ``error`` if the process had to be stopped or ended by itself."""
        with self._lock:
            try:
                if self._process is None or self._process.poll() is not None:
                    self.stop()
                    self._process = _start()
                answer = _exchanged(self._process, request, MAX_SECONDS)
            except BaseException:  # Ctrl-C, for example: this answer would be taken for that to the next chat
                self.stop()
                raise
            if answer is None:
                self.stop()
                return {"error": f"it took more than {MAX_SECONDS:g} seconds, or more memory than there is"}
            return answer

    def stop(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _start() -> subprocess.Popen[bytes]:
    paths = [*filter(None, sys.path), str(Path(__file__).parents[1])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "syncheck.base.chats"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,  # Ctrl-C is for us
    )
    if _exchanged(process, b"", START_SECONDS) is None:
        process.kill()
        process.communicate()
        raise InputError(
            f"the process that renders chat templates did not start with {sys.executable!r} (status "
            f"{process.returncode}); {REMEDY}"
        )
    return process


def _exchanged(process: subprocess.Popen[bytes], request: bytes, seconds: float) -> dict[str, Any] | None:
    """Write a line, if there is one, and return the next answer; None if none comes in time."""
    assert process.stdin is not None and process.stdout is not None
    stop = Timer(seconds, process.kill)
    stop.daemon = True
    stop.start()
    try:
        process.stdin.write(request)
        process.stdin.flush()
        line = process.stdout.readline()
    except BrokenPipeError:
        return None
    finally:
        stop.cancel()
        stop.join()
    return dict(json.loads(line)) if line.endswith(b"\n") else None


_worker = _Worker()
atexit.register(_worker.stop)


# A copy starts a process of its own; a thread that was not copied may hold the lock.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_worker.__init__)  # type: ignore[misc]


def _serve() -> None:
    with suppress(ImportError):  # on Windows
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = MAX_MEMORY_BYTES if most == resource.RLIM_INFINITY else min(most, MAX_MEMORY_BYTES)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
    from transformers.utils import chat_template_utils  # loaded before the first chat, whose time is measured

    _send({"ready": chat_template_utils.__name__})
    alarm = getattr(signal, "alarm", lambda seconds: None)  # Windows has none
    for line in sys.stdin.buffer:
        alarm(ORPHAN_SECONDS)
        _send(_written(json.loads(line)))
        alarm(0)


def _written(request: dict[str, Any]) -> dict[str, Any]:
    from jinja2 import TemplateError
    from transformers.utils.chat_template_utils import render_jinja_template

    try:
        (text,), _ = render_jinja_template(
            conversations=[request["turns"]],
            chat_template=request["template"],
            add_generation_prompt=True,
            **request["special_tokens"],
        )
    except Exception as error:  # noqa: BLE001 (whatever a template calls may raise anything)
        said = str(error) if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
        return {"error": said[:500]}
    if len(text) > request["most"]:
        return {"error": f"it writes {len(text)} characters; at most {request['most']} are allowed"}
    return {"text": text}


def _send(answer: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve()
