"""Reads YAML, JSON and TOML into plain data, with the line and column of each value of YAML. Nothing in a file
is executed: only mappings, lists, texts, numbers, true, false and null are made. Size, depth and the expansion of
aliases are bounded."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.base.files import open_regular

if TYPE_CHECKING:
    import yaml

BYTES_MAX = 1024 * 1024
DEPTH_MAX = 40
VALUES_MAX = 50_000
"""The most values of a file, aliases expanded."""
SUFFIXES = (".yaml", ".yml", ".json", ".toml")
EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")
"""Numbers that YAML 1.2 and JSON know, and that PyYAML takes for texts."""
TAG = "tag:yaml.org,2002:"
PLAIN = {TAG + kind for kind in ("null", "bool", "int", "float", "str", "timestamp", "value", "seq", "map")}
"""The tags of plain data; a timestamp is read as a text."""
PATH_TEXT_MAX = 80
"""The most characters of a way that an error names."""
_DEEP_KEY = re.compile(
    rf"""^[ \t]*\[{{0,2}}[ \t]*(?:(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{DEPTH_MAX}}}""", re.MULTILINE
)
"""The beginning of a line of TOML whose key has more parts than a file may be deep."""
Path_ = tuple[str | int, ...]
"""The way to a value: keys and indices."""


class ProvesNothing(ValueError):
    """A command cannot give its verdict, since what it tried proves nothing: no fault was met, or too much is open. The
    message says why, in one line."""


class ScenarioError(ValueError):
    """Something in a scenario's file is wrong. The message is one line: file, line, column, and what would be right."""


@dataclass(frozen=True)
class Located:
    """A file's data, and the line and column (from 1) of its values by their path: of a mapping's key, of a list's
    entry. Of JSON and TOML there are none. `given`: where the values of these keys come from, if not from the file."""

    file: str
    data: Any
    marks: dict[Path_, tuple[int, int]] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)

    def make_error(self, path: Sequence[str | int], text: str) -> ScenarioError:
        """The error about the value at this path, or about the nearest one around it. It names the path where no places
        are known."""
        nearest, text = tuple(path), " ".join(text.split())
        if nearest and nearest[0] in self.given:
            return ScenarioError(f"{self.given[str(nearest[0])]}: {text}")
        while nearest and nearest not in self.marks:
            nearest = nearest[:-1]
        position = ":".join(map(str, (self.file, *self.marks.get(nearest, ()))))
        if not self.marks and path[1:]:  # the text names a single key itself
            path_text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
            position += f": {path_text[:PATH_TEXT_MAX]}"
        return ScenarioError(f"{position}: {text}")


def read_located_data(path: Path) -> Located:
    """The data of a file. Raises ScenarioError: it cannot be read, or is not what its suffix says."""
    name = str(path)
    if path.suffix not in SUFFIXES and not path.exists():
        raise ScenarioError(f"{name}: there is no such file or folder")
    if path.suffix == ".py":
        raise ScenarioError(f"{name}: `chaoslab test {name}` runs scenarios in Python, which no other command reads")
    if path.suffix not in SUFFIXES and not path.is_dir():
        raise ScenarioError(f"{name}: a scenario's file ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    try:
        if path.is_dir():
            inside = sorted(file.name for file in path.iterdir() if file.suffix in SUFFIXES)
            raise ScenarioError(
                f"{name}: this is a folder; name a file in it{f', such as {inside[0]}' if inside else ''}"
            )
        with open_regular(path) as file:
            raw = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise ScenarioError(f"{name}: it cannot be read: {error.strerror or error}") from None
    if len(raw) > BYTES_MAX:
        raise ScenarioError(f"{name}: it is larger than {BYTES_MAX // 1024} KiB, which no scenario needs")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{name}: it is no UTF-8 text (byte {error.start} cannot be read)") from None
    return parse_located_data(text, name, suffix=path.suffix)


def parse_located_data(text: str, file: str, *, suffix: str = ".yaml", values_max: int = VALUES_MAX) -> Located:
    """The data of a text. `values_max`: of YAML. Raises ScenarioError: it cannot be read."""
    if "\0" in text:
        raise ScenarioError(f"{file}: it is no text (it has a zero byte)")
    if suffix not in (".json", ".toml") or not text.strip():
        return _YamlParser(file, values_max).parse(text)
    try:
        return _check_limits_and_convert((_parse_toml if suffix == ".toml" else _parse_json)(text, file))
    except RecursionError:
        raise ScenarioError(f"{file}: it is nested more than {DEPTH_MAX} deep") from None


def _parse_json(text: str, file: str) -> Located:
    import json

    def make_mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(pairs)
        if len(mapping) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for n, key in enumerate(keys) if key in keys[:n])
            raise ScenarioError(f"{file}: {twice[:60]!r} stands in one mapping twice")
        return mapping

    try:
        return Located(file, json.loads(text, object_pairs_hook=make_mapping))
    except json.JSONDecodeError as error:
        raise ScenarioError(f"{file}:{error.lineno}:{error.colno}: this is no JSON: {error.msg}") from None
    except ScenarioError:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise ScenarioError(f"{file}: this is no JSON: {error}") from None


def _parse_toml(text: str, file: str) -> Located:
    import tomllib

    if match := _DEEP_KEY.search(text):  # tomllib needs a long time for some of these
        raise ScenarioError(
            f"{file}:{text.count(chr(10), 0, match.start()) + 1}: it is nested more than {DEPTH_MAX} deep"
        )
    try:
        return Located(file, tomllib.loads(text))
    except ValueError as error:  # a TOMLDecodeError, or a number of thousands of digits
        numbers = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        position = f"{file}:{numbers[1]}:{numbers[2]}" if numbers else file
        raise ScenarioError(f"{position}: this is no TOML: {str(error).partition(' (at ')[0]}") from None


