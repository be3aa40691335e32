"""A project of scenarios and stand-ins that a command writes: its files, and the Python of its functions."""

import json
import keyword
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

MODULE = "stand_ins"
TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict"}


@dataclass
class Project:
    """The files to write, by name, and what is to be said of them. `lacking`: what could not be derived."""

    files: dict[str, str] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)
    masked: Mapping[str, int] = field(default_factory=dict)


def function_names(tools: Collection[str], taken: Collection[str]) -> dict[str, str]:
    """A name of a function for each tool, in the order of the tools. `taken`: names that the module has already."""
    found: dict[str, str] = {}
    for tool in tools:
        name = re.sub(r"\W", "_", tool, flags=re.ASCII).strip("_") or "tool"
        name = f"tool_{name}" if name[0].isdigit() or not is_name(name) or name in taken else name
        while name in found.values():
            name += "_2"
        found[tool] = name
    return found


def is_name(text: str) -> bool:
    """True if a parameter may have this name."""
    return text.isidentifier() and not keyword.iskeyword(text)


def signature(properties: Mapping[str, Any], always: Collection[str]) -> str:
    """The parameters of a function. `properties`: the JSON schema of each; `always`: those without a default."""
    typed = {
        name: f"{name}: {kind}" if (kind := TYPES.get(str(of.get("type") if isinstance(of, dict) else ""))) else name
        for name, of in properties.items()
    }
    rest = [
        f"{typed[name]} = None" if ":" in typed[name] else f"{name}=None" for name in properties if name not in always
    ]
    return ", ".join([*(typed[name] for name in properties if name in always), *rest])


def function(name: str, parameters: str, says: object, body: str) -> str:
    """The text of a function. `says`: its docstring; `body`: what it returns."""
    text = json.dumps(str(says)[:200], ensure_ascii=True)
    return f"def {name}({parameters}):\n    {text}\n    return {body}\n"


def module(head: str, functions: Iterable[str]) -> str:
    return "\n\n".join([head, *functions])
