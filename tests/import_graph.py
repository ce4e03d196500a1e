"""Who needs whom: the import graph, without imports that only annotate functions, and of the
helpers of tests the names that are imported."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
LAYERS = ("domain", "application", "infrastructure", "interfaces")
_READS_ANNOTATIONS = "interfaces."
"""Litestar and Typer call functions by the annotations of their arguments."""


@dataclass(frozen=True, slots=True)
class _Code:
    """What a file imports and where it uses it, by the names in it.

    - `imported`: the module of a name, and the name there; None for the module itself.
    - `parts`: the names that a definition at the top uses. `rest` has those that other statements
      use.
    """

    imported: dict[str, tuple[str, str | None]]
    parts: dict[str, frozenset[str]] = field(default_factory=dict)
    rest: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, tree: ast.Module, modules: set[str]) -> "_Code":
        code = cls(imported=dict(_imports(tree, modules)))
        for statement in tree.body:
            used = frozenset(_Used().names_of(statement))
            names = _defined(statement)
            code.parts.update(dict.fromkeys(names, used))
            if not names:
                code.rest.update(used)
        return code

    @property
    def used(self) -> set[str]:
        return self.rest.union(*self.parts.values())


class _Used(ast.NodeVisitor):
    """Names that a statement uses, other than in annotations of functions: objects of these classes
    come from code that made them. Arguments are used, and so are texts, as either may name a
    fixture."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._depth = 0

    def names_of(self, statement: ast.stmt) -> set[str]:
        self.visit(statement)
        return self._names

    def visit_Name(self, node: ast.Name) -> None:
        self._names.add(node.id)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._names.add(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)
        if not self._depth:
            self.visit(node.annotation)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = node.args
        self._names.update(argument.arg for argument in ast.walk(arguments) if isinstance(argument, ast.arg))
        for part in (*node.decorator_list, *arguments.defaults, *filter(None, arguments.kw_defaults)):
            self.visit(part)
        self._depth += 1
        for statement in node.body:
            self.visit(statement)
        self._depth -= 1


def import_graph() -> grimp.ImportGraph:
    """A name that a helper of tests defines is a node, `MODULE:NAME`. Tests import the conftest of
    each folder above."""
    graph = grimp.build_graph(*LAYERS, "tests", cache_dir=None)
    files = {module: file for module in graph.modules if (file := _file_of(module)) is not None}
    narrow(graph, {module: file.read_text(encoding="utf-8") for module, file in files.items()})
    with_conftests(graph)
    return graph


def narrow(graph: grimp.ImportGraph, texts: dict[str, str]) -> None:
    """Replace the imports of these modules by what they use."""
    codes = {
        module: _Code.of(ast.parse(text), graph.modules)
        for module, text in texts.items()
        if not module.startswith(_READS_ANNOTATIONS)
    }
    helpers = {module: code for module, code in codes.items() if _is_helper(module)}
    for module, code in codes.items():
        seen = {target for target, _ in code.imported.values()}
        for target in graph.find_modules_directly_imported_by(module) & seen:
            graph.remove_import(importer=module, imported=target)
        _add(graph, module, _needed(code, code.rest if module in helpers else code.used, helpers))
        for name, used in code.parts.items() if module in helpers else ():
            own = {f"{module}:{other}" for other in used & code.parts.keys() - {name}}
            _add(graph, f"{module}:{name}", {module, *own, *_needed(code, used, helpers)})


def with_conftests(graph: grimp.ImportGraph) -> None:
    for test in filter(is_test, graph.modules):
        folders = test.split(".")[:-1]
        for depth in range(1, len(folders) + 1):
            conftest = ".".join([*folders[:depth], "conftest"])
            if conftest in graph.modules:
                graph.add_import(importer=test, imported=conftest)


def is_test(module: str) -> bool:
    """Whether the module is a file of tests."""
    return module.startswith("tests.") and module.rpartition(".")[2].startswith("test_")


def _is_helper(module: str) -> bool:
    return module.startswith("tests.") and not is_test(module) and not module.endswith(".conftest")


def _imports(tree: ast.Module, modules: set[str]) -> Iterator[tuple[str, tuple[str, str | None]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found = (whole, None) if whole in modules else (node.module, alias.name)
                if found[0] in modules:
                    yield alias.asname or alias.name, found


def _defined(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []


def _needed(code: _Code, used: Iterable[str], helpers: dict[str, _Code]) -> set[str]:
    needed: set[str] = set()
    for name in code.imported.keys() & set(used):
        module, part = code.imported[name]
        parts = helpers[module].parts if module in helpers else {}
        if part in parts:
            needed.add(f"{module}:{part}")
        else:
            needed.update({module, *(f"{module}:{other}" for other in parts)})
    return needed


def _add(graph: grimp.ImportGraph, importer: str, needed: Iterable[str]) -> None:
    for imported in needed:
        graph.add_import(importer=importer, imported=imported)


def _file_of(module: str) -> Path | None:
    folder = ROOT if module.startswith("tests") else ROOT / "src"
    path = folder.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists()), None)
