"""The page on other catalogues: each of its lines can be injected, and its counts are those of its tables."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.core.inject import check_injections

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "other-catalogues.md"
SHARE_MIN = 0.9
LINE = re.compile(r'`("\w+", "(?:search|model)"[^`]*)`')


def tables() -> Iterator[tuple[str, list[list[str]]]]:
    """Each section's heading, with the cells of the rows of its tables."""
    for section in PAGE.read_text(encoding="utf-8").split("\n## "):
        name, _, text = section.partition("\n")
        rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("|")]
        yield name, [[cell.strip() for cell in row] for row in rows if not row[0].strip().startswith("---")]


def catalogues() -> dict[str, list[tuple[str, int, list[str]]]]:
    """Catalogue → its rows: the fault, the count and the lines that inject it."""
    return {
        name: [(row[0], int(row[1]), LINE.findall(row[2])) for row in rows if len(row) == 3 and row[1].isdigit()]
        for name, rows in tables()
        if not name.startswith("#")
    }


def strategies() -> list[str]:
    """The triggers that a name with `_*` stands for."""
    (rows,) = [rows for name, rows in tables() if name == "AgentChaos"]
    return [row[1].strip("`") for row in rows if len(row) == 2 and row[1].startswith("`")]


def lines() -> list[str]:
    found = []
    for rows in catalogues().values():
        for fault, _, said in rows:
            triggers = strategies() if "_*" in fault else [""]
            found += [f"{line}, {trigger}".removesuffix(", ") for line in said for trigger in triggers]
    return found


@pytest.mark.parametrize("line", dict.fromkeys(lines()))
def test_each_line_can_be_injected(line: str) -> None:
    call = ast.parse(f"inject({line})", mode="eval").body
    assert isinstance(call, ast.Call)
    fault, target = (ast.literal_eval(each) for each in call.args)
    options = {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg}
    check_injections([lab.inject(fault, target, **options)], [target], models=[target] if target == "model" else [])


def test_the_counts_are_those_of_the_tables() -> None:
    (told,) = [rows for name, rows in tables() if name.startswith("#")]
    stated = {row[0]: (int(row[1]), int(row[2])) for row in told if row[1].isdigit()}
    counted = {
        name: (sum(count for _, count, _ in rows), sum(count for _, count, said in rows if said))
        for name, rows in catalogues().items()
    }
    counted["all"] = (sum(each for each, _ in counted.values()), sum(each for _, each in counted.values()))
    assert counted == stated


def test_nearly_all_can_be_said() -> None:
    rows = [row for each in catalogues().values() for row in each]
    assert len(strategies()) == 4
    assert sum(n for _, n, said in rows if said) >= SHARE_MIN * sum(n for _, n, _ in rows)


def test_what_cannot_be_said_has_a_reason() -> None:
    for _, rows in tables():
        for row in rows:
            if len(row) == 3 and row[1].isdigit() and not row[2].isdigit() and not LINE.search(row[2]):
                assert row[2].startswith("not here")
