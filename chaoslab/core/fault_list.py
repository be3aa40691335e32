"""The list of all faults with parameters and defaults, for the help of `inject`. It is made when it is read."""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import MISSING, Field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from chaoslab.base.boundary import let_through
from chaoslab.base.registry import names
from chaoslab.core.fault import GROUP, Fault, load

WIDTH = 100


def fault_list() -> str:
    """Each fault with its parameters, its layer and its description; for a plug-in that cannot be used, the reason."""
    lines = []
    for name in names(GROUP):
        try:
            fault = load(name)
        except LookupError as error:
            lines += [name, *_indented(str(error.args[0]))]
            continue
        parameters = ", ".join(_parameter(each, _options(fault, each.name)) for each in fields(fault))
        about = (inspect.getdoc(fault) or "").partition("\n\n")[0]
        lines += [f"{name}({parameters}), of the layer {fault.layer}", *_indented(about)]
    return "\n".join(lines)


def _parameter(parameter: Field[Any], options: tuple[Any, ...]) -> str:
    """The name and the default, followed by the other options of a Literal."""
    if parameter.default is MISSING:
        return parameter.name if parameter.default_factory is MISSING else f"{parameter.name}=…"
    others = (option for option in options if option != parameter.default)
    return f"{parameter.name}={' | '.join(map(repr, (parameter.default, *others)))}"


def _options(fault: type[Fault], parameter: str) -> tuple[Any, ...]:
    try:
        hint = get_type_hints(fault).get(parameter)
    except BaseException as error:  # noqa: BLE001 - annotations are code, which may be a plug-in's
        let_through(error)
        return ()
    return get_args(hint) if get_origin(hint) is Literal else ()


def _indented(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), WIDTH, initial_indent="    ", subsequent_indent="    ")


class WithFaults(str):
    """A docstring that ends with the list of faults. The faults are loaded when it is read."""

    __slots__ = ()

    def __str__(self) -> str:
        return (
            f"{inspect.cleandoc(str.__str__(self))}\n\n"
            f"The faults, with their parameters and defaults:\n\n{fault_list()}\n"
        )

    def expandtabs(self, tabsize: int = 8) -> str:  # type: ignore[override]
        """The text with the list; `inspect.getdoc`, and so `help`, calls this first."""
        return str(self).expandtabs(tabsize)
