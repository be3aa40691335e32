"""Reads from an agent's source which of the user's functions it calls: its tools, as far as names tell them."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaoslab.scenarios.sources import Function, Source, find_single_binding, find_source, resolve_import

TEXT_MAX = 200
"""The longest text of a source that may name a model: those of a document tell nothing."""
DEPTH_MAX = 6
"""The longest way from the agent to a function that is one of its tools."""
READS = re.compile(
    r"(get|list|search|find|read|fetch|look_?up|load|show|check|is|has|query|current|count|describe|view|retrieve)(_|$)"
)
"""Names of functions that most probably change nothing."""


HOST_PATTERNS = {
    "api.anthropic.com": re.compile("anthropic|claude-"),
    "api.groq.com": re.compile("groq"),
    "generativelanguage.googleapis.com": re.compile(r"gemini|google\.genai"),
    "api.openai.com": re.compile(r"openai|gpt-\d|^agents$"),
}
"""By the host of a model's API, what the imports and texts of an agent that asks it hold."""
SAMPLES = {"int": 1, "float": 1.0, "bool": True, "list": [], "dict": {}}


@dataclass
class AgentTools:
    """The functions of an agent as module:name, those first that the source calls tools.

    `hosts`: the models' APIs that its modules seem to ask. `is_factory`: the agent takes nothing, so it makes agents.
    `unseen`: lists of tools that the source does not show, each with its place. `parameters`: by function, its
    required parameters, each with a value of its type.
    """

    changes: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    is_factory: bool = False
    unseen: list[str] = field(default_factory=list)
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)


def find_tools(agent: str, folders: Sequence[Path]) -> AgentTools:
    """The functions that the agent module:name calls or lists as tools. Nothing is imported."""
    module, _, name = agent.partition(":")
    walk = _Walk(folders)
    walk.visit(module, name.partition(".")[0], 0)
    hosts = [host for host, asks in HOST_PATTERNS.items() if any(map(asks.search, walk.texts))]
    agent_tools = AgentTools(hosts=hosts, is_factory=_takes_nothing(agent, folders), unseen=walk.unseen)
    # A list of tools says more than what the source calls.
    for dotted, function in (walk.listed or walk.called).items():
        if dotted != agent:
            reads = READS.match(function.name)
            (agent_tools.reads if reads else agent_tools.changes).append(dotted)
            agent_tools.parameters[dotted] = _find_parameters(function)
    return agent_tools


def _takes_nothing(agent: str, folders: Sequence[Path]) -> bool:
    module, _, name = agent.partition(":")
    source = find_source(module, folders)
    definition = find_single_binding(source.statements, name) if source else None
    return (
        isinstance(definition, Function)
        # An agent takes the prompt; what takes nothing makes one.
        and not _find_parameters(definition)
        and not definition.args.vararg
        and not definition.args.defaults
    )


