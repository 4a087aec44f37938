"""Records and monitors for tests of commands that need no bundled kit."""

import json
import os
import signal
import subprocess
import sys
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


_KILLED = """
import os, signal, sys
from syncheck import cli
from syncheck.corpus.store import Store

add, added = Store.add, []

def killed(self, number, table):
    if len(added) == 2:
        (self.folder / "part-000002-0.parquet.unfinished-0").write_bytes(b"PAR1 half")
        os.kill(os.getpid(), signal.SIGKILL)
    added.append(number)
    add(self, number, table)

Store.add = killed
sys.exit(cli.main(sys.argv[1:]))
"""


def run_until_killed(*command):
    """Run a command that is killed when two parts are in its store and the third is half written."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    found = subprocess.run([sys.executable, "-c", _KILLED, *command], env=environment, capture_output=True)
    assert found.returncode == -signal.SIGKILL, found.stderr.decode()
