"""`chaoslab explore` from the command line: a scenario or an agent, the map, what is saved, and bad input."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from chaoslab.cli import main
from chaoslab.cli.explore import ProgressPrinter
from chaoslab.core.events import VariationTried
from chaoslab.execution.explore import SearchProgress
from chaoslab.record.history import History

Said = pytest.CaptureFixture[str]
FILE = """\
name: shop
agent: {agent}
tools: [desk:pay]
reads: [desk:look]
prompt: Pay order 17.
"""
DESK = """\
from chaoslab import inject
def pay(order): return "paid"
def look(order): return "open"
def agent(prompt):
    for _ in range(2):
        try:
            look(17)
            pay(17)
            return "Order 17 is paid."
        except Exception:
            continue
    return "I could not pay order 17."
def mended(prompt):
    try:
        pay(17)
    except Exception:
        pass
    return "Order 17 is paid."
def broken(prompt):
    raise RuntimeError("no")
"""
SMALL = ("--tries", "lost_reply", "--by", "singles", "--no-logs")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "desk", raising=False)
    (tmp_path / "desk.py").write_text(DESK)
    (tmp_path / "shop.chaos.yml").write_text(FILE.format(agent="desk:agent"))
    return tmp_path


def explore(capsys: Said, *arguments: str) -> tuple[int, str, str]:
    code = main(["explore", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_scenario_is_explored_and_its_failure_is_kept_until_it_is_fixed(here: Path, capsys: Said) -> None:
    code, said, err = explore(capsys, "shop.chaos.yml", *SMALL, "--save", "found")
    assert code == 1
    lines = said.splitlines()
    assert re.fullmatch(r"shop: 1 root cause in 3 trials, \d+\.\d s", lines[0])
    assert "1. HARM: Pay twice: the agent repeats a call that may have succeeded." in lines
    assert "   at: desk.py:8: pay(17)" in lines
    assert "   cause: lost_reply at pay 1" in lines
    points = "Single points of failure, by faults that hit once: 1 of 2 calls (pay 1)."
    assert f"map: 2 of 4 cells tried: 1 correct, 1 harm. {points}" in lines
    assert file_names(here) == ["shop-repeats-pay-"]
    (file,) = (here / "found").iterdir()
    assert err.endswith(f"saved {file.relative_to(here)}\n")
    (again,) = re.findall("rerun: chaoslab test (.*)", said)
    assert "lost_reply" in again
    assert main(["test", "found", "--no-logs"]) == 1
    capsys.readouterr()
    file.write_text(file.read_text().replace("desk:agent", "desk:mended"))
    assert main(["test", "found", "--no-logs"]) == 0
    assert "  fixed: it was found with lost_reply at pay 1: pay twice" in capsys.readouterr().out.splitlines()


def file_names(here: Path) -> list[str]:
    return [each.name.removesuffix(".chaos.yml")[:-6] for each in (here / "found").iterdir()]


def test_an_agent_of_no_file_is_saved_and_run_again_by_its_name(capsys: Said) -> None:
    code, said, _ = explore(capsys, "desk:agent", "--prompt", "Pay order 17.", *SMALL, "--save", "found")
    assert code == 1
    (again,) = re.findall("rerun: chaoslab (test .*)", said)
    assert main([*shlex.split(again), "--no-logs"]) == 1
    assert "    harm: look twice" in capsys.readouterr().out.splitlines()  # its source does not say that it only reads
    assert main(["test", "found", "--no-logs"]) == 1


def test_all_shows_each_way_to_fail_and_every_call(capsys: Said) -> None:
    _, said, _ = explore(capsys, "shop.chaos.yml", "--tries", "lost_reply", "--tries", "timeout", "--no-logs")
    assert "cause: lost_reply at pay 1, and " in said
    assert "also: harm: " not in said
    _, said, _ = explore(capsys, "shop.chaos.yml", "--tries", "lost_reply", "--tries", "timeout", "--no-logs", "--all")
    assert "   also: harm: timeout (stream=downstream) at pay 1: pay twice" in said.splitlines()
    assert "  pay 1" in said.splitlines()


def test_one_that_is_saved_has_the_values_that_were_set(here: Path, capsys: Said) -> None:
    explore(capsys, "shop.chaos.yml", *SMALL, "--set", "prompt=Pay order 18.", "--save", "found")
    (file,) = (here / "found").iterdir()
    assert "prompt: Pay order 18." in file.read_text()


def test_one_that_is_saved_already_is_left_as_it_is(here: Path, capsys: Said) -> None:
    explore(capsys, "shop.chaos.yml", *SMALL, "--save", "found")
    (file,) = (here / "found").iterdir()
    file.write_text("mine")
    explore(capsys, "shop.chaos.yml", *SMALL, "--save", "found")
    assert [each.read_text() for each in (here / "found").iterdir()] == ["mine"]


def test_the_map_is_data_and_a_page_on_which_replies_are_text(here: Path, capsys: Said) -> None:
    hostile = DESK.replace('return "I could not pay order 17."', 'raise ValueError("<script>alert(1)</script>")')
    (here / "desk.py").write_text(hostile)
    explore(capsys, "shop.chaos.yml", "--tries", "exception", "--tries", "lost_reply", "--by", "singles", "--by",
            "born", "--no-logs", "--map", "map.html")  # fmt: skip
    page = (here / "map.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-" in page
    assert 'href="#failure-1"' in page
    assert 'id="failure-1"' in page
    explore(capsys, "shop.chaos.yml", *SMALL, "--map", "map.json")
    cells = json.loads((here / "map.json").read_text())["cells"]
    assert [(cell["call"], cell["fault"], cell["outcome"]) for cell in cells] == [
        ("look 1", "lost_reply", "correct"), ("pay 1", "lost_reply", "harm"),
    ]  # fmt: skip


def test_json_is_one_document_and_its_failures_can_be_run_again(capsys: Said) -> None:
    code, said, _ = explore(capsys, "shop.chaos.yml", *SMALL, "--json")
    assert code == 1
    (told,) = json.loads(said)["explored"]
    (failure,) = told["failures"]
    assert (told["name"], told["tried"], failure["outcome"]) == ("shop", 3, "harm")
    assert failure["faults"] == [{"fault": "lost_reply", "target": "pay", "calls": [1]}]
    assert (failure["symptom"], failure["operation"], failure["places"]) == ("repeats", "pay", ["desk.py:8"])


def test_an_agent_is_explored_by_its_name_and_its_prompt(capsys: Said) -> None:
    code, said, _ = explore(capsys, "desk:mended", "--prompt", "Pay order 17.", *SMALL)
    assert code == 0
    assert "no failure was found" in said


def test_a_file_can_say_how_it_is_explored(here: Path, capsys: Said) -> None:
    more = "explore: {trials: 2, tries: [lost_reply], by: [singles]}\n"
    (here / "shop.chaos.yml").write_text(FILE.format(agent="desk:agent") + more)
    _, said, _ = explore(capsys, "shop.chaos.yml", "--no-logs")
    assert said.startswith("shop: the budget of 2 trials was spent: 1 root cause in 2 trials")
    assert "1 of 4 cells tried: 1 harm." in said
    assert "the budget of … trials was spent; a larger budget tries it" in said


def test_a_run_goes_on_where_it_was(here: Path, capsys: Said) -> None:
    explore(capsys, "shop.chaos.yml", *SMALL[:-1], "--logs", "logs")
    (run,) = {each.parent for each in (here / "logs").glob("*/info.log") if not each.parent.is_symlink()}
    code, said, _ = explore(capsys, "shop.chaos.yml", *SMALL, "--resume", str(run), "--trials", "1")
    assert code == 1
    assert "2 of 4 cells tried" in said


@pytest.mark.parametrize("quiet", [(), ("-q",)])
@pytest.mark.parametrize("phase", ["singles", "confirming the failures", "shrinking failure 1 of 1"])
def test_ctrl_c_tells_how_to_go_on_at_once_and_leaves_the_map(
    capsys: Said, monkeypatch: pytest.MonkeyPatch, phase: str, quiet: tuple[str, ...]
) -> None:
    told = ProgressPrinter.__call__
    came: list[SearchProgress] = []

    def interrupted(self: ProgressPrinter, progress: SearchProgress) -> None:
        assert not came, "no trial is run after it"
        told(self, progress)
        if progress.strategy == phase and progress.failures:
            came.append(progress)
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressPrinter, "__call__", interrupted)
    code, _, said = explore(capsys, "shop.chaos.yml", *SMALL[:-1], *quiet, "--logs", "logs")
    (run,) = {each.parent for each in Path("logs").glob("*/info.log") if not each.parent.is_symlink()}
    *progress, last = said.splitlines()
    assert (code, bool(progress)) == (130, not quiet)
    found = rf"what was found is in {run}/map.html; --resume {run} goes on"
    assert re.fullmatch(rf"interrupted: \d of \d known( and \d again)? tried, 1 distinct failure; {found}", last)
    page = (run / "map.html").read_text()
    left = came[0].possible - came[0].tried
    assert f"interrupted, {left} of the known trials left: " in page
    assert "What fails was not shrunk: --resume goes on." in page
    assert "It goes on" not in page
    assert ("interrupted, 0 of the known trials left; --resume tries it" in page) == (left == 0)
    assert "o-harm" in page


def test_an_agent_that_is_named_as_a_file_is_told_its_module(here: Path, capsys: Said) -> None:  # noqa: ARG001
    assert explore(capsys, "desk.py:agent", "--prompt", "Pay.")[::2] == (
        2, "desk.py:agent: there is no module 'desk.py': did you mean 'desk'?\n"
    )  # fmt: skip
    assert explore(capsys, "desk:agnt", "--prompt", "Pay.")[::2] == (
        2, "desk:agnt: desk.py has no 'agnt': did you mean 'agent'?\n"
    )  # fmt: skip


def test_an_agent_that_is_no_python_is_told_its_line(here: Path, capsys: Said) -> None:
    (here / "torn.py").write_text("x = 1\ndef agent(p:\n")
    said = "'(' was never closed (torn.py, line 2)\n"
    assert explore(capsys, "torn:agent", "--prompt", "Pay.")[::2] == (2, f"torn:agent: SyntaxError: {said}")
    assert main(["init", "--agent", "torn:agent", "new"]) == 2
    assert capsys.readouterr().err == said


def test_an_exploration_of_the_labs_own_agent_is_logged_and_goes_on_where_it_was(here: Path, capsys: Said) -> None:
    (here / "shop.chaos.yml").write_text('name: own\nagent: lab\nprompt: Send Ana the message "hello".\n')
    code, first, _ = explore(capsys, "shop.chaos.yml", *SMALL[:-1], "--logs", "logs")
    (run,) = {each.parent for each in (here / "logs").glob("*/info.log") if not each.parent.is_symlink()}
    assert code == 0
    assert "3 of 5 cells tried: 3 correct" in first
    tried = [event.tried for _, event in History.read(run).find_events(VariationTried) if event.tried["by"] != "again"]
    assert len(tried) == 4  # and the one without faults
    code, again, _ = explore(capsys, "shop.chaos.yml", *SMALL, "--resume", str(run), "--trials", "1")
    assert code == 0
    assert "3 of 5 cells tried: 3 correct" in again


MAKER = """
def pay(order): return "paid"
def make():
    def agent(prompt):
        try: return pay(17)
        except TimeoutError: return pay(17)
    return agent
