"""Beyond the import contracts of pyproject.toml: who reads the environment, and what loads only where it is used."""

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("chaoslab", "agent", "flask_tools", "proxy_manager")
FILES = sorted(path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
SERVING = Path("flask_tools/serving.py")
"""Its classes are waitress's, with a change; it is itself imported where it is used."""
APP = Path("flask_tools/app.py")
"""Flask's, likewise."""
SPECS = {Path("chaoslab") / name for name in ("scenarios/spec.py", "scenarios/drawn_spec.py", "campaigns/_spec.py")}
LATE = {SERVING, APP, Path("chaoslab/lab/_virtual_lab.py"), Path("chaoslab/wire/toxiproxy_package.py"), *SPECS}
LIGHT = [path for path in FILES if path.parts[0] in ("chaoslab", "flask_tools") and path not in LATE]
HEAVY = {
    "docker", "flask", "langchain", "langchain_core", "langchain_groq", "matplotlib", "numpy", "pandas", "pydantic",
    "requests",
    "rich", "toxiproxy", "waitress", "werkzeug",
}  # fmt: skip
ROOTS = {path for path in FILES if path.is_relative_to("chaoslab/execution") or path.is_relative_to("chaoslab/lab")}
"""The files that put a run together, and so choose its world."""
VIRTUAL = Path("chaoslab/worlds/virtual")
OF_VIRTUAL = {"greenlet", "time_machine"}
READERS = {
    Path("chaoslab/execution/forked.py"): "/proc",
    Path("chaoslab/surfaces/mcp_proxy.py"): "its standard input",
    Path("chaoslab/base/extras.py"): "what pip noted of the package",
    Path("chaoslab/scenarios/new_project.py"): "the package's own file",
    Path("chaoslab/record/provenance.py"): "the package's own files",
    Path("chaoslab/reports/fault_pages.py"): "the package's own files",
    Path("chaoslab/reports/formats/html/__init__.py"): "the package's own files",
    Path("flask_tools/movies.py"): "the package's own file",
    Path("flask_tools/service_module.py"): "the package's own files",
}
"""The files that read others themselves, and which."""
ENVIRONMENT = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}


@dataclass(frozen=True)
class Seen:
    """Everything that is asked of one file: lines, and the names of what it calls and loads."""

    environment: list[int]
    virtual: list[int]
    called: set[str]
    reads: list[int]
    at_once: set[str]
    at_all: set[str]
    modules_at_once: set[str | None]


@cache
def seen() -> dict[Path, Seen]:
    """Each file, read once for all the rules."""
    return {path: see(ast.parse((ROOT / path).read_text(encoding="utf-8"))) for path in FILES}


def see(tree: ast.Module) -> Seen:
    nodes = list(ast.walk(tree))
    return Seen(
        list(reads_environment(nodes)),
        list(asks_for_virtual(nodes)),
        {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)},
        list(reads_files(nodes)),
        set(loads_at_once(tree)),
        loads_at_all(nodes),
        {node.module for node in tree.body if isinstance(node, ast.ImportFrom)},
    )


