"""Reads a module's source and says which rules of the architecture it breaks, with file and line."""

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
ROOMS = (
    *("base", "results", "text", "reading", "aligners", "contrasts", "features", "config"),
    *("aggregators", "scoring", "citations", "watching", "checkpoint", "verifier"),
    *("prompts", "signals", "decoding", "monitor_base", "replay", "model_monitor"),
    *("labelling", "corpus", "evaluation", "training", "monitor", "kit", "spans", "endpoints"),
    *("report", "serving", "integrations", "cli", "testing", "__main__"),
)
"""The parts of ``syncheck`` in the order of imports: each may import those before it, lazily too, and no other."""
APART = {
    "aligners": frozenset(),
    "contrasts": frozenset({"aligners"}),
    "features": frozenset({"aligners"}),
    "aggregators": frozenset({"aligners", "contrasts"}),
    "signals": frozenset(ROOMS) - {"base", "results", "signals"},
}
"""Stages, and the parts that come before each and that it does not import all the same."""
WITHOUT_MODEL = ROOMS[: ROOMS.index("verifier") + 1]
"""Parts that need no language model: they import neither transformers' causal models nor what reads one."""
COMMAND_LINE = frozenset({"cli"})
PUBLIC_ROOMS = frozenset({"syncheck.base.errors", "syncheck.decoding", "syncheck.results", "syncheck.results.types"})
"""Public subpackages, which fod may import from beside ``syncheck`` itself."""
OUTSIDE = frozenset({"benchmarks", "examples", "tests"})
PICKLES = frozenset({"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"})
PICKLE_READER = "syncheck/aggregators/published.py"
UNSAFE_KEYWORDS = {"allow_pickle": False, "weights_only": True}
"""Keyword of a loading function, and the only value it may have."""


@dataclass(frozen=True)
class Import:
    """``from module import name`` or, where name is None, ``import module``."""

    module: str
    name: str | None
    line: int
    lazy: bool

    @property
    def root(self) -> str:
        return self.module.partition(".")[0]

    @property
    def part(self) -> str:
        """Part of the package that is meant: ``signals`` for ``syncheck.signals.forward``."""
        parts = [*self.module.split("."), *([self.name] if self.name else [])]
        return parts[1] if len(parts) > 1 else "__init__"


def package_files() -> list[str]:
    return sorted(
        str(p.relative_to(ROOT).as_posix()) for name in ("syncheck", "fod") for p in (ROOT / name).rglob("*.py")
    )


def violations(path: str, source: str, *, public: Collection[str]) -> list[str]:
    """``path`` is relative to the repository, ``public`` holds the names that ``syncheck`` exports."""
    tree = ast.parse(source)
    found = [*_broken_calls(path, tree), *_relative_imports(tree), *_unplaced(path)]
    for imported in imports(tree):
        found += [(imported.line, message) for message in _broken_imports(path, imported, public)]
    return [f"{path}:{line}: {message}" for line, message in sorted(found)]


def import_graph() -> dict[str, set[str]]:
    """Return the modules that each module imports, lazily or for a type too, names of packages by their stubs."""
    modules = {name.replace("/", ".").removesuffix(".py").removesuffix(".__init__"): name for name in package_files()}
    stubs = {
        (module, alias.asname or alias.name): f"{module}.{node.module}"
        for module in modules
        if (stub := ROOT / module.replace(".", "/") / "__init__.pyi").exists()
        for node in ast.walk(ast.parse(stub.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        found = imports(ast.parse((ROOT / path).read_text("utf-8")))
        graph[module] = {_defining(i.module, i.name, modules, stubs) for i in found} & modules.keys() - {module}
    return graph


def _defining(
    module: str, name: str | None, modules: Collection[str], stubs: Mapping[tuple[str, str | None], str]
) -> str:
    if f"{module}.{name}" in modules:
        return f"{module}.{name}"
    while (module, name) in stubs:
        module = stubs[module, name]
    return module


def imports(tree: ast.Module) -> Iterator[Import]:
    lazy = {id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)}
    for node in ast.walk(tree):
        inside = id(node) in lazy
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, None, node.lineno, inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (Import(node.module, alias.name, node.lineno, inside) for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node) in {"import_module", "__import__"}:
            if node.args and isinstance(node.args[0], ast.Constant):
                yield Import(str(node.args[0].value), None, node.lineno, inside)


def _broken_imports(path: str, imported: Import, public: Collection[str]) -> Iterator[str]:
    package, part = _place(path)
    if imported.root in OUTSIDE:
        yield f"imports {imported.module}, which is not part of the package"
    reads = imported.root in PICKLES and imported.name != "UnpicklingError"
    if reads and (path, imported.module) != (PICKLE_READER, "pickle"):
        yield f"imports {imported.module}; only {PICKLE_READER} may read pickles, through its allow-list"
    if package == "syncheck" and imported.root == "fod" and not (part in COMMAND_LINE and imported.lazy):
        yield "imports fod; only the command line may, inside the function that needs it"
    if package == "syncheck" and imported.root == "syncheck" and part in ROOMS and imported.part != "__version__":
        if imported.part in APART.get(part, ()):
            yield f"{part} imports {imported.part}; stages do not import each other"
        elif part in COMMAND_LINE and imported.module == "syncheck" and imported.name is None:
            return  # it takes public names from the package, as users do
        elif imported.part not in ROOMS[: ROOMS.index(part) + 1]:
            yield f"{part} imports {imported.part}, which does not come before it; imports run down the order of ROOMS"
    if package == "fod" and imported.root == "syncheck":
        if imported.module not in PUBLIC_ROOMS and (imported.module != "syncheck" or imported.name not in public):
            yield f"imports {imported.module}.{imported.name}; fod uses syncheck and {', '.join(sorted(PUBLIC_ROOMS))}"


def _broken_calls(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    may_print = _place(path)[1] in COMMAND_LINE
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Name) and call.func.id == "print" and not may_print:
            yield call.lineno, "prints; only the command line may"
        for keyword in call.keywords:
            only = UNSAFE_KEYWORDS.get(keyword.arg or "")
            if only is not None and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is only):
                yield call.lineno, f"passes {keyword.arg}; the only safe value is {only}"


def _relative_imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, "relative import; name the module in full"


def _unplaced(path: str) -> Iterator[tuple[int, str]]:
    package, part = _place(path)
    if package == "syncheck" and part not in {"__init__", *ROOMS}:
        yield 1, f"{part} has no place in the order of imports; decide it in tests/boundaries.py"


def _place(path: str) -> tuple[str, str]:
    """Package and part of it: ``syncheck`` and ``signals`` for ``syncheck/signals/forward.py``."""
    package, part = PurePosixPath(path).with_suffix("").parts[:2]
    return package, part


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
