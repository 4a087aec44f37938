"""``__all__`` of every module: sorted, complete, and each name really there."""

import ast
import importlib

import pytest
from boundaries import ROOT, package_files

MODULES = [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in package_files()]


def export_faults(source, exported):
    """What is wrong with the names ``exported`` by a module with this source."""
    listed = list(exported)
    defined = {
        node.name
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }
    return [
        *([f"not sorted: {listed}"] if listed != sorted(listed) else []),
        *([f"listed twice: {listed}"] if len(set(listed)) != len(listed) else []),
        *(f"public but not listed: {name}" for name in sorted(defined - set(listed))),
        *(f"private but listed: {name}" for name in listed if name.startswith("_") and name != "__version__"),
    ]


def names_passed_on_by(source):
    """Names that a package's ``__init__`` takes from its own modules and does not use itself."""
    tree = ast.parse(source)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    taken = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in {"syncheck", "fod"}
        for alias in node.names
    }
    return {name for name in taken - used if not name.startswith("_")}


@pytest.mark.parametrize(("path", "name"), list(zip(package_files(), MODULES, strict=True)))
def test_module_lists_its_public_names(path, name):
    module = importlib.import_module(name)
    source = (ROOT / path).read_text(encoding="utf-8")
    exported = getattr(module, "__all__", [])
    assert export_faults(source, exported) == []
    assert [n for n in exported if not hasattr(module, n)] == []


@pytest.mark.parametrize("path", [p for p in package_files() if p.endswith("__init__.py")])
def test_package_lists_what_it_takes_from_its_modules(path):
    source = (ROOT / path).read_text(encoding="utf-8")
    name = path.removesuffix("/__init__.py").replace("/", ".")
    assert names_passed_on_by(source) <= set(getattr(importlib.import_module(name), "__all__", []))


@pytest.mark.parametrize("name", ["syncheck", "fod"])
def test_top_package_has_public_names(name):
    assert importlib.import_module(name).__all__


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


def test_a_name_taken_and_not_used_is_passed_on():
    source = "from fod.a import used, passed, _private\nfrom numpy import array\nused()"
    assert names_passed_on_by(source) == {"passed"}
