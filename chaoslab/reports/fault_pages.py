"""The catalogue of faults as text: a table by family, and a page for each fault."""

import ast
import inspect
import math
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from chaoslab.base.jsonable import cut_text
from chaoslab.base.registry import list_installed_plugins, list_plugins, map_bundled_plugins
from chaoslab.core.fault import GROUP, Fault, get_trait, load_fault
from chaoslab.reports.page import WIDTH, wrap_text

UNITS = {
    "_s": "seconds", "_bytes": "bytes", "_kb": "kilobytes", "_kb_s": "kilobytes a second", "_days": "days",
    "_usd": "dollars",
}  # fmt: skip
"""The unit of a parameter by the end of its name."""
OTHERS = "of other packages"


def render_catalogue() -> str:
    """All faults, a line each, by family. No fault of the lab's own is imported: its file's first line is read."""
    families: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, module in sorted(map_bundled_plugins(GROUP).items()):
        # Importing every fault for a line of each would take longer than all the rest.
        families[module.split(".")[-2]].append((name, _read_docstring_line(module)))
    families[OTHERS] = [(name, _describe_plugin_fault(name)) for name in list_installed_plugins(GROUP)]
    width = max(len(name) for entries in families.values() for name, _ in entries)
    lines = []
    for family, entries in families.items():
        if entries:
            lines += [family, *(cut_text(f"  {name:{width}}  {about}", WIDTH) for name, about in entries), ""]
    lines.append("chaoslab faults NAME tells of one; chaoslab faults check proves that they arrive")
    return "\n".join(lines) + "\n"


def catalogue_to_json(chosen_names: Sequence[str]) -> list[dict[str, Any]]:
    """Faults as JSON values, all of them if none is named. One that cannot be used has an `error`. Raises LookupError:
    no such fault."""
    families = {name: module.split(".")[-2] for name, module in map_bundled_plugins(GROUP).items()}
    rows: list[dict[str, Any]] = []
    for name in chosen_names or list_plugins(GROUP):
        family = families.get(name)
        try:
            fault = load_fault(name)
        except LookupError as error:
            # With names, the user wants to know why one is of no use; in a list the others count.
            if chosen_names:
                raise
            rows.append({"fault": name, "family": family, "error": str(error.args[0])})
            continue
        about = (inspect.getdoc(inspect.getmodule(fault)) or "").partition("\n\n")[0]
        rows.append(
            {
                "fault": name,
                "family": family,
                "layer": fault.layer,
                "about": " ".join(about.split()),
                "parameters": {
                    parameter_field.name: describe_parameter(fault, parameter_field).partition(": ")[2]
                    for parameter_field in fields(fault)
                },
                "example": get_trait(fault, "example") or None,
            }
        )
    return rows


def _read_docstring_line(module: str) -> str:
    """The first line of a module's docstring."""
    spec = find_spec(module)
    assert spec is not None
    # Files of a package always have an origin; the assertions are for the type checker.
    assert spec.origin is not None
    docstring = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n\n")[0].replace("\n", " ")


def _describe_plugin_fault(name: str) -> str:
    """The first line on a plug-in's fault, or the reason that it cannot be used."""
    try:
        return (inspect.getdoc(load_fault(name)) or "").partition("\n")[0]
    except LookupError as error:
        return str(error.args[0])


def render_fault_page(name: str, examples: Sequence[tuple[str, Sequence[str]]]) -> str:
    """The page of a fault. `examples`: what a caller sees of it, as the name of a seam and lines of a trial's story.
    Raises LookupError: no such fault. BrokenPlugin: it cannot be used."""
    fault = load_fault(name)
    module = inspect.getmodule(fault)
    subject = ((module and module.__doc__) or "").strip()
    lines = [name, "", *wrap_text(subject), ""]
    for paragraph in (inspect.getdoc(fault) or "").split("\n\n"):
        lines += [*wrap_text(paragraph.replace("`", "")), ""]
    lines += [*wrap_text(f"Layer: {fault.layer}. {' '.join(describe_traits(fault))}"), ""]
    rows = [describe_parameter(fault, item) for item in fields(fault)]
    lines += (
        ["Parameters:", *(text for row in rows for text in wrap_text(row, indent="  "))]
        if rows
        else ["It has no parameters."]
    )
    if example := get_trait(fault, "example"):
        lines += ["", "Example:", f"  lab.inject({example})"]
    if source := get_trait(fault, "source"):
        lines += ["", "Seen in the real world:", f"  {source}"]
    for seam, story in examples:
        lines += ["", f"Met at a {seam}:", *(text for item in story for text in _wrap_story_line(item))]
    return "\n".join(lines) + "\n"


def _wrap_story_line(text: str) -> list[str]:
    return textwrap.wrap(text.strip(), WIDTH, initial_indent="  ", subsequent_indent=" " * 13, break_on_hyphens=False)


def describe_traits(fault: type[Fault]) -> Iterator[str]:
    """A sentence on each trait of a fault that differs from the default."""
    if get_trait(fault, "of_process"):
        yield "All clients of the service meet it until it is over, so more calls do than its chance says."
    elif get_trait(fault, "conditional"):
        yield "It decides by itself whether there is anything to do."
    if needs := get_trait(fault, "needs"):
        yield f"It needs {needs}."
    if half := get_trait(fault, "corrupts"):
        yield f"It changes the {half} in silence, so nobody can notice it and nobody recovers from it."
    if get_trait(fault, "lasts"):
        yield "It goes on until the trial ends."


def describe_parameter(fault: type[Fault], parameter_field: Field[Any]) -> str:
    """A parameter with its kind, bounds, unit and default, in words."""
    hint = get_type_hints(fault)[parameter_field.name]
    kind = " or ".join(map(repr, get_args(hint))) if get_origin(hint) is Literal else hint.__name__
    # The longest end that fits: `_kb_s` ends in `_s` too.
    unit_suffix = max(
        (unit_suffix for unit_suffix in UNITS if parameter_field.name.endswith(unit_suffix)), key=len, default=""
    )
    unit = f", {UNITS[unit_suffix]}" if unit_suffix and hint in (int, float) else ""
    default = "" if parameter_field.default is MISSING else f" (default: {parameter_field.default!r})"
    return f"{parameter_field.name}: {kind}{describe_bounds(fault, parameter_field.name)}{unit}{default}"


def describe_bounds(fault: type[Fault], name: str) -> str:
    """The bounds of a parameter in words; empty if it has none of its own."""
    low, high = get_trait(fault, "bounds").get(name, (-math.inf, math.inf))
    return f", {low:,.12g} to {high:,.12g}" if (low, high) != (-math.inf, math.inf) else ""
