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
from chaoslab.scenarios._modules import isolate_folder_modules
from chaoslab.scenarios.load import load_file_scenarios
from chaoslab.scenarios.located import ScenarioError
from chaoslab.scenarios.running import convert_errors_to_one_line, import_agent_and_options
from chaoslab.scenarios.scenario import Scenario
from chaoslab.scenarios.sides import ComparisonSide, ScenarioSide, SeveralSides


def serve_trials() -> int:
    with _open_line_streams() as (asking, telling):
        return _serve_trial_requests(asking, telling)


@contextmanager
def _open_line_streams() -> Iterator[tuple[IO[str], IO[str]]]:
    """Standard input and output, for these lines alone: what the agent prints goes to the errors, and it reads
    nothing."""
    # Copies, since 0 and 1 are given to the agent.
    with os.fdopen(os.dup(0), encoding="utf-8") as asking, os.fdopen(os.dup(1), "w", encoding="utf-8") as telling:
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, 0)
        os.close(nowhere)
        # What an agent prints must not stand between these lines.
        os.dup2(2, 1)
        yield asking, telling


def _serve_trial_requests(asking: IO[str], telling: IO[str]) -> int:
    def write_json_line(value: Any) -> None:
        telling.write(json.dumps(to_jsonable(value)) + "\n")
        telling.flush()

    try:
        request = json.loads(asking.readline())
        only = request["only"]
        every = load_file_scenarios(Path(request["file"]), changed=request["changed"])
        # Of this very name first: another's name may hold it.
        matches = [scenario for scenario in every if scenario.name == only] or [
            scenario for scenario in every if only in scenario.name
        ]
        if not matches:
            raise ScenarioError(f"no scenario of {request['file']} has '{only}' in its name")
        for scenario in matches:
            _check_module_origins(scenario, request["root"])
        sides: list[ComparisonSide] = [
            ScenarioSide(scenario, scenario.spec.seed if request["seed"] is None else request["seed"], request["jobs"])
            for scenario in matches
        ]
        side = sides[0] if len(sides) == 1 else SeveralSides(sides)
        write_json_line(side.round_size)
        while text := asking.readline():
            command = json.loads(text)
            if isinstance(command, int):
                write_json_line(side.explain_cause(command))
                continue
            for row in side.produce_trials(command):
                write_json_line({"side": row.to_json_values(), "story": row.story() if row.story is not None else None})
    except (ValueError, LookupError) as error:
        # The last line of the errors is what the other process tells.
        print(str(error).partition("\n")[0], file=sys.stderr)
        return 2
    return 0


def _check_module_origins(scenario: Scenario, root: str) -> None:
    """Checks that the scenario's modules are of this tree, not of the one at `root`, which may be installed. Raises
    ScenarioError: one is, or one cannot be imported."""
    current = Path.cwd().resolve()
    with convert_errors_to_one_line(scenario), isolate_folder_modules(scenario.folder, scenario.spec.dotted_names):
        if scenario.spec.dotted_names:
            import_agent_and_options(scenario)
        for module in dict.fromkeys(dotted.partition(":")[0] for dotted in scenario.spec.dotted_names):
            file = Path(getattr(sys.modules.get(module), "__file__", None) or current).resolve()
            # A package that is installed from the work tree is that of now, whatever the revision.
            ours = root and file.is_relative_to(root) and not file.is_relative_to(current)
            if ours and "site-packages" not in file.parts:
                raise ScenarioError(
                    f"{module} is not this revision's: Python finds {file}; start from the folder above the package"
                )


if __name__ == "__main__":
    raise SystemExit(serve_trials())
