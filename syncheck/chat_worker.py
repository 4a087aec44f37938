"""A program that writes chats by the templates it is sent: one JSON object per line in, one out.

It is started by :mod:`syncheck.chats` as a file, not as a module: so it starts without torch. What a template can use
up is this process's, which is stopped where it uses too much.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

__all__ = ["main", "written"]

MAX_MEMORY_BYTES = 2 << 30
"""Address space of this process, on systems that can limit it (not Windows)."""

ORPHAN_SECONDS = 60
"""After so long on one chat it ends itself, should nobody be left to stop it."""


def main() -> None:
    """Answer each line of standard input until it ends."""
    _limit_memory()
    from transformers.utils import chat_template_utils  # loaded before the first chat, whose time is measured

    _send({"ready": chat_template_utils.__name__})
    for line in sys.stdin.buffer:
        if hasattr(signal, "alarm"):
            signal.alarm(ORPHAN_SECONDS)
        _send(written(json.loads(line)))
        if hasattr(signal, "alarm"):
            signal.alarm(0)


def written(request: dict[str, Any]) -> dict[str, Any]:
    """Return a chat as ``text``, or as ``error`` what the template did instead of writing one.

    Parameters
    ----------
    request
        ``turns``, ``template``, ``special_tokens`` by name, and ``most``, the characters that it may write.
    """
    from jinja2 import TemplateError
    from transformers.utils.chat_template_utils import render_jinja_template

    try:
        (text,), _ = render_jinja_template(
            conversations=[request["turns"]],
            chat_template=request["template"],
            add_generation_prompt=True,
            **request["special_tokens"],
        )
    except TemplateError as error:
        return {"error": str(error)[:500]}
    except Exception as error:  # noqa: BLE001 (whatever a template calls may raise anything)
        return {"error": f"{type(error).__name__}: {error}"[:500]}
    if len(text) > request["most"]:
        return {"error": f"it writes {len(text)} characters, of which at most {request['most']} are taken"}
    return {"text": text}


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = MAX_MEMORY_BYTES if most == resource.RLIM_INFINITY else min(most, MAX_MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))


def _send(answer: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
