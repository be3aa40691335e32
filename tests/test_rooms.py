"""Each room of the package says at its top which of its modules other rooms use; all others have names with a _."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import chaoslab

PACKAGE = Path(chaoslab.__file__).parent
PARTS = [PACKAGE.parent / part for part in ("agent", "flask_tools", "proxy_manager")]
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
FOUND_BY_NAME = (
    "analysis.assertions", "core.triggers", "faults", "model.formats", "model.skills", "reports.contents.advice",
    "reports.formats", "search.planning", "search.strategies", "seams.adapters", "seams.protocols",
    "wire.toxics", "worlds.virtual.patches",
)  # fmt: skip
"""The folders of plug-ins and of other files that are alike: what one is called there, its users see."""
RUN_BY_NAME = {"lab.scenario_agent", "scenarios.rows", "surfaces.pytest_plugin", "surfaces.schemas.stand_ins"}
"""Modules that a process, pytest or an entry point is given the name of."""


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


@cache
def sources() -> dict[str, str]:
    """All modules but for the lab's own parts, which stand above the library."""
    return {name_of(path): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}


def room_of(name: str) -> str:
    return name.partition(".")[0]


def imported(text: str) -> Iterator[str]:
    """The modules that a text imports anywhere, and those that it names in full."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{each.name}" for each in node.names)
    yield from re.findall(r"chaoslab(?:\.\w+)+", text)


@cache
def used_outside() -> dict[str, set[str]]:
    """Room → its modules that another room uses."""
    texts = sources() | {str(path): path.read_text(encoding="utf-8") for part in PARTS for path in part.rglob("*.py")}
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for user, text in texts.items():
        for each in imported(text):
            name = each.removeprefix("chaoslab.")
            while name and name not in sources():
                name = name.rpartition(".")[0]
            if name and room_of(name) in found and room_of(name) != room_of(user) and name not in ROOMS:
                found[room_of(name)].add(name)
    for place in chaoslab._PLACES.values():
        if place not in ROOMS:
            found[room_of(place)].add(place)
    return found


@cache
def packages() -> set[str]:
    """The modules that hold others."""
    return {name.rpartition(".")[0] for name in sources()}


def in_folder(name: str) -> bool:
    return name.startswith(tuple(f"{folder}." for folder in FOUND_BY_NAME))


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_lists_what_others_use(room: str) -> None:
    said = re.search(r"Other rooms use ((?:`[\w.]+`[,.][\s#]+)+)", sources()[room])
    listed = {f"{room}.{name}" for name in re.findall(r"`([\w.]+)`", said[1] if said else "")}
    assert listed == {name for name in used_outside()[room] - packages() if not in_folder(name)}


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in ("cli", "faults")])
def test_what_no_other_room_uses_begins_with_an_underscore(room: str) -> None:
    own = {name for name in sources() if room_of(name) == room and name != room} - RUN_BY_NAME
    own = {name for name in own - packages() if not in_folder(name)}
    private = {name for name in own if name.rpartition(".")[2].startswith("_")}
    assert not private & used_outside()[room]
    assert own - private - used_outside()[room] <= charts()


def charts() -> set[str]:
    """The charts, each found by its file's name."""
    return {name for name in sources() if re.match(r"reports\.charts\.[a-z]", name)}


def test_no_package_has_a_name_of_its_own_that_a_module_in_it_takes_once_it_is_loaded() -> None:
    for name, text in sources().items():
        body = ast.parse(text).body
        own = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        own |= {
            node.id for part in body if isinstance(part, ast.Assign) for node in part.targets if type(node) is ast.Name
        }
        assert not [each for each in sorted(own) if f"{name}.{each}" in sources()], name
