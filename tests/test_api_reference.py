"""docs/api.md lists the public names, all of them and no others."""

import importlib
import re

import pytest
from boundaries import PUBLIC_ROOMS, ROOT

ROWS = re.findall(r"^\| (`.*?) \| (.*) \|$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), flags=re.M)
LISTED = [path for names, _ in ROWS for path in re.findall(r"`([\w.]+)`", names)]
ADAPTERS = ("syncheck.integrations", "syncheck.integrations.langchain")
MODULES = (
    *("syncheck", *sorted(PUBLIC_ROOMS), *ADAPTERS),
    *("syncheck.corpus", "syncheck.endpoints", "syncheck.report", "syncheck.testing", "fod"),
)


def of_path(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_s_public_names_are_those_listed(module):
    listed = {path.rpartition(".")[2] for path in LISTED if path.rpartition(".")[0] == module}
    assert listed == set(importlib.import_module(module).__all__)


def test_a_name_is_listed_once_and_of_a_public_module():
    assert len(set(LISTED)) == len(LISTED)
    assert {path.rpartition(".")[0] for path in LISTED} <= set(MODULES)


@pytest.mark.parametrize(("names", "said"), ROWS)
def test_a_row_is_one_object_with_one_sentence_or_two(names, said):
    first, *others = re.findall(r"`([\w.]+)`", names)
    assert all(of_path(other) is of_path(first) for other in others)
    assert said.endswith(".") and len(said) <= 200
