"""A user's type checker knows the types of `import chaoslab`. mypy checks this file like a user's; the tests hold what
it cannot see."""

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import assert_type

import chaoslab as lab
from chaoslab.core import plan


def faults_of(*tools: str) -> Sequence[lab.Injection]:
    """A user's own function that states the types it gives."""
    return [lab.inject("lost_reply", tool, calls=[1]) for tool in tools]


def test_what_a_user_gets_has_a_type() -> None:
    (fault,) = faults_of("refund")
    assert_type(fault, lab.Injection)
    assert_type(lab.inject("latency", "refund"), plan.Injection)
    assert fault.targets == ("refund",)


def test_each_name_is_there_for_a_type_checker_too() -> None:
    source = Path(lab.__file__).read_text(encoding="utf-8")
    named = {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("chaoslab.")
        for alias in node.names
    }
    assert named == set(lab.__all__)
    assert (Path(lab.__file__).parent / "py.typed").is_file()
