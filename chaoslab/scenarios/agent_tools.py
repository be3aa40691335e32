"""Reads from an agent's source which of the user's functions it calls: its tools, as far as names tell them."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaoslab.scenarios.sources import Function, absolute, only, source_of

DEPTH_MAX = 6
"""The longest way from the agent to a function that is one of its tools."""
READS = re.compile(
    r"(get|list|search|find|read|fetch|look_?up|load|show|check|is|has|query|current|count|describe|view|retrieve)(_|$)"
)
"""Names of functions that most probably change nothing."""


@dataclass
class AgentTools:
    """The functions of an agent as module:name, those first that the source calls tools. `asks`: the libraries of a
    model that its modules import."""

    changes: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    asks: set[str] = field(default_factory=set)


def tools_of(agent: str, folders: Sequence[Path]) -> AgentTools:
    """The functions that the agent module:name calls or lists as tools. Nothing is imported."""
    module, _, name = agent.partition(":")
    walk = _Walk(folders)
    walk.visit(module, name.partition(".")[0], 0)
    found = AgentTools(asks=walk.asks)
    for dotted in walk.listed or walk.called:
        function = dotted.rpartition(":")[2]
        if dotted != agent:
            (found.reads if READS.match(function) else found.changes).append(dotted)
    return found


class _Walk:
    """`listed`: functions that stand in a list of tools, or whose decorator is called a tool. `called`: all others."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._seen: set[str] = set()
        self.listed: dict[str, None] = {}
        self.called: dict[str, None] = {}
        self.asks: set[str] = set()

    def visit(self, module: str, name: str, depth: int, *, listed: bool = False) -> None:
        """Follows a name of a module of the user's to a function, or through what it is made of."""
        here = any((folder / module.partition(".")[0]).exists() for folder in self._folders)
        here = here or any((folder / f"{module.partition('.')[0]}.py").is_file() for folder in self._folders)
        source = source_of(module, self._folders) if here and depth < DEPTH_MAX else None
        if source is None:
            return
        for each in source.statements:
            if isinstance(each, ast.Import | ast.ImportFrom):
                names = [one.name for one in each.names] if isinstance(each, ast.Import) else [each.module or ""]
                self.asks |= {name.partition(".")[0] for name in names} & {"openai", "anthropic", "langchain_groq"}
        found = only(source.statements, name)
        if isinstance(found, ast.ImportFrom):
            origin = next(one.name for one in found.names if (one.asname or one.name) == name)
            of = absolute(found, module, is_package=source.path.name == "__init__.py")
            self.visit(of, origin, depth, listed=listed)
            return
        is_tool = isinstance(found, Function) and any("tool" in ast.unparse(each) for each in found.decorator_list)
        if isinstance(found, Function) and depth and (listed or is_tool or not name.startswith("_")):
            (self.listed if listed or is_tool else self.called).setdefault(f"{module}:{name}")
            return
        key = f"{module}:{name}"
        if found is None or key in self._seen:
            return
        self._seen.add(key)
        in_tools = "tools" in name.lower()
        for used, of_tools in _used(found):
            head, _, rest = used.partition(".")
            if rest and (target := self._module(module, source.statements, head, source.path)):
                self.visit(target, rest, depth + 1, listed=of_tools or in_tools)
            else:
                self.visit(module, head, depth + 1, listed=of_tools or in_tools)

    def _module(self, module: str, statements: Sequence[ast.stmt], name: str, path: Path) -> str:
        """The module that a name stands for, empty if it is none."""
        found = only(statements, name)
        if isinstance(found, ast.Import):
            return next((one.name for one in found.names if (one.asname or one.name) == name), "")
        if isinstance(found, ast.ImportFrom):
            of = absolute(found, module, is_package=path.name == "__init__.py")
            origin = next(one.name for one in found.names if (one.asname or one.name) == name)
            inner = f"{of}.{origin}"
            return inner if source_of(inner, self._folders) is not None else ""
        return ""


def _used(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """The names that a statement uses, as `pay` or `shop.pay`, in their order; True for those in a list of tools."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Attribute(value=ast.Name(id=head), attr=attr):
                yield f"{head}.{attr}", False
            case ast.Name(id=name, ctx=ast.Load()):
                yield name, False
            case ast.keyword(arg=str(arg), value=value) if "tools" in arg:
                yield from ((name, True) for name, _ in _used(ast.Expr(value)))
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if "tools" in name.lower():
                yield from ((used, True) for used, _ in _used(ast.Expr(value)))
            case _:
                yield from _used(child)
