"""A project of scenarios and fakes that a command writes: its files, the Python of its functions, and the masking
of secrets and personal data in them."""

import json
import keyword
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chaoslab.base.secrets import Masker

MODULE = "stand_ins"
TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict"}


@dataclass
class Project:
    """The files to write, by name, and what is to be said of them. `lacking`: what could not be derived."""

    files: dict[str, str] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)
    masked: Mapping[str, int] = field(default_factory=dict)


def name_tool_functions(tools: Collection[str], reserved: Collection[str]) -> dict[str, str]:
    """A name of a function for each tool, in the order of the tools. `reserved`: names that the module has already."""
    names: dict[str, str] = {}
    for tool in tools:
        name = re.sub(r"\W", "_", tool, flags=re.ASCII).strip("_") or "tool"
        name = f"tool_{name}" if name[0].isdigit() or not is_parameter_name(name) or name in reserved else name
        # Two tools may differ only in characters that no name can have.
        while name in names.values():
            name += "_2"
        names[tool] = name
    return names


def is_parameter_name(text: str) -> bool:
    """True if a parameter may have this name."""
    return text.isidentifier() and not keyword.iskeyword(text)


def render_signature(properties: Mapping[str, Any], always: Collection[str]) -> str:
    """The parameters of a function. `properties`: the JSON schema of each; `always`: those without a default."""
    typed = {
        name: f"{name}: {kind}"
        if (kind := TYPES.get(str(property_schema.get("type") if isinstance(property_schema, dict) else "")))
        else name
        for name, property_schema in properties.items()
    }
    rest = [
        f"{typed[name]} = None" if ":" in typed[name] else f"{name}=None" for name in properties if name not in always
    ]
    # Parameters with a default must come after those without.
    return ", ".join([*(typed[name] for name in properties if name in always), *rest])


def render_function(name: str, parameters: str, docstring: object, body: str) -> str:
    """The text of a function. `docstring`: its docstring; `body`: what it returns."""
    # As JSON, since a description may hold quotes and ends of lines.
    text = json.dumps(str(docstring)[:200], ensure_ascii=True)
    return f"def {name}({parameters}):\n    {text}\n    return {body}\n"


def render_module(head: str, functions: Iterable[str]) -> str:
    return "\n\n".join([head, *functions])


PATTERNS = {
    "e-mail": re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"),
    "card": re.compile(r"(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d.-])"),
    "phone": re.compile(r"(?<![\w.+-])(?:\+\d[\d ().-]{6,16}\d|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4})(?![\w-])"),
}
"""Personal data, by what is put in its place: an e-mail address; 13 to 19 digits with a card's check digit; a phone
number with its country's code after a +, or of the form 555-123-4567. Secrets are those of `base/secrets.py`."""


class PersonalDataMasker:
    """Puts the same placeholder, such as `<e-mail 1>`, for the same value everywhere. `on`: False leaves all as it
    is."""

    def __init__(self, *, on: bool = True) -> None:
        self._on, self._secrets = on, Masker()
        self._known: dict[tuple[str, str], str] = {}

    def mask_text(self, text: str) -> str:
        """The text, which may be JSON, without secrets and personal data."""
        if not self._on:
            return text
        text = self._secrets.mask(text)
        for kind, form in PATTERNS.items():
            text = form.sub(lambda match, kind=kind: self._make_placeholder(kind, match[0]), text)  # type: ignore[misc]
        return text

    def mask_value(self, value: Any) -> Any:
        """The same of a JSON value."""
        masked = self.mask_text(encoded := json.dumps(value, ensure_ascii=False))
        if masked == encoded:
            return value
        try:
            return json.loads(masked)
        except ValueError:  # a number was masked
            return masked

    def _make_placeholder(self, kind: str, text_found: str) -> str:
        digits = [int(character) for character in text_found if character.isdigit()]
        if kind == "card" and not _is_card_number(digits):
            return text_found
        # An address is the same in capitals, and a number with other blanks.
        same = text_found.lower() if kind == "e-mail" else "".join(map(str, digits))
        number = 1 + sum(known_kind == kind for known_kind, _ in self._known)
        return self._known.setdefault((kind, same), f"<{kind} {number}>")

    @property
    def masked_counts(self) -> dict[str, int]:
        """The number of different values that were masked, by kind."""
        counts_by_kind = {kind: sum(known_kind == kind for known_kind, _ in self._known) for kind in PATTERNS}
        return {kind: count for kind, count in {"secret": len(self._secrets.known), **counts_by_kind}.items() if count}


def _is_card_number(digits: list[int]) -> bool:
    """True if the digits pass Luhn's check and are not all the same."""
    doubled = (digit if n % 2 == 0 else sum(divmod(2 * digit, 10)) for n, digit in enumerate(reversed(digits)))
    # Zeros alone pass the check too.
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1