def _check_limits_and_convert(located: Located) -> Located:
    """The same with moments as texts. Raises ScenarioError: it has too many values, is too deep, or has a number that
    is none."""
    count = 0

    def convert_value(value: Any, path: Path_) -> Any:
        nonlocal count
        count += 1
        if count > VALUES_MAX:
            raise located.make_error(path, f"it has more than {VALUES_MAX} values")
        if len(path) + isinstance(value, dict | list) > DEPTH_MAX:
            raise located.make_error(path, f"it is nested more than {DEPTH_MAX} deep")
        if isinstance(value, dict):
            return {key: convert_value(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [convert_value(item, (*path, n)) for n, item in enumerate(value)]
        if isinstance(value, float) and not math.isfinite(value):
            raise located.make_error(path, f"{value} is no number to reckon with")
        return value if value is None or isinstance(value, str | int | float | bool) else str(value)

    return replace(located, data=convert_value(located.data, ()))


class _YamlParser:
    """Makes plain data of a YAML text."""

    def __init__(self, file: str, values_max: int) -> None:
        self.file, self.values, self.values_max = file, 0, values_max
        self.marks: dict[Path_, tuple[int, int]] = {}
        self.open: list[yaml.Node] = []

    def parse(self, text: str) -> Located:
        import yaml

        # libyaml is far faster, and not in every build of PyYAML.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            documents = iter(_compose_documents(yaml, text, loader))
            root = next(documents, None)
            second = next(documents, None)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            position = self.file if mark is None else f"{self.file}:{mark.line + 1}:{mark.column + 1}"
            message = " ".join(filter(None, (getattr(error, "context", ""), getattr(error, "problem", "")))) or str(
                error
            )
            if "nest" in message:  # here or in libyaml, which has a limit of its own that it meets while it looks ahead
                raise ScenarioError(f"{position}: it is nested more than {DEPTH_MAX} deep") from None
            if mark is not None and text[mark.index : mark.index + 1] == "\t":
                message = "a tab stands here, where YAML takes spaces alone"
            raise ScenarioError(f"{position}: this is no YAML: {' '.join(message.split())[:200]}") from None
        except RecursionError:
            raise ScenarioError(f"{self.file}: it is nested more than {DEPTH_MAX} deep") from None
        if second is not None:
            raise self._make_error(second, "a second document begins here: a file holds one scenario")
        if root is None:
            raise ScenarioError(f"{self.file}: it is empty")
        return Located(self.file, self._convert_node(root, (), root), self.marks)

    def _make_error(self, node: yaml.Node, text: str) -> ScenarioError:
        return ScenarioError(f"{self.file}:{node.start_mark.line + 1}:{node.start_mark.column + 1}: {text}")

    def _convert_node(self, node: yaml.Node, path: Path_, marked: yaml.Node) -> Any:
        """The plain data of a node. `marked`: the node whose place is told of it, a mapping's key or itself."""
        import yaml

        self.values += 1
        if self.values > self.values_max:
            raise self._make_error(node, f"it has more than {self.values_max} values, aliases expanded")
        if len(path) > DEPTH_MAX:
            raise self._make_error(node, f"it is nested more than {DEPTH_MAX} deep")
        if any(node is outer for outer in self.open):
            raise self._make_error(node, "an alias stands inside of what it stands for")
        if node.tag not in PLAIN:
            raise self._make_error(node, f"the tag {node.tag[:60]} is not for scenarios: they hold plain data")
        self.marks[path] = (marked.start_mark.line + 1, marked.start_mark.column + 1)
        if isinstance(node.value, str):
            return self._read_scalar(node)
        self.open.append(node)
        if isinstance(node, yaml.SequenceNode):
            value: Any = [self._convert_node(child, (*path, n), child) for n, child in enumerate(node.value)]
        else:
            value = {}
            for key, child in node.value:
                if not isinstance(key.value, str):
                    raise self._make_error(key, "a key should be a text")
                if key.value in value:
                    raise self._make_error(key, f"'{key.value[:60]}' stands here twice")
                value[key.value] = self._convert_node(child, (*path, key.value), key)
        self.open.pop()
        return value

    def _read_scalar(self, node: yaml.Node) -> Any:
        kind, text = node.tag.removeprefix(TAG), node.value
        digits = text.replace("_", "").lower()
        if kind == "null":
            return None
        if kind == "bool":
            return digits in ("true", "yes", "on")
        try:
            if kind == "int":
                return int(digits, 0)
            if kind != "float" and not (
                kind == "str" and not getattr(node, "style", None) and EXPONENT.fullmatch(text)
            ):
                return text
            value = float(digits.replace(".inf", "inf").replace(".nan", "nan"))
        except ValueError:  # 1:30, or 017
            return text
        if not math.isfinite(value):
            raise self._make_error(node, f"{text[:20]} is no number to reckon with")
        return value


def _compose_documents(module: Any, text: str, loader: Any) -> Iterator[Any]:
    """The documents of a text as trees of nodes; nothing is constructed. The depth is checked first, event by event,
    since composing is recursive."""
    depth = 0
    for event in module.parse(text, Loader=loader):
        depth += isinstance(event, module.CollectionStartEvent) - isinstance(event, module.CollectionEndEvent)
        if depth > DEPTH_MAX:
            raise module.MarkedYAMLError(
                problem=f"it is nested more than {DEPTH_MAX} deep", problem_mark=event.start_mark
            )
    yield from module.compose_all(text, Loader=loader)
