"""Records and monitors for tests of commands that need no bundled kit."""

import json
from pathlib import Path

from doubles import PASSAGES, QUESTION

LLAMA = Path(__file__).parent / "golden" / "signals" / "llama"
"""A small random model."""
ANSWER = "Angus Scott is a rugby player. He grew up on a farm in 1982."


def record(number, **fields):
    return {"id": f"r{number}", "question": QUESTION, "context": list(PASSAGES), "response": ANSWER} | fields


def write(path, *records):
    """Write records, or lines as they are given, in text or bytes."""
    lines = [r if isinstance(r, bytes) else (r if isinstance(r, str) else json.dumps(r)).encode() for r in records]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return str(path)


def read(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
