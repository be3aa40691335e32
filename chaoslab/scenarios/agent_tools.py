"""Reads from an agent's source which of the user's functions it calls: its tools, as far as names tell them."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaoslab.base.registry import to_snake_case
from chaoslab.scenarios.sources import Function, Source, find_single_binding, find_source, resolve_imported_module

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
TOOL_DECORATOR = re.compile("tool|register_for_|kernel_function")
"""Words of a tool's decorator: @tool, @function_tool, @agent.tool_plain, AG2's @agent.register_for_llm(…)."""
TOOL_MAKER = re.compile(r"(^|\.)(\w*Tool(Node)?(\.\w+)?|\w*_?tools?|register_function)$")
"""A call that makes tools of its arguments: ToolNode([pay]), FunctionTool.from_defaults(pay), m.bind_tools([pay])."""
SAMPLES = {"int": 1, "float": 1.0, "bool": True, "list": [], "dict": {}}
SCHEMA_SAMPLES = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}
"""Values by the types of JSON Schema; a text for any other."""


@dataclass
class AgentTools:
    """The functions of an agent as module:name, those first that the source calls tools.

    `hosts`: the model's API that its modules seem to ask. `is_factory`: the agent takes nothing, so it makes agents.
    `unseen`: what the source does not show of its tools, each with its place and what to do. `parameters`: by function,
    its required parameters, each with a value of its type.
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
    walk = _AgentSourceWalk(folders)
    walk.visit_name(module, name.partition(".")[0], 0)
    hosts = _find_model_hosts(walk)
    unseen = [*walk.unseen, *(f"no script answers for {host}: give it a model of its own" for host in hosts[1:])]
    agent_tools = AgentTools(hosts=hosts[:1], is_factory=_is_agent_factory(agent, folders), unseen=unseen)
    walk.visit_schemas()
    # A list of tools says more than what the source calls.
    for dotted, function in (walk.listed or walk.called).items():
        if dotted != agent:
            reads = READS.match(function.name)
            (agent_tools.reads if reads else agent_tools.changes).append(dotted)
            samples = _make_sample_arguments(function)
            declared = walk.schemas.get(function.name, {})
            agent_tools.parameters[dotted] = {name: declared.get(name, value) for name, value in samples.items()}
    return agent_tools


def _find_model_hosts(walk: "_AgentSourceWalk") -> list[str]:
    """The models' APIs that the agent seems to ask, by the surest sign that there is: an address, as of an API that is
    compatible with OpenAI's; an import; or a model's name."""
    named = [host for host in HOST_PATTERNS if any(host in text for text in walk.texts)]
    return named or next(
        filter(
            None,
            (
                [host for host, asks in HOST_PATTERNS.items() if any(map(asks.search, signs))]
                for signs in (walk.imports, walk.texts)
            ),
        ),
        [],
    )


def _is_agent_factory(agent: str, folders: Sequence[Path]) -> bool:
    module, _, name = agent.partition(":")
    source = find_source(module, folders)
    definition = find_single_binding(source.statements, name) if source else None
    return (
        isinstance(definition, Function)
        # An agent takes the prompt; what takes nothing makes one.
        and not _make_sample_arguments(definition)
        and not definition.args.vararg
        and not definition.args.defaults
    )


def _make_sample_arguments(function: Function) -> dict[str, Any]:
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


