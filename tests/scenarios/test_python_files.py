"""`chaoslab test` runs scenarios that are written in Python, with faults and metrics that are objects."""

import sys
from pathlib import Path

import pytest

from chaoslab.cli import main
from tests.cli_parts import Typed

Said = pytest.CaptureFixture[str]
FILE = """
from dataclasses import dataclass

import chaoslab as lab
from chaoslab.plugins import Fault


@dataclass(frozen=True)
class OtherPrice(Fault):
    layer = "tool"
    corrupts = "reply"
    price: float = 7.0

    def flow(self, call, context):
        reply = yield call
        return reply.with_value(self.price)


def price(order):
    return 3.0


def answer(prompt):
    return f"It costs {price(17)}."


def is_short(trial):
    return len(trial.answer) < 20


calm = lab.scenario("calm").agent(answer).reads(price).ask("Go.").expect(is_short).set(trials=2)
wrong = calm.set(name="wrong").fault(lab.inject(OtherPrice(9.0), "price", calls=[1]))
both = [calm, wrong]
number = 3
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / "prices_chaos.py"
    path.write_text(FILE)
    return path


def test_the_scenarios_of_a_file_run_each_once(file: Path, capsys: Said) -> None:
    assert main(["test", file.name, "-k", "wrong", "--set", "trials=3"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("FAILED   wrong: 0 of 3 trials passed")
    assert "each met other_price on price" in said
    assert "rerun: chaoslab test prices_chaos.py --trial 1 --set trials=3 -k wrong" in said


def test_one_is_named_and_what_cannot_be_found_is_one_line(file: Path, typed: Typed) -> None:
    (file.parent / "pa-ck").mkdir()
    for name in ("__init__.py", "mine.py"):
        (file.parent / "pa-ck" / name).write_text("")
    assert "wrong" in typed.out("test", "prices_chaos:both", "--dry-run")
    for given, said in (
        ("prices_chaos:wrnog", "prices_chaos has no 'wrnog': did you mean 'wrong'?"),
        ("prices_chaos:number", "there is no scenario: number is none; bind one, as in refund = lab.scenario(…)"),
        ("nowhere:refund", "it cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
        ("nowhere.py", "there is no such file"),
        ("pa-ck/mine.py", "pa-ck.mine is no module's name: rename it, with _ for other characters"),
    ):
        assert typed.refused("test", given) == f"{given}: {said}\n"
    assert "`chaoslab test prices_chaos.py` runs scenarios in Python" in typed.refused("check", file.name)


def test_the_words_of_other_tools_are_answered(tmp_path: Path, typed: Typed) -> None:
    path = tmp_path / "a.chaos.yaml"
    path.write_text(
        "name: a\nreads: ['json:loads']\nchaos_config: {}\noperations:\n  - {tool: loads, args: [17]}\n"
        "  - {tool: loads, kwargs: {}}\nfaults:\n  - {fault: lost_reply, target: loads, on_turn: [0]}\n"
    )
    said = [line.partition(": ")[2] for line in typed("check", path).err.splitlines()]
    assert said == [
        "'chaos_config' is not known here: say faults, or chaos_level for some of all kinds",
        "args is [17]: it should be a mapping of names, as in {order: 17}",
        "'kwargs' is not known here: say args, a mapping of names",
    ]
    for option, instead in (("--workers=4", "say --jobs"), ("--recursive", "a folder is searched to its end")):
        assert instead in typed.refused("test", path, option)
    with pytest.raises(ImportError, match=r"lab\.run.*docs/how-to/coming-from\.md"):
        from chaoslab import AgentWrapper  # type: ignore[attr-defined]  # noqa: F401


def test_a_file_with_a_name_behind_it_is_told_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    (tmp_path / "my_chaos.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert main(["test", "my_chaos.py:lookup"]) == 2
    assert capsys.readouterr().err == (
        "my_chaos.py:lookup: there is no module 'my_chaos.py': did you mean 'my_chaos'?\n"
    )