"""


def test_what_makes_an_agent_is_explored_by_its_name_and_its_failure_run_again(here: Path, capsys: Said) -> None:
    (here / "maker.py").write_text(MAKER)
    code, said, _ = explore(
        capsys, "maker:make", "--prompt", "Pay 17.", "--tries", "lost_reply", "--by", "singles", "--no-logs"
    )
    assert code == 1
    (again,) = re.findall("rerun: chaoslab (.*)", said)
    assert main([*shlex.split(again), "--no-logs"]) == 1
    assert "harm: pay twice" in capsys.readouterr().out


def test_a_trial_that_does_not_end_in_real_time_is_one_that_hung(here: Path, capsys: Said) -> None:
    (here / "desk.py").write_text(DESK.replace('return "I could not pay order 17."', "while True: pass", 1))
    code, said, _ = explore(
        capsys, "shop.chaos.yml", "--tries", "exception", "--by", "singles", "--by", "pairs", "--no-logs",
        "--set", "real_limit=3",
    )  # fmt: skip
    assert code == 1
    assert "1. HUNG: The user waits forever: the agent never gets past " in said
    assert re.search("cause: exception at look 1 and at (look 2|pay 1)", said), said


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["none.chaos.yml"], "none.chaos.yml"),
        (["desk"], "desk is no scenario's file and no module:name of an agent"),
        (["desk:agent"], "desk:agent has to be asked something: give --prompt, or a scenario's file"),
        (["shop.chaos.yml", "-n", "0"], "0 should be a whole number from 1 to 1000000"),
        (["shop.chaos.yml", "--tries", "lost_repl"], "tries has 'lost_repl': did you mean 'lost_reply'?"),
        (["shop.chaos.yml", "--by", "single"], "by has 'single': did you mean 'singles'?"),
        (["shop.chaos.yml", "-k", "other"], "no scenario of shop.chaos.yml has 'other' in its name"),
        (["shop.chaos.yml", "--map", "map.png"], "map.png should end in .html or .json"),
        (["shop.chaos.yml", "--resume", "none"], "none"),
        (["shop.chaos.yml", "--set", "agent=desk:broken"], "shop"),
        (["shop.chaos.yml", "--set", "agent=desk:nobody"], "nobody"),
    ],
)
def test_bad_input_is_told_in_one_line(arguments: list[str], why: str, capsys: Said) -> None:
    try:
        code = main(["explore", *arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)
    said = capsys.readouterr()
    assert code == 2, said
    assert why in said.err.splitlines()[-1]
    assert not said.out
    assert "Traceback" not in said.err
