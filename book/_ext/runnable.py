"""Which cells of a page run in the reader's browser, decided from their code alone.

The browser has Python's standard library and those modules of ``keydoor`` that need nothing else. A cell is *live* if
each of its statements is runnable: it imports nothing further, and uses no name that a statement which is not runnable
has made. Of a cell that is not live, statements that are runnable and that a later live cell builds on still run before
it, such as the imports at the head of a page. The tag ``not-live`` takes a cell out.

What this reading cannot see, such as a function that changes its argument, the tests in the browser would show: there
every live cell gives what it gave in the build.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ELSEWHERE = frozenset(
    [
        "asyncio",
        "concurrent",
        "ctypes",
        "curses",
        "dbm",
        "lzma",
        "multiprocessing",
        "resource",
        "select",
        "signal",
        "socket",
        "socketserver",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "test",
        "threading",
        "tkinter",
        "turtle",
        "venv",
        "webbrowser",
    ]
)
"""Modules of the standard library that the browser's Python lacks, or that need processes, threads or a network."""

STAND_INS = {"myst_nb": {"glue"}, "IPython.display": {"display"}}
"""Names of other packages that ``session.py`` defines for the browser."""

STANDARD = frozenset(sys.stdlib_module_names) - ELSEWHERE
KNOWN = frozenset([*vars(builtins), "__name__"])
SILENT = ("print", "display", "glue")
"""Calls that only show something: not repeated for the sake of a later cell."""


# --- the package ----------------------------------------------------------------------------------------------------


def _guarded(node: ast.AST) -> bool:
    """``if TYPE_CHECKING:`` and ``try: … except ImportError:``: what stands there need not be there."""
    if isinstance(node, ast.Try):
        caught = {name.id for handler in node.handlers for name in ast.walk(handler) if isinstance(name, ast.Name)}
        return bool(caught & {"ImportError", "ModuleNotFoundError"})
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _imports(tree: ast.AST, functions: bool = True) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Modules that code imports, with the names taken from them.

    Args:
        tree: the code.
        functions: whether what a function imports when it is called counts too.
    """
    for node in ast.iter_child_nodes(tree):
        if not functions and isinstance(node, FUNCTIONS):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", tuple(alias.name for alias in node.names)
        elif not isinstance(node, ast.expr) and not _guarded(node):  # an expression holds no import
            yield from _imports(node, functions)


@dataclass(frozen=True)
class Package:
    """What of ``keydoor`` the browser can have. Modules are named without ``keydoor.``; it itself is ``""``."""

    homes: dict[str, dict[str, str]] = field(default_factory=dict)
    """For the package and each package in it: the module of each name that it offers itself, ``""`` if its own."""
    modules: frozenset[str] = frozenset()
    """Modules that need the standard library and each other; ``language`` is the file ``language/__init__.py``."""

    def has(self, module: str, names: tuple[str, ...]) -> bool:
        """Whether an import from the package works in the browser."""
        module = module.removeprefix("keydoor").removeprefix(".")
        if module not in self.homes:
            return module in self.modules
        homes = self.homes[module]
        return module in self.modules and all(
            _join(module, name) in self.modules or (name in homes and _join(module, homes[name]) in self.modules)
            for name in names
        )


def _join(package: str, name: str) -> str:
    return ".".join(filter(None, (package, name)))


def _own_names(tree: ast.Module) -> dict[str, str]:
    """Names that a package's ``__init__`` offers, with their modules: those of its table, and those it binds itself."""
    homes: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            homes[node.targets[0].id] = ""
            if node.targets[0].id == "_HOME_OF_NAME":
                homes |= ast.literal_eval(node.value)
    return homes


@cache
def read_package(folder: Path) -> Package:
    """Read a package's modules without importing them; a book without the package has none."""
    if not (folder / "__init__.py").is_file():
        return Package()
    trees: dict[str, ast.Module] = {}
    homes: dict[str, dict[str, str]] = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if (path.parent / "__init__.py").is_file() and parts[-1] != "__main__":
            name = ".".join(part for part in parts if part != "__init__")
            trees[name] = ast.parse(path.read_text("utf8"))
            if parts[-1] == "__init__":
                homes[name] = _own_names(trees[name])
    modules = set(trees)
    while True:  # take out what needs something that is not there, until nothing more goes
        package = Package(homes, frozenset(modules))
        lost = {
            name
            for name in modules
            if not all(allowed(module, names, package) for module, names in _imports(trees[name], functions=False))
        }
        if not lost:
            return package
        modules -= lost


def allowed(module: str, names: tuple[str, ...], package: Package) -> bool:
    """Whether the browser can import these names of this module, or the module itself."""
    top = module.partition(".")[0]
    if top == "keydoor":
        return package.has(module, names)
    return top in STANDARD or (module in STAND_INS and set(names) <= STAND_INS[module] and bool(names))


