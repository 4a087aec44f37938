"""``score``, ``report``, ``generate`` and ``doctor`` where Python, locale, home or disk are not as usual.

``python benchmarks/reliability/conditions.py --rooms 10 --seed 0``

Under ``python -O``, ``LC_ALL=C`` (with and without Python's UTF-8 mode), and a home that cannot be written, each
command must write what it writes otherwise, byte for byte; ``doctor`` must end with the same code. The home is a mount
that is read-only if the user may mount, else a path in ``/proc``. On a disk that is full (a small tmpfs if the user may
mount, else a limit on the size of files), a command must end with exit code 2 and one line that says so; with room it
must go on, and end with the output of a run that was never stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from kills import content
from records import answered

from syncheck import __version__
from syncheck.cli import main as syncheck

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "tests" / "golden" / "signals" / "llama"
CODE = """
import json, sys
from syncheck.cli import main
codes = [main(line) for line in json.loads(sys.argv[1])]
print()
print(json.dumps(codes))
"""
RECORDS = 6
FULL_RECORDS = 12
FULL = re.compile(r"^syncheck (score|report): .*(No space left on device|File too large)", re.MULTILINE)
OTHERS = "Zoë Müller zog 1901 nach Łódź. 她出生于1923年。"
CONDITIONS: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {
    "python -O": (["-O"], {}),
    "LC_ALL=C": ([], {"LC_ALL": "C"}),
    "LC_ALL=C, without UTF-8 mode": ([], {"LC_ALL": "C", "PYTHONUTF8": "0"}),
    "read-only home": ([], {"HOME": "/proc/self"}),
}
"""Options of Python and variables of the environment, by name."""


def run(
    commands: Sequence[Sequence[str]],
    *,
    options: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
) -> tuple[list[int], str]:
    """Run commands in one process; return their exit codes and what they say on standard error."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "XDG_", "LC_"))}
    environment |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **(variables or {})}
    line = [*before, sys.executable, *options, "-c", CODE, json.dumps(commands)]
    done = subprocess.run(line, env=environment, capture_output=True, check=False)
    shown = done.stdout.splitlines() or [b""]
    return json.loads(shown[-1]) if done.returncode == 0 else [], done.stderr.decode(errors="replace")


def commands(source: Path, folder: Path) -> list[list[str]]:
    """Return the command lines; the report is of what ``score`` wrote."""
    scored, page = str(folder / "scored.jsonl"), str(folder / "page.html")
    generated = ["--max-new-tokens", "12", "--output", str(folder / "generated.jsonl")]
    return [
        ["score", "--input", str(source), "--output", scored],
        ["report", scored, "--html", page],
        ["generate", "--input", str(source), *generated],
        ["doctor"],
    ]


def read_only(folder: Path) -> list[str]:
    """Return what to put before a command so that a folder is read-only for it; nothing if the user may not mount."""
    mount = f'mount --bind "{folder}" "{folder}" && mount -o remount,bind,ro "{folder}" && exec "$@"'
    before = ["unshare", "--mount", "sh", "-c", mount, "sh"]
    tried = subprocess.run([*before, "true"], capture_output=True, check=False)
    return before if tried.returncode == 0 else []


def unusual(names: Sequence[str] = tuple(CONDITIONS)) -> dict[str, list[str]]:
    """Run the commands under each condition; return what is broken by condition."""
    broken: dict[str, list[str]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as name:
        folder, rng = Path(name), random.Random(0)
        records = [answered(i, rng) for i in range(RECORDS)]
        records[0] |= {"context": [OTHERS], "response": OTHERS}
        source = folder / "in.jsonl"
        source.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), encoding="utf-8")
        (folder / "usual").mkdir()
        expected, _ = run(commands(source, folder / "usual"))
        for condition, faults in broken.items():
            options, variables = CONDITIONS[condition]
            made, home = folder / condition, folder / "home"
            made.mkdir()
            home.mkdir(exist_ok=True)
            before = read_only(home) if "HOME" in variables else []
            if before:
                variables = {"HOME": str(home)}
            codes, said = run(commands(source, made), options=options, variables=variables, before=before)
            if codes != expected or "Traceback" in said:
                faults.append(f"exit codes {codes}, {expected} otherwise; {said[-500:]}")
            for path in sorted((folder / "usual").iterdir()):
                other = made / path.name
                if not other.exists() or other.read_bytes() != path.read_bytes():
                    faults.append(f"{path.name} is another one")
    return broken


