"""What is loaded when: no heavy library before it is needed."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = {"nltk", "pandas", "scipy", "sklearn", "torch", "transformers", "xgboost"}


def modules_after(code):
    """Top-level modules that a fresh interpreter has loaded after this code."""
    shown = "import sys\nprint('MODULES', *{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", f"{code}\n{shown}"], capture_output=True, text=True, check=True)
    (line,) = (line for line in run.stdout.splitlines() if line.startswith("MODULES"))
    return set(line.split()[1:])


@pytest.mark.parametrize(
    "code",
    [
        "import syncheck",
        "import syncheck; dir(syncheck); syncheck.__all__",
        "from syncheck.base.errors import SyncheckError",
        "from syncheck import MonitorConfig",
        "from syncheck.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "from syncheck.cli import COMMANDS, main\n"
        "for name in COMMANDS:\n try: main([name, '--help'])\n except SystemExit: pass",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_used(code):
    assert not modules_after(code) & HEAVY


@pytest.mark.parametrize("code", ["from syncheck import Monitor", "from fod import FODGenerator"])
def test_the_main_objects_load_torch_and_transformers_and_no_other_heavy_library(code):
    assert modules_after(code) & HEAVY <= modules_after("import torch, transformers") & HEAVY | {
        "torch",
        "transformers",
    }


CHECK = "check('It opened in 1903.', passages=['The mill opened in 1803.'])"


@pytest.mark.parametrize(
    "code",
    [
        "from syncheck import Verifier; Verifier()",
        f"from syncheck import Verifier; Verifier().{CHECK}",
        f"from syncheck import Verifier, load_aligner; Verifier(load_aligner('bundled')).{CHECK}",
        "from syncheck.cli import main; main(['score', '--input', 'one.jsonl', '--output', 'scores.jsonl'])",
    ],
)
def test_text_is_scored_with_torch_and_no_other_heavy_library(code, tmp_path):
    record = {"question": "When?", "context": ["The mill opened in 1803."], "response": "It opened in 1903."}
    (tmp_path / "one.jsonl").write_text(json.dumps(record) + "\n")
    assert modules_after(f"import os; os.chdir({str(tmp_path)!r}); {code}") & HEAVY == {"torch"}


@pytest.mark.parametrize("code", ["from syncheck import Monitor", "from fod import FODGenerator"])
def test_the_main_objects_load_no_network_of_transformers(code):
    check = "import sys; assert not {'transformers.modeling_utils', 'torch._dynamo'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", f"{code}\n{check}"], check=True)


def test_every_public_name_is_seen_by_dir():
    import syncheck

    assert set(syncheck.__all__) <= set(dir(syncheck))


@pytest.mark.parametrize("folder", ["benchmarks", "benchmarks/reliability", "examples/starter_kit"])
def test_every_benchmark_and_script_of_the_kit_can_be_imported(folder):
    for path in sorted((ROOT / folder).glob("*.py")):
        import_module(path.stem)