def reads_environment(nodes: Iterable[ast.AST]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT:
            if isinstance(node.value, ast.Name) and node.value.id == "os":
                yield node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "os" and ENVIRONMENT & {n.name for n in node.names}:
            yield node.lineno


def reads_files(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """The lines that read a file in a way that may hang on a pipe, fill the memory or give what is no UTF-8."""
    for node in nodes:
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else _word(node.func)
            modes = [a.value for a in [*node.args, *(k.value for k in node.keywords)] if isinstance(a, ast.Constant)]
            texts = [mode for mode in modes if isinstance(mode, str)]
            bare = isinstance(node.func, ast.Name) or not (node.args or node.keywords)
            opens = name == "open" and (bare or any(set(text) <= set("rbt") for text in texts))
            writes = any(set(text) & set("wax+") and set(text) <= set("rwabxt+") for text in texts)
            if name in ("read_text", "read_bytes") or (opens and not writes):
                yield node.lineno


def loads_at_once(module: ast.Module) -> Iterator[str]:
    """The top-level names of what the module imports when it is imported; not what only a type checker imports."""
    todo: list[ast.AST] = list(module.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            todo += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            todo += ast.iter_child_nodes(node)


def loads_at_all(nodes: Sequence[ast.AST]) -> set[str]:
    """The top-level names of what the module imports, wherever in it."""
    found = {name.name.partition(".")[0] for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return found | {
        str(node.module).partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom) and not node.level
    }


def asks_for_virtual(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """The lines that ask if a world is virtual."""
    nodes = list(nodes)
    if not any("virtual" in _word(node) for node in nodes if isinstance(node, ast.Constant | ast.Name | ast.Attribute)):
        return
    for node in nodes:
        tests: list[ast.AST] = []
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            tests = [node.test]
        elif isinstance(node, ast.comprehension):
            tests = list(node.ifs)
        elif isinstance(node, ast.Match):
            tests = [node.subject, *(case.pattern for case in node.cases)]
        elif isinstance(node, ast.BoolOp | ast.Compare):
            tests = [node]
        if any("virtual" in _word(part) for test in tests for part in ast.walk(test)):
            yield node.lineno if hasattr(node, "lineno") else 0


def _word(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return node.value.lower() if isinstance(node.value, str) and node.value.isidentifier() else ""
    return str(getattr(node, "id", getattr(node, "attr", ""))).lower()


def test_only_settings_reads_the_environment() -> None:
    assert [path for path, one in seen().items() if one.environment] == [Path("chaoslab/config/settings.py")]


def test_only_the_reader_of_files_reads_files() -> None:
    assert {path: seen()[path].reads for path in FILES if seen()[path].reads and path not in READERS} == {}
    assert [path for path in READERS if not seen()[path].reads] == []


@pytest.mark.parametrize(
    "source", ["open(path)", "path.open()", "path.open('rb')", "open(p, encoding='utf-8')", "p.read_text()"]
)
def test_a_reading_of_a_file_would_be_seen(source: str) -> None:
    assert list(reads_files(ast.walk(ast.parse(source)))) == [1]


@pytest.mark.parametrize("source", ["open(path, 'wb')", "path.open('ab', buffering=0)", "Run.open(logs, name)"])
def test_a_writing_is_no_reading(source: str) -> None:
    assert list(reads_files(ast.walk(ast.parse(source)))) == []


def test_no_module_loads_a_heavy_library_before_it_is_used() -> None:
    assert {path: found for path in LIGHT if (found := HEAVY & seen()[path].at_once)} == {}


def test_serving_is_loaded_where_a_service_is_served_and_nowhere_at_once() -> None:
    modules = {"chaoslab.flask_tools.serving", "chaoslab.flask_tools.app"}
    assert [path for path, one in seen().items() if modules & one.modules_at_once and path not in LATE] == []


def test_nothing_is_ever_evaluated() -> None:
    forbidden = {"eval", "exec", "compile", "__import__"}
    assert {path: found for path, one in seen().items() if (found := one.called & forbidden)} == {}


def test_nothing_asks_whether_its_world_is_virtual() -> None:
    others = [path for path in FILES if path not in ROOTS and VIRTUAL not in path.parents]
    assert {path: found for path in others if (found := seen()[path].virtual)} == {}


def test_greenlets_and_a_clock_that_can_be_moved_are_the_virtual_worlds_alone() -> None:
    others = [path for path in FILES if VIRTUAL not in path.parents]
    assert {path: found for path in others if (found := seen()[path].at_all & OF_VIRTUAL)} == {}


@pytest.mark.parametrize(
    "source",
    [
        "if world == 'virtual': pass",
        "a = 1 if settings.is_virtual else 2",
        "match world:\n    case 'virtual': pass",
        "[w for w in worlds if w.virtual]",
        "real = world != 'virtual'",
    ],
)
def test_a_question_whether_a_world_is_virtual_would_be_seen(source: str) -> None:
    assert list(asks_for_virtual(ast.walk(ast.parse(source))))


def test_an_import_within_a_function_would_be_seen() -> None:
    assert loads_at_all([*ast.walk(ast.parse("def f():\n    from time_machine import travel"))]) & OF_VIRTUAL


@pytest.mark.parametrize(
    ("source", "is_seen"),
    [
        ("import pandas", True),
        ("from flask.views import View", True),
        ("try:\n    import docker\nexcept ImportError:\n    pass", True),
        ("class A:\n    import rich", True),
        ("def f():\n    import pandas", False),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import flask", False),
        ("from chaoslab import pandas", False),
    ],
)
def test_a_heavy_import_would_be_seen(source: str, is_seen: bool) -> None:
    assert bool(HEAVY & set(loads_at_once(ast.parse(source)))) is is_seen


@pytest.mark.parametrize(
    "source", ["import os\nos.environ['A']", "import os\nos.getenv('A')", "from os import environ"]
)
def test_a_look_at_the_environment_would_be_seen(source: str) -> None:
    assert list(reads_environment(ast.walk(ast.parse(source))))


def circles(*, typed: bool) -> list[set[str]]:
    """Modules that import each other in a circle; with `typed`, also those that only a type checker sees do."""
    import grimp

    graph = grimp.build_graph("chaoslab", exclude_type_checking_imports=not typed, cache_dir=None)
    assert len(graph.modules) > 200
    assert "chaoslab.agent.command" in graph.modules
    follows = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    found: list[set[str]] = []
    for module in sorted(follows):
        reached, todo = set[str](), list(follows[module])
        while todo:
            if (one := todo.pop()) not in reached:
                reached.add(one)
                todo += follows[one]
        circle = {one for one in reached if one == module or module in follows[one]} if module in reached else set()
        if circle:
            found.append(circle)
    return found


def test_no_files_import_each_other_in_a_circle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a virtual world machine, loop and sockets name each other's types, and import none of them in a circle."""
    package = tmp_path / "chaoslab"  # with the lab's parts within it, as it is installed
    package.mkdir()
    for each in [*(ROOT / PACKAGES[0]).iterdir(), *(ROOT / name for name in PACKAGES[1:])]:
        (package / each.name).symlink_to(each)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "chaoslab")  # else the graph is of the one that is loaded
    assert circles(typed=False) == []
    assert {name for circle in circles(typed=True) for name in circle if "worlds.virtual" not in name} == set()
