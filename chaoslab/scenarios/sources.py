"""Reads from a module's source which names it has. Nothing of the user's is imported, so much stays unknown."""

import ast
import importlib.util
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeGuard

from chaoslab.base import files
from chaoslab.base.parsers import find_closest

BYTES_MAX = 1024 * 1024
IMPORTS_MAX = 5
"""The longest way from module to module on which a name is followed."""
OPAQUE = frozenset({"*", "__getattr__", "exec", "eval", "globals", "locals", "modules", "setattr", "vars"})
"""Names by which a module may bind others that its source does not show."""
MOVED = frozenset({"__path__", "exec", "eval", "meta_path", "modules"})
"""Names by which a package may have modules that are no files in its folder."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A module's source. `anywhere`: all names that some place in it binds. `from_within`: those of them that functions
    bind for the module. `opaque`: there may be names that it does not show. `moved`: there may be modules below it that
    are no files in its folder."""

    path: Path
    statements: Sequence[ast.stmt]
    anywhere: Set[str]
    from_within: Set[str]
    opaque: bool
    moved: bool


def find_function_name(dotted: str, folders: Sequence[Path]) -> str | None:
    """The name in plans and logs of a function that is given as module:name, None if only an import would tell.
    `folders`: where modules are sought, in this order. Raises LookupError: there surely is no such name. SyntaxError:
    the module is no Python."""
    definition = _find_definition(dotted, folders)
    return definition.name if isinstance(definition, Function) else None


def make_signature_stub(dotted: str, folders: Sequence[Path]) -> Callable[..., Any] | None:
    """A function with the name and the signature of the one that is given as module:name, or a class with its name;
    None if only an import would tell them. Raises the errors of `find_function_name`."""
    definition = _find_definition(dotted, folders)
    if isinstance(definition, ast.ClassDef):
        # A base may have a metaclass, by which the class itself is an object that can be called.
        return None if definition.bases else type(definition.name, (), {})
    if definition is None or any(
        isinstance(decorator, ast.Name) and decorator.id == "classmethod" for decorator in definition.decorator_list
    ):
        return None

    def stand_in() -> None: ...
    async def async_stand_in() -> None: ...

    function = async_stand_in if isinstance(definition, ast.AsyncFunctionDef) else stand_in
    function.__name__ = definition.name
    vars(function)["__signature__"] = _read_signature(definition.args)
    return function