def forked(command: Sequence[str], limit: Callable[[], None] = lambda: None) -> tuple[int, str]:
    """Run a command in a child of this process, which has loaded its libraries; with what it says."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        child = os.fork()
        if not child:
            sys.stdout = sys.stderr = said
            limit()
            code = syncheck(command)
            said.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        said.seek(0)
        return os.waitstatus_to_exitcode(status), said.read()


@contextmanager
def little_room(folder: Path, kibibytes: int) -> Iterator[tuple[Callable[[], None], Callable[[], object]]]:
    """Make a folder a small disk if the user may mount one; yield a limit for a process, and what makes room."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        size = (kibibytes * 1024,) * 2
        yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, size), lambda: None
        return
    try:
        yield lambda: None, lambda: subprocess.run([*mount[:4], "remount,size=64m", str(folder)], check=True)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def full(count: int, seed: int) -> tuple[dict[str, int], list[str]]:
    """Run commands where there is less room than their output needs; return how many runs, and what is broken."""
    rng, broken = random.Random(seed), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, scored = folder / "in.jsonl", folder / "whole" / "score"
        source.write_text("".join(json.dumps(answered(i, rng)) + "\n" for i in range(FULL_RECORDS)), encoding="utf-8")
        scored.parent.mkdir()
        options = ["score", "--model", str(MODEL), "--aligner", "none", "--tokens", "--input", str(source)]
        lines: dict[str, Callable[[Path], list[str]]] = {
            "score": lambda target: [*options, "--output", str(target), "--resume"],
            "store": lambda target: [*options, "--output", f"{target}/", "--part-size", "4"],
            "report": lambda target: ["report", str(scored), "--html", str(target)],
        }
        for title, line in lines.items():
            whole = folder / "whole" / title
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                code = syncheck(line(whole))  # here, so that its children need not load the libraries again
            expected = content(whole)
            size = sum(map(len, expected.values())) if title != "store" else max(map(len, expected.values()))
            for number in range(count):
                kibibytes = rng.randint(4, size // 1024 - 4)
                with little_room(folder / f"{title}-{number}", kibibytes) as (limit, make_room):
                    target = folder / f"{title}-{number}" / title
                    failed, said = forked(line(target), limit)
                    faults = [] if failed == 2 and FULL.search(said) and "Traceback" not in said else [said[-300:]]
                    make_room()
                    if forked(line(target))[0] != code or content(target) != expected:
                        faults.append("what was made with room is another one")
                broken += [f"{title} {number}, {kibibytes} KiB: {fault}" for fault in faults]
    return dict.fromkeys(lines, count), broken


def main(argv: Sequence[str] | None = None) -> int:
    """Print the runs; return 1 if something broke."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rooms", type=int, default=10, metavar="N", help="full disks for each command (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    found = unusual()
    made, on_full = full(args.rooms, args.seed)
    print(f"syncheck {__version__}, Python {platform.python_version()}")
    for condition, faults in found.items():
        print(f"{condition:<32} 4 commands, broken {len(faults)}")
    for command, count in made.items():
        print(f"full disk, {command:<21} {count} runs, broken {sum(f.startswith(command) for f in on_full)}")
    for fault in [*(f"{c}: {f}" for c, faults in found.items() for f in faults), *on_full]:
        print(f"  {fault}")
    return int(bool(on_full) or any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