# --- statements -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Statement:
    """One statement at the top of a cell, by what it does to names."""

    node: ast.stmt
    binds: frozenset[str]
    changes: frozenset[str]
    """Names whose values it may change: of a method that it calls, of an item that it sets."""
    reads: frozenset[str]
    """Names that it takes from before."""
    imports: tuple[tuple[str, tuple[str, ...]], ...]
    shows: bool
    """Whether it is there for its output alone."""

    @property
    def code(self) -> str:
        return ast.unparse(self.node)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _names(node: ast.AST, binds: set[str], reads: set[str]) -> None:
    """Walk code in the order in which it runs: names that it binds, and those that it reads before it binds them."""
    if isinstance(node, SCOPES):
        own, used = set(), set()
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                (used if isinstance(part.ctx, ast.Load) else own).add(part.id)
            elif isinstance(part, ast.arg):
                own.add(part.arg)
            elif isinstance(part, SCOPES[:3]) and part is not node:
                own.add(part.name)
            elif isinstance(part, ast.alias):
                own.add((part.asname or part.name).partition(".")[0])
        if isinstance(node, SCOPES[:3]):
            binds.add(node.name)
        reads |= used - own - binds
    elif isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            binds.add(node.id)
        elif node.id not in binds:
            reads.add(node.id)
    elif isinstance(node, ast.alias):
        binds.add((node.asname or node.name).partition(".")[0])
    else:
        parts: list[ast.AST] = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.For | ast.Assign | ast.AnnAssign | ast.NamedExpr):  # the value before what it is put in
            later = node.targets if isinstance(node, ast.Assign) else [node.target]
            value = node.iter if isinstance(node, ast.For) else node.value
            parts = [value, *later, *(part for part in parts if part is not value and part not in later)]
        elif isinstance(node, ast.AugAssign):
            reads |= {_root(node.target)} - binds - {""}
        for part in filter(None, parts):
            _names(part, binds, reads)


def _statement(node: ast.stmt) -> Statement:
    binds: set[str] = set()
    reads: set[str] = set()
    _names(node, binds, reads)
    changes = set()
    if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                changes.add(_root(part.func))
            elif isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(part.ctx, ast.Load):
                changes.add(_root(part))
    shows = isinstance(node, ast.Expr) and (not isinstance(node.value, ast.Call) or _root(node.value.func) in SILENT)
    return Statement(
        node=node,
        binds=frozenset(binds),
        changes=frozenset(changes - {""}),
        reads=frozenset(reads - KNOWN),
        imports=tuple(_imports(ast.Module([node], []))),
        shows=shows,
    )


@cache
def statements(code: str) -> list[Statement]:
    """The statements of a cell, in order; an import of several names as several statements."""
    found: list[Statement] = []
    for node in ast.parse(code).body:
        split = [node]
        if isinstance(node, ast.Import | ast.ImportFrom):
            parts = ({**vars(node), "names": [alias]} for alias in node.names)
            split = [type(node)(**part) for part in parts]
        found += map(_statement, split)
    return found


# --- pages ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """A code cell of a page, as the notebook has it."""

    code: str
    tags: frozenset[str] = frozenset()
    solution_of: str = ""
    """Label of the exercise in whose solution it stands."""


@dataclass(frozen=True)
class Step:
    """What runs before later cells: a live cell, or some statements of another cell."""

    cell: int
    """Number of the cell among those that the page shows."""
    code: str = ""
    """The statements; none: the whole cell, which is live."""


@dataclass(frozen=True)
class Exercise:
    """An exercise that the reader can solve in the page."""

    label: str
    after: int
    """How many steps come before it."""
    starter: str
    """What stands in the reader's empty cell."""
    check: str
    """Code that runs after the reader's and raises :class:`AssertionError` with a sentence for the reader."""


@dataclass
class Program:
    """What of a page runs in the browser, in order."""

    steps: list[Step] = field(default_factory=list)
    exercises: list[Exercise] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)
    """Cells, counted among all of the page, whose checks cannot run in the browser, and why."""
    shown: int = 0
    """How many cells the page shows."""


def split_check(code: str) -> tuple[str, str]:
    """A cell with the tag ``check``: the reader's empty cell, which is the string at its beginning, and the rest."""
    body = ast.parse(code).body
    first = body[0] if body else None
    text = first.value.value if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else None
    if first is None or not isinstance(text, str):
        raise ValueError('a check begins with a string: what stands in the reader\'s empty cell, """answer = ..."""')
    return text.strip("\n") + "\n", "\n".join(code.splitlines()[first.end_lineno or 0 :]).strip("\n") + "\n"


def runnable(statement: Statement, spoilt: set[str], package: Package) -> bool:
    """Whether the browser can run a statement, given the names that it cannot have."""
    return not statement.reads & spoilt and all(allowed(*found, package) for found in statement.imports)


