"""The page for those who come from another tool: each word of ours exists, each of theirs that is answered is there."""

import argparse
import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.base.foreign import KEYS, NAMES, OPTIONS
from chaoslab.cli import COMMANDS
from chaoslab.config.settings import Settings
from chaoslab.scenarios.spec import OperationSpec, ScenarioSpec

PAGE = (Path(__file__).parents[1] / "docs" / "how-to" / "coming-from.md").read_text(encoding="utf-8")
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line]
OURS = dict.fromkeys(said for row in ROWS for said in re.findall("`([^`]+)`", row[-1]))


@cache
def options_of(command: str) -> frozenset[str]:
    parser = argparse.ArgumentParser()
    import_module(f"chaoslab.cli.{command}").arguments(parser)
    return frozenset(option for action in parser._actions for option in action.option_strings)


@pytest.mark.parametrize("said", OURS)
def test_each_word_of_ours_exists(said: str) -> None:
    if said.startswith("lab."):
        for call in (node for node in ast.walk(ast.parse(said.replace("…", "..."))) if isinstance(node, ast.Call)):
            name = ast.unparse(call.func)
            if re.fullmatch(r"lab(\.\w+)+", name):
                found = lab
                for part in name.split(".")[1:]:
                    found = getattr(found, part)
            if name in ("lab.inject", "lab.level", "lab.turn") or name.startswith("lab.expect."):
                given = [ast.literal_eval(each) for each in call.args]
                found(*given, **{each.arg or "": ast.literal_eval(each.value) for each in call.keywords})  # type: ignore[operator]
    elif said.startswith("chaoslab "):
        _, command, *words = said.split()
        assert command in COMMANDS
        Settings().override(dict(word.split("=") for word in words if re.match("[A-Z_]+=", word)))
        assert {word for word in words if word.startswith("--")} <= options_of(command)
    elif said.endswith(":"):
        assert said[:-1] in {*ScenarioSpec.model_fields, *OperationSpec.model_fields}
    else:
        assert said == "chaos"  # the fixture


def test_each_word_of_theirs_that_is_answered_is_on_the_page() -> None:
    assert [word for word in (*NAMES, *OPTIONS, *KEYS) if not re.search(rf"{re.escape(word)}\b", PAGE)] == []
