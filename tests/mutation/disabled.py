"""Disables each fault and each trigger, one method at a time, and says if a test goes red.

    python -m tests.mutation.disabled [NAME …] [--jobs 2]

A fault loses its story (`flow` only passes the call on, `changed` changes nothing), its toxics, its witness
(`witnessed` is None), its dice (`draw` draws nothing), or the reason why it had nothing to do (`idle`). A trigger
always holds, or never does. Each is done in a copy of the tree, with the tests of that fault or trigger.
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

from chaoslab.base.registry import bundled
from tests.mutation.run import ROOT, copied

BODIES = {
    "faults": {"flow": ["return (yield call)"], "toxics": ["return ()"], "witnessed": ["return None"],
               "draw": ["return self"], "changed": ["return {first}"], "idle": ["return ''"]},
    "core.triggers": {"holds": ["return True", "return False"]},
}  # fmt: skip
"""Group of plug-ins → the methods to disable, with the bodies that do. `first` is the first argument."""


@dataclass(frozen=True)
class Disabled:
    """A plug-in whose method has another body. `begin`, `end`: the lines of the body in its file, from 0."""

    group: str
    name: str
    file: str
    method: str
    body: str
    begin: int
    end: int
    indent: int

    @property
    def tests(self) -> str:
        if self.group != "faults":
            return "tests/test_triggers.py"
        own = f"tests/faults/test_fault_{self.name}.py"
        return own if (ROOT / own).exists() else f"tests/faults/test_{Path(self.file).parent.name}_faults.py"

    def of(self, source: str) -> str:
        lines = source.splitlines(keepends=True)
        return "".join([*lines[: self.begin], f"{' ' * self.indent}{self.body}\n", *lines[self.end :]])


def found(names: Sequence[str]) -> Iterator[Disabled]:
    """All ways to disable these plug-ins, or all of them."""
    for group, methods in BODIES.items():
        for name, module in sorted(bundled(group).items()):
            spec = find_spec(module)
            assert spec is not None
            assert spec.origin is not None
            file = Path(spec.origin)
            if names and name not in names:
                continue
            tree = ast.parse(file.read_text(encoding="utf-8"))
            own = [each for node in tree.body if isinstance(node, ast.ClassDef) for each in node.body]
            for function in (each for each in own if isinstance(each, ast.FunctionDef) and each.name in methods):
                first, last = function.body[0], function.body[-1]
                assert last.end_lineno is not None
                named = [each.arg for each in function.args.args[1:2]]
                for body in (each.format(first="".join(named)) for each in methods[function.name]):
                    yield Disabled(
                        group, name, str(file.relative_to(ROOT)), function.name, body, first.lineno - 1,
                        last.end_lineno, first.col_offset,
                    )  # fmt: skip


def is_noticed(each: Disabled) -> bool:
    """True if a test goes red. Each has a copy of its own."""
    with tempfile.TemporaryDirectory(prefix="disabled-") as folder:
        copy = Path(folder) / "tree"
        copied(copy)
        file = copy / each.file
        file.write_text(each.of(file.read_text(encoding="utf-8")), encoding="utf-8")
        for pyc in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
            pyc.unlink()
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", each.tests],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy)},
            capture_output=True,
            check=False,
        )
    if ended.returncode not in (0, 1):
        raise SystemExit(f"{each.tests}: {ended.stdout.decode()[-2000:]}{ended.stderr.decode()[-2000:]}")
    return ended.returncode == 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", help="faults and triggers (default: all)")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    todo, green = list(found(asked.name)), 0
    with ThreadPoolExecutor(asked.jobs) as pool:
        results = zip(todo, pool.map(is_noticed, todo), strict=True)
        for (_, name), ways in groupby(results, key=lambda pair: (pair[0].group, pair[0].name)):
            told = list(ways)
            green += sum(not red for _, red in told)
            said = (f"{each.method} ({each.body}) {'red' if red else 'GREEN'}" for each, red in told)
            print(f"{name}: {'; '.join(said)}", flush=True)
    print(f"{len(todo)} ways to disable; {green} that no test notices")
    return int(green > 0)


if __name__ == "__main__":
    sys.exit(main())
