"""Two folders of scenarios may have modules of the same names: each scenario is tried with those of its own folder."""

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaoslab.scenarios._modules import isolate_folder_modules
from chaoslab.scenarios.load import load_file_scenarios
from chaoslab.scenarios.running import run_scenario
from chaoslab.seams.functions.references import is_library_module
from tests.cli_parts import Typed

AGENT = """\
import helper

def refund(order): return "refunded"

def agent(prompt):
    import late
    try:
        refund(17)
    except OSError:
        pass
    return f"{__name__} of {NAME}, helper of {helper.NAME}, late of {late.NAME}"

NAME = "FOLDER"
"""
FILE = """\
name: of FOLDER
agent: clerk:agent
tools: [clerk:refund]
prompt: Refund order 17.
trials: 4
faults:
  - {fault: lost_reply, target: refund, calls: [1]}
expect:
  - answer_contains: clerk of FOLDER, helper of FOLDER, late of FOLDER
"""
ONCE = "with open('imported', 'a') as file:\n    file.write('once ')\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folders with a scenario each, and modules of the same names."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "s.chaos.yaml").write_text(FILE.replace("FOLDER", name))
        (folder / "clerk.py").write_text(AGENT.replace("FOLDER", name))
        for helper in ("helper", "late"):
            (folder / f"{helper}.py").write_text(f"NAME = {name!r}\n")
    return tmp_path


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """The process is as it was, whatever a test does."""
    path, modules = [*sys.path], dict(sys.modules)
    yield
    assert sys.path == path
    assert {name: sys.modules[name] for name in modules} == modules
    assert not {"clerk", "helper", "late"} & sys.modules.keys()


def states(typed: Typed, *arguments: str) -> list[tuple[str, str]]:
    found = json.loads(typed("test", "--no-logs", "--json", *arguments).out)["scenarios"]
    return [(each["name"], each["state"]) for each in found]


def answers(folder: Path) -> set[str | None]:
    (scenario,) = load_file_scenarios(folder / "s.chaos.yaml")
    return {ruling.trial.said for ruling in run_scenario(scenario)}


BOTH = [("of a", "passed"), ("of b", "passed")]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_each_scenario_gets_the_modules_of_its_own_folder(jobs: str, here: Path, typed: Typed) -> None:
    assert states(typed, "--jobs", jobs) == BOTH
    assert states(typed, "--jobs", jobs, "b", "a") == BOTH[::-1]
    (here / "clerk.py").write_text(AGENT.replace("FOLDER", "the current folder"))
    assert states(typed, "--jobs", jobs) == BOTH


def test_workers_that_are_not_forked_get_them_too(here: Path, typed: Typed) -> None:  # noqa: ARG001
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()  # a process with threads is not forked
    try:
        assert states(typed, "--jobs", "2") == BOTH
    finally:
        over.set()
        other.join()


def test_in_one_process_none_is_left_to_the_next(here: Path) -> None:
    said = [f"clerk of {name}, helper of {name}, late of {name}" for name in ("a", "b")]
    assert [answers(here / name) for name in ("a", "b", "a")] == [{said[0]}, {said[1]}, {said[0]}]


def test_a_scenario_that_is_left_early_leaves_none(here: Path) -> None:
    scenarios = [load_file_scenarios(here / name / "s.chaos.yaml")[0] for name in ("a", "b")]
    first = run_scenario(scenarios[0])
    assert next(first).trial.said == "clerk of a, helper of a, late of a"
    first.close()
    assert next(run_scenario(scenarios[1])).trial.said == "clerk of b, helper of b, late of b"


def test_each_check_reads_the_modules_of_its_own_folder(here: Path, typed: Typed) -> None:
    assert typed("check").code == 0
    (here / "b" / "clerk.py").write_text(AGENT.replace("refund", "pay"))
    code, _, error = typed("check")
    told = "b/s.chaos.yaml:3:9: clerk:refund cannot be imported: clerk.py has no 'refund'\n"
    assert (code, error) == (2, told)


def test_the_current_folder_has_what_a_folder_lacks_and_each_has_it_for_itself(here: Path, typed: Typed) -> None:
    for name in ("a", "b"):
        (here / name / "clerk.py").unlink()
    (here / "clerk.py").write_text(AGENT.replace("NAME = ", "NAME = helper.NAME or "))
    assert states(typed) == BOTH


def test_folders_without_modules_share_those_of_the_current_one(here: Path) -> None:
    for name in ("clerk", "helper", "late"):
        for folder in ("a", "b"):
            (here / folder / f"{name}.py").unlink()
        (here / f"{name}.py").write_text("NAME = ''\n")
    (here / "clerk.py").write_text(AGENT + ONCE)
    assert answers(here / "a") == answers(here / "b")
    assert (here / "imported").read_text() == "once "


def test_the_modules_of_a_folder_are_imported_once(here: Path) -> None:
    with (here / "a" / "clerk.py").open("a") as file:
        file.write(ONCE)
    for name in ("a", "b", "a", "a"):
        answers(here / name)
    assert (here / "imported").read_text() == "once "


def test_a_folder_that_a_module_puts_on_the_path_is_there_for_its_scenarios_alone(here: Path) -> None:
    for name in ("a", "b"):
        (here / name / "helper.py").unlink()
        (here / name / "more").mkdir()
        (here / name / "more" / "helper.py").write_text(f"NAME = {name!r}\n")
        (here / name / "late.py").write_text(f"import helper\nNAME = {name!r}\n")
        text = AGENT.replace("FOLDER", name)
        (here / name / "clerk.py").write_text(f"import sys\nsys.path.insert(0, '{here / name / 'more'}')\n{text}")
    said = [f"clerk of {name}, helper of {name}, late of {name}" for name in ("a", "b")]
    assert [answers(here / name) for name in ("a", "b", "a")] == [{said[0]}, {said[1]}, {said[0]}]


def test_a_module_that_the_process_had_is_used_where_no_folder_has_its_own(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(here))
    for name in ("shared_part", "hidden_part"):
        (here / f"{name}.py").write_text("NAME = 'here'\n")
    (here / "a" / "hidden_part.py").write_text("NAME = 'a'\n")
    import hidden_part  # type: ignore[import-not-found]
    import shared_part  # type: ignore[import-not-found]

    try:
        with isolate_folder_modules(here / "a"):
            import hidden_part as hidden_within
            import shared_part as shared_within
        assert (shared_within, hidden_within.NAME, hidden_part.NAME) == (shared_part, "a", "here")
        assert sys.modules["hidden_part"] is hidden_part
    finally:
        del sys.modules["hidden_part"], sys.modules["shared_part"]


def test_an_installed_package_gives_way_to_a_module_that_the_scenario_names(here: Path) -> None:
    import yaml

    assert is_library_module("yaml")
    (here / "a" / "yaml.py").write_text("NAME = 'a'\n")
    with isolate_folder_modules(here / "a"):
        assert sys.modules["yaml"] is yaml
    with isolate_folder_modules(here / "a", ["yaml:agent"]):
        assert __import__("yaml").NAME == "a"
        assert not is_library_module("yaml")
    assert sys.modules["yaml"] is yaml
    assert is_library_module("yaml")