def _read_signature(arguments: ast.arguments) -> inspect.Signature:
    """The signature, with None as each default."""
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    parameters = [
        inspect.Parameter(
            argument.arg,
            inspect.Parameter.POSITIONAL_ONLY
            if n < len(arguments.posonlyargs)
            else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if n < required else None,
        )
        for n, argument in enumerate(positional)
    ]
    if arguments.vararg:
        parameters.append(inspect.Parameter(arguments.vararg.arg, inspect.Parameter.VAR_POSITIONAL))
    parameters += [
        inspect.Parameter(
            argument.arg,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is None else None,
        )
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    if arguments.kwarg:
        parameters.append(inspect.Parameter(arguments.kwarg.arg, inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)


def explain_missing_module(dotted: str, folders: Sequence[Path]) -> str:
    """The reason why the module of module:name is surely not there, without an import; empty if it may be."""
    module = dotted.partition(":")[0]
    first, *inner = module.split(".")
    roots = [folder for folder in folders if (folder / first).is_dir() or (folder / f"{first}.py").is_file()]
    if not roots:
        if first == "__main__":
            return ""
        spec = importlib.util.find_spec(first)
        if spec is None:
            return f"there is no module '{first}'"
        source = find_source(first, ()) if inner else None
        if source is None or source.moved:
            return ""
        roots = [Path(location).parent for location in spec.submodule_search_locations or ()]
    paths = [folder.joinpath(first, *inner) for folder in roots]
    exists = any(path.is_dir() or any(path.parent.glob(f"{path.name}.*")) for path in paths)
    if exists:
        return ""
    without_suffix = module.removesuffix(".py")
    hint = (
        f": did you mean '{without_suffix}'?"
        if without_suffix != module and not explain_missing_module(f"{without_suffix}:", folders)
        else ""
    )
    return f"there is no module '{module}'{hint}"


def _find_definition(dotted: str, folders: Sequence[Path]) -> "Function | ast.ClassDef | None":
    module, _, name = dotted.partition(":")
    return _resolve_name(module, name.split("."), folders, IMPORTS_MAX)


def _resolve_name(
    module: str, name: Sequence[str], folders: Sequence[Path], imports_left: int
) -> "Function | ast.ClassDef | None":
    source = find_source(module, folders)
    if source is None:
        return None
    first, *inner = name
    if first not in source.anywhere and not source.opaque and not _has_submodule(source.path, first):
        suggestion = find_closest(
            first, [bound_name for statement in source.statements for bound_name in _iterate_bound_names(statement)]
        )
        raise LookupError(
            f"{source.path.name} has no '{first}'" + (f": did you mean '{suggestion}'?" if suggestion else "")
        )
    # A function may bind it for the module, at any time.
    binding = find_single_binding(source.statements, first) if first not in source.from_within else None
    if isinstance(binding, ast.ImportFrom) and imports_left:
        origin = next(
            bound_name.name for bound_name in binding.names if (bound_name.asname or bound_name.name) == first
        )
        origin_module = resolve_imported_module(binding, module, is_package=source.path.name == "__init__.py")
        try:
            return _resolve_name(origin_module, [origin, *inner], folders, imports_left - 1)
        except LookupError:  # of another file, which the import may find elsewhere
            return None
    return _get_undecorated_definition(binding, inner)


def _get_undecorated_definition(definition: ast.stmt | None, inner: Sequence[str]) -> "Function | ast.ClassDef | None":
    """The definition of a function, of a method of a class, or of a class, that no decorator has changed."""
    for attribute in inner:
        if not _is_plain_class(definition):
            return None
        definition = find_single_binding(definition.body, attribute)
    if _is_plain_class(definition):
        return definition
    if not isinstance(definition, Function):
        return None
    plain = {"staticmethod", "classmethod"} if inner else set[str]()
    # A decorator of any other kind may return something else.
    decorators = [decorator.id if isinstance(decorator, ast.Name) else "" for decorator in definition.decorator_list]
    return definition if plain.issuperset(decorators) else None


def _is_plain_class(definition: ast.stmt | None) -> TypeGuard[ast.ClassDef]:
    return isinstance(definition, ast.ClassDef) and not definition.decorator_list and not definition.keywords


def find_single_binding(statements: Sequence[ast.stmt], name: str) -> ast.stmt | None:
    """The one statement among these that binds the name; None if there are more, or none that is understood."""
    binding_statements = [statement for statement in statements if name in _iterate_bound_names(statement)]
    return binding_statements[0] if len(binding_statements) == 1 else None


def _iterate_bound_names(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds where it stands, and not in the functions and classes within it."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        yield from _list_names_bound_by(node)
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            todo += ast.iter_child_nodes(node)


def _list_names_bound_by(node: ast.AST) -> list[str]:
    """The names that a node binds itself."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.ClassDef(name=name) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.ExceptHandler(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return [name]
        case ast.alias(name=name, asname=asname):
            return [asname or name.partition(".")[0]]
    return []


def resolve_imported_module(import_from: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    if not import_from.level:
        return import_from.module or ""
    parts = module.split(".")
    base = parts[: len(parts) - import_from.level + is_package]
    return ".".join([*base, *([import_from.module] if import_from.module else [])])


def find_source(module: str, folders: Sequence[Path]) -> Source | None:
    """The source of a module in the first of these folders that has its package, or of an installed one; None if it
    cannot be read."""
    first, *inner = module.split(".")
    for folder in [] if first in sys.stdlib_module_names else folders:
        if (folder / first).is_dir() or (folder / f"{first}.py").is_file():
            return _parse_module_file(folder.joinpath(first, *inner))
    spec = importlib.util.find_spec(first) if first != "__main__" else None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return None
    return _parse_module_file(
        (Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)).joinpath(*inner)
    )


def _parse_module_file(path: Path) -> Source | None:
    """The source in a file, of a module without its suffix, or of a package."""
    path = path / "__init__.py" if (path / "__init__.py").is_file() else path.with_suffix(".py")
    try:
        changed = path.stat()
        return _parse_source(path, changed.st_mtime_ns, changed.st_size)
    except OSError:
        return None


@lru_cache(maxsize=64)
def _parse_source(path: Path, changed_ns: int, size: int) -> Source | None:  # noqa: ARG001 - one version of the file
    if size > BYTES_MAX:
        return None
    try:
        with warnings.catch_warnings():
            # A user's source may warn of its own, which is said when it runs.
            warnings.simplefilter("ignore")
            tree = ast.parse(files.load_bytes(path), str(path.name))
    # ast raises MemoryError for what is nested too deep, and ValueError for a NUL.
    except (ValueError, RecursionError, MemoryError):
        return None
    nodes = list(ast.walk(tree))
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    # A module that names itself anew may name its functions so too.
    if any(node.attr == "__name__" and isinstance(node.ctx, ast.Store) for node in attributes):
        return None
    anywhere = {name for node in nodes for name in _list_names_bound_by(node)}
    from_within = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    used |= {node.attr for node in attributes}
    used |= anywhere
    return Source(path, tree.body, anywhere, from_within, not OPAQUE.isdisjoint(used), not MOVED.isdisjoint(used))


def _has_submodule(path: Path, name: str) -> bool:
    if path.name != "__init__.py":
        return False
    return (path.parent / f"{name}.py").is_file() or (path.parent / name).is_dir()