def read_program(cells: list[Cell], package: Package) -> Program:
    """What of a page runs in the browser.

    Args:
        cells: all code cells of the page.
        package: from :func:`read_package`.
    """
    program = Program()
    spoilt: set[str] = set()  # names that the browser cannot have
    known: set[str] = set()  # names that it has
    needs: list[tuple[Step, list[Statement]]] = []
    before: dict[str, tuple[int, frozenset[str], frozenset[str]]] = {}
    covered: set[str] = set()  # names of the page that a check has given other values
    for number, cell in enumerate(cells):
        if cell.solution_of and cell.solution_of not in before:
            before[cell.solution_of] = (len(needs), frozenset(known), frozenset(spoilt))
        if "check" in cell.tags:
            try:
                program.exercises.append(_exercise(cell, before, package))
            except (ValueError, SyntaxError) as error:
                program.faults.append((number, str(error)))
            covered |= {name for statement in statements(cell.code) for name in statement.binds}
            continue
        run, whole = [], "not-live" not in cell.tags
        for statement in statements(cell.code):
            if taken := statement.reads & covered:
                names = ", ".join(sorted(taken))
                program.faults.append((number, f"a check above has changed {names}: give the names in it other words"))
            covered -= statement.binds
            if runnable(statement, spoilt, package):
                spoilt -= statement.binds
                known |= statement.binds
                run.append(statement)
            else:
                spoilt |= statement.binds | statement.changes
                whole = False
        if whole and run:
            needs.append((Step(program.shown), run))
        else:
            needs += [(Step(program.shown, one.code), [one]) for one in run if not one.shows]
        program.shown += 1
    program.steps = _needed(needs, program)
    return program


def _exercise(cell: Cell, before: dict[str, tuple[int, frozenset[str], frozenset[str]]], package: Package) -> Exercise:
    if not cell.solution_of:
        raise ValueError("a check stands in a solution, between solution-start and solution-end")
    if "remove-cell" not in cell.tags:
        raise ValueError("a check is not shown: give it the tags [check, remove-cell]")
    starter, check = split_check(cell.code)
    after, known, spoilt = before[cell.solution_of]
    asked = frozenset().union(*(statement.binds for statement in statements(starter)))
    if not asked:
        raise ValueError("the string at the beginning of a check defines the names that the reader is to fill in")
    there, lost = known | asked | KNOWN, set(spoilt - asked)
    for statement in [*statements(starter), *statements(check)]:
        if not runnable(statement, lost, package):
            raise ValueError(f"the check uses what does not run in a browser ({statement.code.splitlines()[0]})")
        if missing := statement.reads - there - statement.binds:
            names = ", ".join(sorted(missing))
            raise ValueError(f"the check uses {names}, which neither the reader nor the page before has defined")
        there |= statement.binds
        lost -= statement.binds
    return Exercise(cell.solution_of, after, starter, check)


def _needed(needs: list[tuple[Step, list[Statement]]], program: Program) -> list[Step]:
    """Of cells that are not live only the lines on which something live builds; neighbouring ones become one step."""
    wanted: set[str] = set()
    checks = {}
    for exercise in program.exercises:
        reads = (s.reads for code in (exercise.starter, exercise.check) for s in statements(code))
        checks.setdefault(exercise.after, set()).update(*reads)
    kept: list[Step] = []
    places: list[int] = []
    for place, (step, run) in reversed(list(enumerate(needs))):
        wanted |= checks.get(place + 1, set())
        touched = frozenset().union(*(statement.binds | statement.changes for statement in run))
        if not step.code or touched & wanted:
            wanted |= frozenset().union(*(statement.reads for statement in run))
            kept.append(step)
            places.append(place)
    merged: list[Step] = []
    where: dict[int, int] = {}  # how many steps stand before a place of the old list
    for place, step in zip(reversed(places), reversed(kept), strict=True):
        if merged and step.code and merged[-1].code and merged[-1].cell == step.cell:
            merged[-1] = Step(step.cell, f"{merged[-1].code}\n{step.code}")
        else:
            merged.append(step)
        where[place] = len(merged)
    program.exercises = [
        Exercise(one.label, max((n for p, n in where.items() if p < one.after), default=0), one.starter, one.check)
        for one in program.exercises
    ]
    return merged


SOLUTION = re.compile(r"^(?:`{3,}|:{3,})\{solution-(start|end)\} *(\S*)", re.M)


def cells_of(notebook: dict) -> list[Cell]:
    """The code cells of a notebook, with the exercises in whose solutions they stand."""
    found, label = [], ""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            found.append(Cell(source, frozenset(cell["metadata"].get("tags", ())), label))
        else:
            for kind, name in SOLUTION.findall(source):
                label = name if kind == "start" else ""
    return found