def _find_parameters(function: Function) -> dict[str, Any]:
    """The required parameters, each with a value of the type that its annotation names; a text where it names none."""
    arguments = function.args
    required = [*arguments.posonlyargs, *arguments.args]
    required = required[: len(required) - len(arguments.defaults)]
    required += [
        argument
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    samples = {}
    for argument in required:
        kind = ast.unparse(argument.annotation) if argument.annotation else ""
        if argument.arg not in ("self", "cls") and "Context" not in kind:  # the framework gives these
            samples[argument.arg] = SAMPLES.get(kind.partition("[")[0], "x")
    return samples


class _Walk:
    """`listed`: functions that stand in a list of tools, or whose decorator is called a tool. `called`: all others."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._seen: set[str] = set()
        self.listed: dict[str, Function] = {}
        self.called: dict[str, Function] = {}
        self.texts: set[str] = set()
        self.unseen: list[str] = []

    def visit(self, module: str, name: str, depth: int, *, listed: bool = False) -> None:
        """Follows a name of a module of the user's to a function, or through what it is made of."""
        # Packages of others are not followed: their functions are no tools of this agent.
        is_own = any((folder / module.partition(".")[0]).exists() for folder in self._folders)
        is_own = is_own or any((folder / f"{module.partition('.')[0]}.py").is_file() for folder in self._folders)
        source = find_source(module, self._folders) if is_own and depth < DEPTH_MAX else None
        if source is None:
            return
        if module not in self._seen:
            self._seen.add(module)
            self._read(source)
        statement = find_single_binding(source.statements, name)
        if isinstance(statement, ast.ImportFrom):
            origin = next(alias.name for alias in statement.names if (alias.asname or alias.name) == name)
            origin_module = resolve_import(statement, module, is_package=source.path.name == "__init__.py")
            self.visit(origin_module, origin, depth, listed=listed)
            return
        is_tool = isinstance(statement, Function) and any(
            "tool" in ast.unparse(function_statement) for function_statement in statement.decorator_list
        )
        if isinstance(statement, Function) and depth and (listed or is_tool or not name.startswith("_")):
            (self.listed if listed or is_tool else self.called).setdefault(f"{module}:{name}", statement)
            return
        key = f"{module}:{name}"
        # Two that call each other would be followed for ever.
        if statement is None or key in self._seen:
            return
        self._seen.add(key)
        for function_statement in source.statements:  # as in @agent.tool
            if isinstance(function_statement, Function) and any(
                ast.unparse(alias).startswith(f"{name}.tool") for alias in function_statement.decorator_list
            ):
                self.listed.setdefault(f"{module}:{function_statement.name}", function_statement)
        if isinstance(statement, ast.ClassDef):
            self._visit_methods(module, statement, source.statements)
        in_tools = "tools" in name.lower()
        for used, of_tools in _iterate_used_names(statement):
            head, _, rest = used.partition(".")
            if rest and (target := self._find_module(module, source.statements, head, source.path)):
                self.visit(target, rest, depth + 1, listed=of_tools or in_tools)
            else:
                self.visit(module, head, depth + 1, listed=of_tools or in_tools)

    def _read(self, source: Source) -> None:
        """Notes what tells the model's API, and lists of tools that a call makes."""
        for statement in source.statements:
            for node in ast.walk(statement):
                match node:
                    case ast.Import(names=names):
                        self.texts |= {alias.name for alias in names}
                    case ast.ImportFrom(module=str(module_name)):
                        self.texts.add(module_name)
                    case ast.Constant(value=str(text)) if len(text) < TEXT_MAX:
                        self.texts.add(text)
                    case ast.keyword(arg="tools", value=ast.Call() as call):
                        location = f"{source.path.name}:{call.lineno}"
                        self.unseen.append(f"tools={ast.unparse(call)[:60]} ({location})")

    def _visit_methods(self, module: str, class_node: ast.ClassDef, statements: Sequence[ast.stmt]) -> None:
        """The methods that a class calls on itself and on what it makes of the classes of the same module or of an
        import: `self.refund(…)`, and `self.desk.refund(…)` after `self.desk = Desk()`."""
        instance_classes = {
            node.targets[0].attr: node.value.func.id
            for node in ast.walk(class_node)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)
            and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
        }  # fmt: skip
        for node in ast.walk(class_node):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=method)):
                    self._method(module, class_node.name, method, statements)
                case ast.Call(
                    func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=attribute), attr=method)
                ) if attribute in instance_classes:
                    self._method(module, instance_classes[attribute], method, statements)

    def _method(self, module: str, name: str, method: str, statements: Sequence[ast.stmt]) -> None:
        statement = find_single_binding(statements, name)
        if isinstance(statement, ast.ImportFrom):
            source = find_source(origin_module := resolve_import(statement, module, is_package=False), self._folders)
            if source is not None:
                self._method(origin_module, name, method, source.statements)
        elif isinstance(statement, ast.ClassDef) and not method.startswith("_"):
            for member in statement.body:
                if isinstance(member, Function) and member.name == method:
                    self.called.setdefault(f"{module}:{name}.{method}", member)

    def _find_module(self, module: str, statements: Sequence[ast.stmt], name: str, path: Path) -> str:
        """The module that a name stands for, empty if it is none."""
        statement = find_single_binding(statements, name)
        if isinstance(statement, ast.Import):
            return next((alias.name for alias in statement.names if (alias.asname or alias.name) == name), "")
        if isinstance(statement, ast.ImportFrom):
            origin_module = resolve_import(statement, module, is_package=path.name == "__init__.py")
            origin = next(alias.name for alias in statement.names if (alias.asname or alias.name) == name)
            inner = f"{origin_module}.{origin}"
            return inner if find_source(inner, self._folders) is not None else ""
        return ""


def _iterate_used_names(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """The names that a statement uses, as `pay` or `shop.pay`, in their order; True for those in a list of tools."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Attribute(value=ast.Name(id=head), attr=attr):
                yield f"{head}.{attr}", False
            case ast.Name(id=name, ctx=ast.Load()):
                yield name, False
            case ast.Call(func=func, args=args, keywords=keywords) if "agent" in ast.unparse(func).lower():
                yield from _iterate_used_names(ast.Expr(func))
                for argument in args:  # as in create_agent(model, [refund])
                    yield from (
                        (name, isinstance(argument, ast.List | ast.Tuple))
                        for name, _ in _iterate_used_names(ast.Expr(argument))
                    )
                yield from _iterate_used_names(ast.Call(func=ast.Constant(value=None), args=[], keywords=keywords))
            case ast.keyword(arg=str(arg), value=value) if "tools" in arg:
                yield from ((name, True) for name, _ in _iterate_used_names(ast.Expr(value)))
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if "tools" in name.lower():
                yield from ((used, True) for used, _ in _iterate_used_names(ast.Expr(value)))
            case _:
                yield from _iterate_used_names(child)
