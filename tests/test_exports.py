"""Public names: each of a stub is there; a public module lists its own in ``__all__``, sorted and complete."""

import ast
import importlib

import pytest
from boundaries import ROOT, package_files

PACKAGES = [
    path.removesuffix("/__init__.py").replace("/", ".")
    for path in package_files()
    if path.endswith("/__init__.py") and (ROOT / path).with_suffix(".pyi").exists()
]
MODULES = (
    "fod",
    "syncheck.base.errors",
    "syncheck.integrations.langchain",
    "syncheck.testing",
    "syncheck.results.types",
)


def export_faults(source, exported):
    """What is wrong with the names ``exported`` by a module with this source."""
    listed, tree = list(exported), ast.parse(source)
    defined = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }
    return [
        *([f"not sorted: {listed}"] if listed != sorted(listed) else []),
        *([f"listed twice: {listed}"] if len(set(listed)) != len(listed) else []),
        *(f"public but not listed: {name}" for name in sorted(defined - set(listed))),
        *(f"private but listed: {name}" for name in listed if name.startswith("_") and name != "__version__"),
    ]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_has_each_name_of_its_stub(name):
    package = importlib.import_module(name)
    assert package.__all__
    assert [n for n in package.__all__ if n.startswith("_") or not hasattr(package, n)] == []


@pytest.mark.parametrize("name", MODULES)
def test_a_public_module_lists_its_names(name):
    module = importlib.import_module(name)
    with open(module.__file__, encoding="utf-8") as file:
        assert export_faults(file.read(), module.__all__) == []
    assert [n for n in module.__all__ if not hasattr(module, n)] == []


@pytest.mark.parametrize(
    ("source", "exported", "fault"),
    [
        ("def b(): ...\ndef a(): ...", ["b", "a"], "not sorted"),
        ("class A: ...\ndef b(): ...", ["A"], "public but not listed: b"),
        ("async def b(): ...", [], "public but not listed: b"),
        ("class A: ...", ["A", "A"], "listed twice"),
        ("def _a(): ...", ["_a"], "private but listed: _a"),
    ],
)
def test_a_faulty_list_is_found(source, exported, fault):
    assert [f for f in export_faults(source, exported) if f.startswith(fault)]


def test_private_helpers_and_constants_need_no_listing():
    assert export_faults("LIMIT = 3\ndef _helper(): ...\nclass A: ...", ["A"]) == []
