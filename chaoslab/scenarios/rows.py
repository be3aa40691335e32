"""One side of a comparison in a process of its own, with another revision's code or another environment. `python -P -m
chaoslab.scenarios.rows` reads lines of JSON: first what to run, then the numbers of trials, or of one whose cause is
asked. It prints the trials of a round, then a line for each trial, and ends with its input."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from chaoslab.base.jsonable import to_jsonable
from chaoslab.scenarios._modules import modules_of
from chaoslab.scenarios.load import load
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.running import imported, in_one_line
from chaoslab.scenarios.scenario import Scenario
from chaoslab.scenarios.sides import OfScenario, SeveralSides, Sides


def main() -> int:
    with _lines() as (asking, telling):
        return _rows(asking, telling)


@contextmanager
def _lines() -> Iterator[tuple[IO[str], IO[str]]]:
    """Standard input and output, for these lines alone: what the agent prints goes to the errors, and it reads
    nothing."""
    with os.fdopen(os.dup(0), encoding="utf-8") as asking, os.fdopen(os.dup(1), "w", encoding="utf-8") as telling:
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, 0)
        os.close(nowhere)
        os.dup2(2, 1)
        yield asking, telling


def _rows(asking: IO[str], telling: IO[str]) -> int:
    def say(value: Any) -> None:
        telling.write(json.dumps(to_jsonable(value)) + "\n")
        telling.flush()

    try:
        asked = json.loads(asking.readline())
        only = asked["only"]
        every = load(Path(asked["file"]), changed=asked["changed"])
        found = [each for each in every if each.name == only] or [each for each in every if only in each.name]
        if not found:
            raise ScenarioError(f"no scenario of {asked['file']} has '{only}' in its name")
        for each in found:
            _check_origin(each, asked["root"])
        sides: list[Sides] = [
            OfScenario(each, each.spec.seed if asked["seed"] is None else asked["seed"], asked["jobs"])
            for each in found
        ]
        side = sides[0] if len(sides) == 1 else SeveralSides(sides)
        say(side.period)
        while text := asking.readline():
            wanted = json.loads(text)
            if isinstance(wanted, int):
                say(side.cause(wanted))
                continue
            for row in side.take(wanted):
                say({"side": row.plain(), "story": row.story() if row.story is not None else None})
    except (ValueError, LookupError) as error:
        print(str(error).partition("\n")[0], file=sys.stderr)
        return 2
    return 0


def _check_origin(scenario: Scenario, root: str) -> None:
    """Checks that the scenario's modules are of this tree, not of the one at `root`, which may be installed. Raises
    ScenarioError: one is, or one cannot be imported."""
    here = Path.cwd().resolve()
    with in_one_line(scenario), modules_of(scenario.folder, scenario.spec.dotted):
        if scenario.spec.dotted:
            imported(scenario)
        for module in dict.fromkeys(dotted.partition(":")[0] for dotted in scenario.spec.dotted):
            file = Path(getattr(sys.modules.get(module), "__file__", None) or here).resolve()
            ours = root and file.is_relative_to(root) and not file.is_relative_to(here)
            if ours and "site-packages" not in file.parts:
                raise ScenarioError(
                    f"{module} is not this revision's: Python finds {file}; start from the folder above the package"
                )


if __name__ == "__main__":
    raise SystemExit(main())
