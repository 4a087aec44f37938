"""Processor seconds of imports, each in a fresh interpreter: python benchmarks/import_time.py.

Prints the median and the range over the runs, and each relative to ``import torch, transformers`` of the same round.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from statistics import median

from machine import describe_machine
from tqdm import tqdm

REFERENCE = "import torch, transformers"
HELP = "from syncheck.cli import main\nmain(['--help'])"
CODES = {
    REFERENCE: REFERENCE,
    "syncheck --help": HELP,
    "import syncheck": "import syncheck",
    "from syncheck import Monitor": "from syncheck import Monitor",
    "from fod import FODGenerator": "from fod import FODGenerator",
}


def processor_seconds(code: str) -> float:
    """Processor seconds of a fresh interpreter that runs ``code``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="counted rounds, after one that is not (%(default)s)")
    args = parser.parse_args()
    seconds: dict[str, list[float]] = {name: [] for name in CODES}
    for number in tqdm(range(args.rounds + 1), disable=None):
        for name, code in CODES.items():
            spent = processor_seconds(code)
            if number:
                seconds[name].append(spent)
    print("; ".join(describe_machine("cpu", 1, "processor").values()))
    print(f"{args.rounds} rounds; processor seconds: median (least to most); median ratio to `{REFERENCE}`")
    for name, spent in seconds.items():
        ratio = median(own / other for own, other in zip(spent, seconds[REFERENCE], strict=True))
        print(f"{name:30} {median(spent):5.2f} ({min(spent):.2f} to {max(spent):.2f})  {ratio:.2f}")


if __name__ == "__main__":
    main()
