"""Scenarios that are written in Python: those of a file, or the one of module:name. Their module is imported."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base.boundary import let_through
from chaoslab.base.jsonable import describe_error, line
from chaoslab.base.registry import did_you_mean
from chaoslab.scenarios._modules import modules_of
from chaoslab.scenarios.builder import ScenarioBuilder
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.scenario import folders_of
from chaoslab.scenarios.sources import lost

if TYPE_CHECKING:
    from chaoslab.scenarios.scenario import Scenario

WHY = 300
"""The most characters of an import's error."""


def scenarios_of(given: str, *, changed: Sequence[str] = ()) -> "list[Scenario]":
    """The scenarios that a file's module binds to names, or those of one name. `changed`: as for `load`. Raises
    ScenarioError: it cannot be imported, has no scenario, or something in one is wrong."""
    folder, module, name = _place(given)
    with modules_of(folder, [module]):
        try:
            found = vars(importlib.import_module(module))
        except BaseException as error:  # noqa: BLE001 - a user's module may raise anything
            let_through(error)
            raise ScenarioError(f"{given}: it cannot be imported: {line(describe_error(error), WHY)}") from None
        if name:
            if name not in found:
                raise ScenarioError(f"{given}: {module} has no '{name}': {_near(name, found)}")
            made = list(_builders(found[name]))
        else:
            made = [each for own, value in found.items() if not own.startswith("_") for each in _builders(value)]
        if not made:
            what = f"{name} is none" if name else "none of its names is one"
            raise ScenarioError(f"{given}: there is no scenario: {what}; bind one, as in refund = lab.scenario(…)")
        once = {id(each): each for each in made}.values()
        return [each for one in once for each in one.within(given, folder).check(changed=changed)]


def _place(given: str) -> tuple[Path, str, str]:
    """The folder to import from, the module, and the name in it."""
    if not given.endswith(".py"):
        module, _, name = given.partition(":")
        if module.endswith(".py") and (why := lost(given, folders_of(None))):
            raise ScenarioError(f"{given}: {why}")
        return Path(), module, name
    path = Path(given)
    if not path.is_file():
        raise ScenarioError(f"{given}: there is no such file")
    parts, folder = [path.stem], path.resolve().parent
    while (folder / "__init__.py").is_file():
        parts, folder = [folder.name, *parts], folder.parent
    if not all(each.isidentifier() for each in parts):
        raise ScenarioError(f"{given}: {'.'.join(parts)} is no module's name: rename it, with _ for other characters")
    return folder, ".".join(parts), ""


def _near(name: str, found: Mapping[str, Any]) -> str:
    known = [own for own, value in found.items() if any(_builders(value))]
    return did_you_mean(name, known) if known else "it has no scenario"


def _builders(value: Any) -> Iterator[ScenarioBuilder]:
    if isinstance(value, ScenarioBuilder):
        yield value
    elif isinstance(value, list | tuple):
        yield from (each for each in value if isinstance(each, ScenarioBuilder))
