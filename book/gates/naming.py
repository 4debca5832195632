"""Functions and tests by name, found in the sources: whether they exist, and whether a test touches a function.

Nothing is imported and nothing is run. A test consists of its own code, its decorators and those of its class, and all
functions, fixtures, classes and constants of its file that this code names, and that those name in turn. It *touches* a
function if this code names it by a name under which the file has imported it (``from keydoor.returns import
td_residuals``, also with ``as``, or from ``keydoor`` itself), or as an attribute of its module
(``returns.td_residuals``). A docstring or a string does not count, nor does a function that is only called by another
one of the package. Fixtures of a ``conftest.py`` are not followed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


# --- functions ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _parsed(path: Path, changed: int) -> ast.Module:
    return ast.parse(path.read_text("utf8"), str(path))


def _tree(path: Path) -> ast.Module:
    return _parsed(path, path.stat().st_mtime_ns)


def fault_of_function(root: Path, dotted: str) -> str | None:
    """Why a function with this name does not exist; ``None`` if it does. Nothing is imported."""
    parts = dotted.split(".")
    file, rest = _module(root, parts)
    if file is None:
        return f"there is no module for {dotted}; write it in full, such as keydoor.returns.td_residuals"
    if not rest:
        return f"{dotted} is a module; name a function of it"
    if any(part.startswith("_") for part in rest):
        return f"{dotted} is private; name the public function that a reader calls"
    if not _defined(root, file, _tree(file).body, rest):
        return f"{'.'.join(rest)} is not defined in {file.relative_to(root)}; name the module that defines it"
    return None


def _module(root: Path, parts: list[str]) -> tuple[Path | None, list[str]]:
    """The file of the longest beginning that is a module, and what is left of the name."""
    for length in range(len(parts), 0, -1):
        base = root.joinpath(*parts[:length])
        for file in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
            if file.is_file():
                return file, parts[length:]
    return None, parts


def _defined(root: Path, file: Path, body: list[ast.stmt], rest: list[str]) -> bool:
    for node in body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name == rest[0]:
            return len(rest) == 1 or (isinstance(node, ast.ClassDef) and _defined(root, file, node.body, rest[1:]))
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            lent = {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            if rest[0] in lent:
                return fault_of_function(root, ".".join([lent[rest[0]], *rest[1:]])) is None
    return False


# --- tests ----------------------------------------------------------------------------------------------------------


def fault_of_test(root: Path, test: str) -> str | None:
    """Why pytest would not run a test of this name; ``None`` if it would."""
    file, *names = test.split("::")
    path = root / file
    if not names or not re.fullmatch(r"test_\w+\.py|\w+_test\.py", path.name):
        return f"the test {test} is no name of a test; write tests/test_FILE.py::test_NAME"
    if not path.is_file():
        return f"the test file {file} does not exist"
    chain = _chain(_tree(path), names)
    if not chain or not names[-1].startswith("test"):
        return f"{'::'.join(names)} is not in {file}; has the test been renamed?"
    marks = [ast.unparse(decorator) for node in chain for decorator in node.decorator_list]
    if any(re.match(r"pytest\.mark\.(skip|xfail)\b", mark) for mark in marks):
        return f"the test {test} is skipped or expected to fail, and checks nothing"
    return None


def _chain(tree: ast.Module, names: list[str]) -> list[Definition]:
    """The class and the function of a test, or nothing if one of them does not exist."""
    body: list[ast.stmt] = tree.body
    chain: list[Definition] = []
    for name in names:
        node = next((n for n in body if isinstance(n, (*FUNCTIONS, ast.ClassDef)) and n.name == name), None)
        if node is None:
            return []
        chain.append(node)
        body = node.body
    return chain if isinstance(chain[-1], FUNCTIONS) else []


def touches(root: Path, test: str, function: str) -> bool:
    """Whether the code of a test names a function; the rule stands at the head of this module."""
    file, *names = test.split("::")
    tree = _tree(root / file)
    known = _known_as(tree, function)
    own = {name: node for node in tree.body for name in _bound(node)}
    *classes, last = _chain(tree, names)
    waiting: list[ast.AST] = [last, *(decorator for node in classes for decorator in node.decorator_list)]
    for node in classes:  # its fixtures
        own |= {child.name: child for child in node.body if isinstance(child, FUNCTIONS) and child is not last}
    done: set[int] = set()
    while waiting:
        part = waiting.pop()
        if id(part) in done:
            continue
        done.add(id(part))
        for node in ast.walk(part):
            if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in known:
                return True
            for name in _mentioned(node):
                if name in own:
                    waiting.append(own[name])
    return False


def _mentioned(node: ast.AST) -> Iterator[str]:
    """Names by which code reaches other code of its file: variables, arguments (fixtures), ``self.helper``."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        yield node.attr
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("usefixtures"):
        yield from (str(argument.value) for argument in node.args if isinstance(argument, ast.Constant))


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement at the top of a file defines."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))


@lru_cache(maxsize=256)  # a file's imports are asked for once for each pair of a test and a function
def _imports(tree: ast.Module) -> tuple[ast.AST, ...]:
    return tuple(node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))


def _known_as(tree: ast.Module, function: str) -> set[str]:
    """How code of a file writes a function, given what the file imports: ``td_residuals``, ``returns.td_residuals``."""
    prefixes = [function.split(".")[:n] for n in range(1, function.count(".") + 2)]
    names = {".".join(prefix): function.split(".")[len(prefix) :] for prefix in prefixes}
    package, last = function.split(".")[0], function.split(".")[-1]
    names[f"{package}.{last}"] = []  # lent by the package
    found = set()
    for node in _imports(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                rest = names.get(f"{node.module}.{alias.name}")
                if rest is not None:
                    found.add(".".join([alias.asname or alias.name, *rest]))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname and alias.name in names:
                    found.add(".".join([alias.asname, *names[alias.name]]))
                elif not alias.asname and (function.startswith(f"{alias.name}.") or alias.name == package):
                    found |= {function, f"{package}.{last}"}
    return found
