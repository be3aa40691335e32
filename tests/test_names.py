"""The share of names that say nothing by themselves: participles, pronouns, prepositions. CONTRIBUTING has the rule."""

import ast
from collections.abc import Iterator
from pathlib import Path

import chaoslab

ROOT = Path(chaoslab.__file__).parents[1]
VAGUE = frozenset(
    """
    found made told said asked given there own each one here left held done kept wanted known began begun
    seen shown of again apart aside over more most least words way part place what why where who how came
    taken met off still when stated other others whole says
    """.split()  # noqa: SIM905 - a list of words
)
SHARE_MAX, FUNCTIONS_MAX = 0.0155, 42
"""Today's figures. Lower them with each change that renames; never raise them."""


def names(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Each name that is bound, and True if it is a function's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, False
        elif isinstance(node, ast.arg):
            yield node.arg, False
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name.strip("_"), True


def test_the_share_of_vague_names_does_not_grow() -> None:
    folders = [ROOT / name for name in ("chaoslab", "agent", "flask_tools", "proxy_manager")]
    sources = [path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py")]
    bound = [pair for source in sources for pair in names(ast.parse(source))]
    variables = [name for name, is_function in bound if not is_function]
    vague = sum(name in VAGUE for name in variables)
    assert vague / len(variables) <= SHARE_MAX, f"{vague} of {len(variables)} names are vague"
    functions = sorted(name for name, is_function in bound if is_function and name in VAGUE)
    assert len(functions) <= FUNCTIONS_MAX, functions
