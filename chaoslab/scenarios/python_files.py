"""Scenarios that are written in Python: those of a file, or the one of module:name. Their module is imported."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.jsonable import describe_error, to_one_line
from chaoslab.base.registry import suggest_name
from chaoslab.scenarios._modules import isolate_folder_modules
from chaoslab.scenarios.builder import ScenarioBuilder
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.scenario import list_module_folders
from chaoslab.scenarios.sources import explain_missing_module

if TYPE_CHECKING:
    from chaoslab.scenarios.scenario import Scenario

REASON_MAX = 300
"""The most characters of an import's error."""


def load_python_scenarios(source: str, *, changed: Sequence[str] = ()) -> "list[Scenario]":
    """The scenarios that a file's module binds to names, or those of one name. `changed`: as for `load`. Raises
    ScenarioError: it cannot be imported, has no scenario, or something in one is wrong."""
    folder, module, name = _locate_module(source)
    with isolate_folder_modules(folder, [module]):
        try:
            module_names = vars(importlib.import_module(module))
        except BaseException as error:  # noqa: BLE001 - a user's module may raise anything
            reraise_unless_foreign(error)
            raise ScenarioError(
                f"{source}: it cannot be imported: {to_one_line(describe_error(error), REASON_MAX)}"
            ) from None
        if name:
            if name not in module_names:
                raise ScenarioError(f"{source}: {module} has no '{name}': {_suggest_name(name, module_names)}")
            builders = list(_find_builders(module_names[name]))
        else:
            builders = [
                builder
                for global_name, value in module_names.items()
                if not global_name.startswith("_")
                for builder in _find_builders(value)
            ]
        if not builders:
            hint = f"{name} is none" if name else "none of its names is one"
            raise ScenarioError(f"{source}: there is no scenario: {hint}; bind one, as in refund = lab.scenario(…)")
        # One scenario may be bound to two names.
        unique_builders = {id(builder): builder for builder in builders}.values()
        return [
            builder
            for unique_builder in unique_builders
            for builder in unique_builder.with_source_file(source, folder).check(changed=changed)
        ]


def _locate_module(source: str) -> tuple[Path, str, str]:
    """The folder to import from, the module, and the name in it."""
    if not source.endswith(".py"):
        module, _, name = source.partition(":")
        if module.endswith(".py") and (reason := explain_missing_module(source, list_module_folders(None))):
            raise ScenarioError(f"{source}: {reason}")
        return Path(), module, name
    path = Path(source)
    if not path.is_file():
        raise ScenarioError(f"{source}: there is no such file")
    parts, folder = [path.stem], path.resolve().parent
    # Up to the folder above the package, as Python would import it.
    while (folder / "__init__.py").is_file():
        parts, folder = [folder.name, *parts], folder.parent
    if not all(name_part.isidentifier() for name_part in parts):
        raise ScenarioError(f"{source}: {'.'.join(parts)} is no module's name: rename it, with _ for other characters")
    return folder, ".".join(parts), ""


def _suggest_name(name: str, module_names: Mapping[str, Any]) -> str:
    scenario_names = [global_name for global_name, value in module_names.items() if any(_find_builders(value))]
    return suggest_name(name, scenario_names) if scenario_names else "it has no scenario"


def _find_builders(value: Any) -> Iterator[ScenarioBuilder]:
    if isinstance(value, ScenarioBuilder):
        yield value
    elif isinstance(value, list | tuple):
        yield from (item for item in value if isinstance(item, ScenarioBuilder))
