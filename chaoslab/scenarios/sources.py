"""Reads from a module's source which names it has. Nothing of the user's is imported, so much stays unknown."""

import ast
import importlib.util
import sys
import warnings
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from chaoslab.base import files
from chaoslab.base.parsers import closest

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


def function_name(dotted: str, folders: Sequence[Path]) -> str | None:
    """The name in plans and logs of a function that is given as module:name, None if only an import would tell.
    `folders`: where modules are sought, in this order. Raises LookupError: there surely is no such name. SyntaxError:
    the module is no Python."""
    module, _, name = dotted.partition(":")
    return _named(module, name.split("."), folders, IMPORTS_MAX)


def lost(dotted: str, folders: Sequence[Path]) -> str:
    """The reason why the module of module:name is surely not there, without an import; empty if it may be."""
    module = dotted.partition(":")[0]
    first, *inner = module.split(".")
    there = [folder for folder in folders if (folder / first).is_dir() or (folder / f"{first}.py").is_file()]
    if not there:
        if first == "__main__":
            return ""
        spec = importlib.util.find_spec(first)
        if spec is None:
            return f"there is no module '{first}'"
        source = source_of(first, ()) if inner else None
        if source is None or source.moved:
            return ""
        there = [Path(each).parent for each in spec.submodule_search_locations or ()]
    paths = [folder.joinpath(first, *inner) for folder in there]
    found = any(path.is_dir() or any(path.parent.glob(f"{path.name}.*")) for path in paths)
    if found:
        return ""
    meant = module.removesuffix(".py")
    near = f": did you mean '{meant}'?" if meant != module and not lost(f"{meant}:", folders) else ""
    return f"there is no module '{module}'{near}"


def _named(module: str, name: Sequence[str], folders: Sequence[Path], left: int) -> str | None:
    source = source_of(module, folders)
    if source is None:
        return None
    first, *inner = name
    if first not in source.anywhere and not source.opaque and not _has_submodule(source.path, first):
        near = closest(first, [each for part in source.statements for each in _binds(part)])
        raise LookupError(f"{source.path.name} has no '{first}'" + (f": did you mean '{near}'?" if near else ""))
    found = only(source.statements, first) if first not in source.from_within else None
    if isinstance(found, ast.ImportFrom) and left:
        origin = next(each.name for each in found.names if (each.asname or each.name) == first)
        of = absolute(found, module, is_package=source.path.name == "__init__.py")
        try:
            return _named(of, [origin, *inner], folders, left - 1)
        except LookupError:  # of another file, which the import may find elsewhere
            return None
    return _defined(found, inner)


def _defined(found: ast.stmt | None, inner: Sequence[str]) -> str | None:
    """The name of a function, or of a method of a class, that no decorator has changed."""
    for part in inner:
        if not isinstance(found, ast.ClassDef) or found.decorator_list or found.keywords:
            return None
        found = only(found.body, part)
    if not isinstance(found, Function):
        return None
    plain = {"staticmethod", "classmethod"} if inner else set[str]()
    decorators = [each.id if isinstance(each, ast.Name) else "" for each in found.decorator_list]
    return found.name if plain.issuperset(decorators) else None


def only(statements: Sequence[ast.stmt], name: str) -> ast.stmt | None:
    """The one statement among these that binds the name; None if there are more, or none that is understood."""
    found = [each for each in statements if name in _binds(each)]
    return found[0] if len(found) == 1 else None


def _binds(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds where it stands, and not in the functions and classes within it."""
    todo: list[ast.AST] = [statement]
    while todo:
        each = todo.pop()
        yield from _bound(each)
        if not isinstance(each, Function | ast.ClassDef | ast.Lambda):
            todo += ast.iter_child_nodes(each)


def _bound(node: ast.AST) -> list[str]:
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


def absolute(found: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    if not found.level:
        return found.module or ""
    parts = module.split(".")
    base = parts[: len(parts) - found.level + is_package]
    return ".".join([*base, *([found.module] if found.module else [])])


def source_of(module: str, folders: Sequence[Path]) -> Source | None:
    """The source of a module in the first of these folders that has its package, or of an installed one; None if it
    cannot be read."""
    first, *inner = module.split(".")
    for folder in [] if first in sys.stdlib_module_names else folders:
        if (folder / first).is_dir() or (folder / f"{first}.py").is_file():
            return _file(folder.joinpath(first, *inner))
    spec = importlib.util.find_spec(first) if first != "__main__" else None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return None
    return _file((Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)).joinpath(*inner))


def _file(path: Path) -> Source | None:
    """The source in a file, of a module without its suffix, or of a package."""
    path = path / "__init__.py" if (path / "__init__.py").is_file() else path.with_suffix(".py")
    try:
        changed = path.stat()
        return _parsed(path, changed.st_mtime_ns, changed.st_size)
    except OSError:
        return None


@lru_cache(maxsize=64)
def _parsed(path: Path, changed_ns: int, size: int) -> Source | None:  # noqa: ARG001 - one version of the file
    if size > BYTES_MAX:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(files.read(path), str(path.name))
    except (ValueError, RecursionError, MemoryError):
        return None
    nodes = list(ast.walk(tree))
    attributes = [each for each in nodes if isinstance(each, ast.Attribute)]
    if any(each.attr == "__name__" and isinstance(each.ctx, ast.Store) for each in attributes):
        return None
    anywhere = {name for each in nodes for name in _bound(each)}
    from_within = {name for each in nodes if isinstance(each, ast.Global) for name in each.names}
    used = {each.id for each in nodes if isinstance(each, ast.Name)}
    used |= {each.attr for each in attributes}
    used |= anywhere
    return Source(path, tree.body, anywhere, from_within, not OPAQUE.isdisjoint(used), not MOVED.isdisjoint(used))


def _has_submodule(path: Path, name: str) -> bool:
    if path.name != "__init__.py":
        return False
    return (path.parent / f"{name}.py").is_file() or (path.parent / name).is_dir()