class _AgentSourceWalk:
    """`listed`: functions that stand in a list of tools, have a schema for the model, or whose decorator is called a
    tool. `called`: all others. `schemas`: by tool, the parameters that its schema declares, each with a value."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._seen: set[str] = set()
        self.listed: dict[str, Function] = {}
        self.called: dict[str, Function] = {}
        self.imports: set[str] = set()
        self.texts: set[str] = set()
        self.unseen: list[str] = []
        self.schemas: dict[str, dict[str, Any]] = {}

    def visit_schemas(self) -> None:
        """Adds the functions with the names that schemas declare, in the modules seen: a loop around a model's SDK may
        find them in a table, in a chain of ifs, or in globals()."""
        for module in sorted(entry for entry in self._seen if ":" not in entry):
            for name in self.schemas:
                self.visit_name(module, name, 1, listed=True)

    def visit_name(self, module: str, name: str, depth: int, *, listed: bool = False) -> None:
        """Follows a name of a module of the user's to a function, or through what it is made of."""
        # Packages of others are not followed: their functions are no tools of this agent.
        source = find_source(module, self._folders) if self._is_user_module(module) and depth < DEPTH_MAX else None
        if source is None:
            return
        if module not in self._seen:
            self._seen.add(module)
            self._scan_source(source)
        statement = find_single_binding(source.statements, name)
        if isinstance(statement, ast.ImportFrom):
            origin = next(alias.name for alias in statement.names if (alias.asname or alias.name) == name)
            origin_module = resolve_imported_module(statement, module, is_package=source.path.name == "__init__.py")
            self.visit_name(origin_module, origin, depth, listed=listed)
            return
        is_tool = isinstance(statement, Function) and any(
            TOOL_DECORATOR.search(ast.unparse(decorator)) for decorator in statement.decorator_list
        )
        in_tools = "tools" in name.lower()
        # A function such as get_tools makes a list of tools and is none.
        is_plain = isinstance(statement, Function) and (is_tool or not (listed and in_tools))
        if isinstance(statement, Function) and is_plain and depth and (listed or is_tool or not name.startswith("_")):
            (self.listed if listed or is_tool else self.called).setdefault(f"{module}:{name}", statement)
            return
        key = f"{module}:{name}"
        # Two that call each other would be followed for ever.
        if statement is None or key in self._seen:
            return
        self._seen.add(key)
        statements = [statement]
        for other in source.statements:  # as in @agent.tool, and graph.add_node("tools", ToolNode([pay]))
            if isinstance(other, Function) and any(
                decorator.startswith(f"{name}.") and TOOL_DECORATOR.search(decorator)
                for decorator in map(ast.unparse, other.decorator_list)
            ):
                self.listed.setdefault(f"{module}:{other.name}", other)
            if isinstance(other, ast.Expr) and any(
                isinstance(node, ast.Name) and node.id == name for node in ast.walk(other)
            ):
                statements.append(other)
        if isinstance(statement, ast.ClassDef):
            if listed:
                self._note_unseen_class_tool(module, source, statement)
            self._visit_methods(module, statement, source.statements)
        for used, of_tools in (used for each in statements for used in _iterate_used_names(each)):
            head, _, rest = used.partition(".")
            if rest and (target := self._resolve_module_name(module, source.statements, head, source.path)):
                self.visit_name(target, rest, depth + 1, listed=of_tools or in_tools)
            else:
                self.visit_name(module, head, depth + 1, listed=of_tools or in_tools)

    def _is_user_module(self, module: str) -> bool:
        first = module.partition(".")[0]
        return any((folder / first).exists() or (folder / f"{first}.py").is_file() for folder in self._folders)

    def _scan_source(self, source: Source) -> None:
        """Notes what tells the model's API, and lists of tools that a call makes."""
        for statement in source.statements:
            for node in ast.walk(statement):
                match node:
                    case ast.Import(names=names):
                        self.imports |= {alias.name for alias in names}
                    case ast.ImportFrom(module=str(module_name)):
                        self.imports.add(module_name)
                    case ast.Constant(value=str(text)) if len(text) < TEXT_MAX:
                        self.texts.add(text)
                    case ast.Dict():
                        self._note_schema(node)
                    case ast.keyword(arg="tools", value=ast.Call(func=func) as call):
                        name = ast.unparse(func)
                        if (
                            self._is_foreign_import(source, name)
                            or find_single_binding(source.statements, name) is None
                        ):
                            location = f"{source.path.name}:{call.lineno}"
                            self.unseen.append(
                                f"the tools of tools={ast.unparse(call)[:60]} ({location}) are not in the source: "
                                "name them"
                            )
                    case ast.keyword(arg="tools", value=ast.List(elts=elements)):
                        for element in elements:
                            call_arguments = element.args if isinstance(element, ast.Call) else []
                            name = ast.unparse(element.func if isinstance(element, ast.Call) else element)
                            # A call with arguments, such as tool(pay), may make a tool of them.
                            if not call_arguments and name.isidentifier() and self._is_foreign_import(source, name):
                                location = f"{source.path.name}:{element.lineno}"
                                self.unseen.append(
                                    f"the tool {name} ({location}) is of another package: name the function it calls"
                                )

    def _note_schema(self, node: ast.Dict) -> None:
        """Notes a tool's schema for a model, as in {"name": "pay", "parameters": {"type": "object", …}}."""
        members = _read_members(node)
        name, schema = members.get("name"), members.get("parameters") or members.get("input_schema")
        if not (isinstance(name, ast.Constant) and isinstance(name.value, str) and isinstance(schema, ast.Dict)):
            return
        properties = _read_members(schema).get("properties")
        samples = self.schemas.setdefault(name.value, {})
        for parameter, declared in _read_members(properties).items():
            kind = _read_members(declared).get("type")
            text = kind.value if isinstance(kind, ast.Constant) else None
            samples[parameter] = SCHEMA_SAMPLES.get(str(text), "x")

    def _is_foreign_import(self, source: Source, name: str) -> bool:
        """True if the name is imported from a module that is not the user's own."""
        statement = find_single_binding(source.statements, name)
        return isinstance(statement, ast.ImportFrom) and not (
            statement.level or self._is_user_module(statement.module or "")
        )

    def _note_unseen_class_tool(self, module: str, source: Source, class_node: ast.ClassDef) -> None:
        methods = [member.name for member in class_node.body if isinstance(member, Function)]
        method = next((name for name in ("_run", "forward", "run", "call") if name in methods), "run")
        self.unseen.append(
            f"the tool {class_node.name} ({source.path.name}:{class_node.lineno}) is a class: name its method, as "
            f"{{{to_snake_case(class_node.name)}: {module}:{class_node.name}.{method}}}"
        )

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
                    self._add_called_method(module, class_node.name, method, statements)
                case ast.Call(
                    func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=attribute), attr=method)
                ) if attribute in instance_classes:
                    self._add_called_method(module, instance_classes[attribute], method, statements)

    def _add_called_method(self, module: str, name: str, method: str, statements: Sequence[ast.stmt]) -> None:
        statement = find_single_binding(statements, name)
        if isinstance(statement, ast.ImportFrom):
            source = find_source(
                origin_module := resolve_imported_module(statement, module, is_package=False), self._folders
            )
            if source is not None:
                self._add_called_method(origin_module, name, method, source.statements)
        elif isinstance(statement, ast.ClassDef) and not method.startswith("_"):
            for member in statement.body:
                if isinstance(member, Function) and member.name == method:
                    self.called.setdefault(f"{module}:{name}.{method}", member)

    def _resolve_module_name(self, module: str, statements: Sequence[ast.stmt], name: str, path: Path) -> str:
        """The module that a name stands for, empty if it is none."""
        statement = find_single_binding(statements, name)
        if isinstance(statement, ast.Import):
            return next((alias.name for alias in statement.names if (alias.asname or alias.name) == name), "")
        if isinstance(statement, ast.ImportFrom):
            origin_module = resolve_imported_module(statement, module, is_package=path.name == "__init__.py")
            origin = next(alias.name for alias in statement.names if (alias.asname or alias.name) == name)
            inner = f"{origin_module}.{origin}"
            return inner if find_source(inner, self._folders) is not None else ""
        return ""


def _read_members(node: ast.expr | None) -> dict[str, ast.expr]:
    """The members of a dictionary in the source whose keys are texts; none of anything else."""
    return {
        key.value: value
        for key, value in (zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ())
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


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
            case ast.Call(func=func, args=args, keywords=keywords) if TOOL_MAKER.search(ast.unparse(func)):
                yield from _iterate_used_names(ast.Expr(func))
                for argument in (*args, *(keyword.value for keyword in keywords)):
                    direct = isinstance(argument, ast.Name | ast.Attribute | ast.List | ast.Tuple)
                    yield from ((name, direct) for name, _ in _iterate_used_names(ast.Expr(argument)))
            case ast.keyword(arg=str(arg), value=value) if "tools" in arg:
                yield from ((name, True) for name, _ in _iterate_used_names(ast.Expr(value)))
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if "tools" in name.lower():
                yield from ((used, True) for used, _ in _iterate_used_names(ast.Expr(value)))
            case _:
                yield from _iterate_used_names(child)
