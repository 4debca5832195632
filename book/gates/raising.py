"""Which functions of a package may raise: those that contain ``raise``, and those that use one of those.

Read from the sources, without importing them. Followed are names of functions of the same package, constructors that
are called, and ``self.name``; not what other libraries raise. A ``raise`` without an exception passes on an error of
someone else and does not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def may_raise(package: Path) -> set[str]:
    """Names with their dots of all functions, methods and classes that may raise."""
    raising: set[str] = set()
    uses: dict[str, set[str]] = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for name, used, raises in _functions(module, ast.parse(path.read_text("utf8")), package.name):
            uses.setdefault(name, set()).update(used)
            if raises:
                raising.add(name)
    while more := {name for name, used in uses.items() if name not in raising and used & raising}:
        raising |= more
    return raising


def _functions(module: str, tree: ast.Module, package: str) -> Iterator[tuple[str, set[str], bool]]:
    """Each function of a module with the names that it uses, and whether it contains ``raise``."""
    known = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == package
        for alias in node.names
    }
    own = [node for node in tree.body if isinstance(node, (*FUNCTIONS, ast.ClassDef))]
    known |= {node.name: f"{module}.{node.name}" for node in own}
    for node in own:
        name = f"{module}.{node.name}"
        if isinstance(node, ast.ClassDef):
            methods = [child for child in node.body if isinstance(child, FUNCTIONS)]
            for method in methods:
                yield f"{name}.{method.name}", set(_used(method, known, name)), _raises(method)
            # Making an object runs these two; a class without them raises nothing.
            yield name, {f"{name}.__init__", f"{name}.__post_init__"}, False
        else:
            yield name, set(_used(node, known)), _raises(node)


def _raises(function: Function) -> bool:
    return any(isinstance(node, ast.Raise) and node.exc for node in ast.walk(function))


def _used(function: Function, known: dict[str, str], owner: str = "") -> Iterator[str]:
    for part in function.body:
        for node in ast.walk(part):
            # A function counts wherever it is named, since it may be handed on; a class only where it is called.
            if isinstance(node, ast.Name) and node.id in known and not node.id[:1].isupper():
                yield known[node.id]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known:
                yield known[node.func.id]
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                yield f"{owner}.{node.attr}"
