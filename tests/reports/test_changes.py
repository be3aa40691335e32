"""Two runs side by side: which trials went worse and better, the verdict, and the command that runs one again."""

import json
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from statistics import median

import pytest

import chaoslab as lab
from chaoslab.analysis.verdict.standing import stand_by_outcome
from chaoslab.analysis.verdict.table import Outcome
from chaoslab.record.history import History
from chaoslab.reports.changes import FORMATS, Changes, render_text
from chaoslab.reports.contents import Contents
from tests.cli_parts import Typed
from tests.reports.browser import browse
from tests.reports.fake_run import FakeRun, changed, stated
from tests.reports.shop_agents import hasty, patient, price

XSD = Path(__file__).with_name("junit.xsd")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Twelve trials of the patient agent, and ten of the hasty one under the same dice."""

    def logs(agent: Callable[[str], str], trials: int) -> Path:
        folder = tmp_path_factory.mktemp("logs")
        fault = lab.inject("server_error", "price", chance=0.5, calls=[1])
        list(lab.run_many(agent, "The price?", trials=trials, reads=[price], faults=[fault], logs=folder))
        return (folder / "latest").resolve()

    return logs(patient, 12), logs(hasty, 10)


def of(folder: Path) -> Contents:
    return Contents.build(History.read(folder), where=str(folder))


def test_pairs_are_by_prompt_and_repetition_and_each_that_fell_has_its_replay(folders: tuple[Path, Path]) -> None:
    then, now = map(of, folders)
    found = Changes.build(then, now)
    hit = sorted(row.trial for row in now.rows if row.met)
    assert len(found.rows) == 10
    assert 0 < len(hit) < 10
    assert sorted(key for _, key, _ in found.changed) == hit
    figure = found.comparison.figures["well"]
    assert (figure.count("worse"), figure.count("better"), figure.shares) == (len(hit), 0, (10, 0, 10, 10 - len(hit)))
    assert "2 trials of one run alone, which count for nothing" in found.lines
    for pair, key, replay in found.changed:
        assert (pair.change, pair.base.outcome, pair.new.outcome) == ("worse", "correct", "wrong")
        assert replay.endswith(f"{folders[1]} --trial {key}")


def test_the_other_way_round_they_are_better_and_no_command_is_told(folders: tuple[Path, Path]) -> None:
    now, then = map(of, folders)
    found, back = Changes.build(then, now), Changes.build(now, then)
    assert {pair.change for pair, *_ in found.changed} == {"better"}
    assert len(found.changed) == len(back.changed)
    assert ("--trial" in render_text(found), "--trial" in render_text(back)) == (False, True)


def test_a_run_and_itself_differ_in_nothing(folders: tuple[Path, Path]) -> None:
    one = of(folders[0])
    found = Changes.build(one, one)
    assert found.changed == []
    assert found.lines[0].startswith("too few: ")
    assert "ended well 12 → 12 of 12 pairs; change +0.0%" in found.lines[0]


def test_runs_of_other_prompts_have_no_pair(folders: tuple[Path, Path]) -> None:
    then = of(folders[0])
    found = Changes.build(then, changed(then, rows=[replace(row, prompt="another") for row in then.rows]))
    assert (found.rows, found.lines) == ([], ["no trial of one run has its pair in the other"])
    for _, make in FORMATS.values():
        assert make(found)


def test_many_trials_of_one_prompt_that_became_worse_say_nothing_of_three(tmp_path: Path) -> None:
    list(lab.run_many(patient, "The price?", trials=48, reads=[price], logs=tmp_path, anyway=True))
    then = of(tmp_path / "latest")

    def asked(prompts: int, now: Outcome) -> Contents:
        """The run with its trials shared among so many prompts, those of the first of which ended so."""
        rows = [replace(row, prompt=str(n % prompts)) for n, row in enumerate(then.rows)]
        first = [replace(row, outcome=now, standing=stand_by_outcome(now)) for row in rows if row.prompt == "0"]
        return changed(then, rows=[*first, *(row for row in rows if row.prompt != "0")])

    one, three = (Changes.build(asked(number, Outcome.CORRECT), asked(number, Outcome.WRONG)) for number in (1, 3))
    assert (one.lines[0].partition(":")[0], len(one.changed)) == ("worse", 48)
    assert (three.lines[0].partition(":")[0], len(three.changed)) == ("too few", 16)


def test_every_format_tells_the_same(folders: tuple[Path, Path]) -> None:
    found = Changes.build(*map(of, folders))
    told = {kind: make(found) for kind, (_, make) in FORMATS.items()}
    shown = {**told, "text": " ".join(render_text(found).split())}
    for kind in ("html", "markdown", "text"):
        for line in found.lines:
            assert line in unescape(shown[kind]), (kind, line)
        assert found.changed[0][2] in shown[kind], kind
    value = json.loads(told["json"])
    assert {**value, "changed": 0} == {
        **json.loads(json.dumps(found.comparison.data())), "schema": 3, "then": str(folders[0]), "now": str(folders[1]),
        "changed": 0,
    }  # fmt: skip
    assert [(pair["trial"], pair["change"]) for pair in value["changed"]] == [
        (key, "worse") for _, key, _ in found.changed
    ]


def test_what_a_trial_took_is_told_as_the_median_of_both_runs(folders: tuple[Path, Path]) -> None:
    found = Changes.build(*map(of, folders))
    costs = {cost.amount: (cost.base, cost.new) for cost in found.comparison.costs}
    assert costs["calls"] == tuple(median(side.calls for side in sides) for sides in zip(
        *((pair.base, pair.new) for pair in found.comparison.pairs), strict=True
    ))  # fmt: skip
    assert any(line.startswith("calls a trial, median: ") for line in found.lines)


def test_settings_that_differ_are_told_with_their_values(tmp_path: Path) -> None:
    history = History.read(FakeRun(tmp_path, prompts=1).write())
    runs = [Contents.build(stated(history, TOOL_TIMEOUT_S=limit), where="x") for limit in (2.0, 0.3)]
    note = "The setting TOOL_TIMEOUT_S is another: 2.0 then, 0.3 now"
    assert note in Changes.build(*runs).lines
    for _, make in FORMATS.values():
        assert note in make(Changes.build(*runs))


def test_a_setting_is_text_in_markdown_whatever_is_in_it(tmp_path: Path) -> None:
    history = History.read(FakeRun(tmp_path, prompts=1).write())
    runs = [Contents.build(stated(history, PROMPTS=name), where="x") for name in ("a", "<img src=x> **b**")]
    page = FORMATS["markdown"][1](Changes.build(*runs))
    assert "- `The setting PROMPTS is another: 'a' then, '<img src=x> **b**' now`" in page


def test_of_two_runs_the_comparison_alone_is_printed(folders: tuple[Path, Path], here: Path, typed: Typed) -> None:
    before = {path: path.stat().st_mtime_ns for folder in folders for path in folder.iterdir()}
    for kind, (_, make) in FORMATS.items():
        assert typed.out("report", *folders, "--format", kind, "--out", "-") == make(Changes.build(*map(of, folders)))
    assert {path: path.stat().st_mtime_ns for folder in folders for path in folder.iterdir()} == before
    assert list(here.iterdir()) == []


def test_the_command_compares_two_runs(folders: tuple[Path, Path], typed: Typed) -> None:
    names = list(map(str, folders))
    for kind, (file, _) in FORMATS.items():
        assert typed.out("report", *names, "--format", kind).splitlines()[-1] == f"{folders[1]}/{file}"
        assert (folders[1] / file).stat().st_size
    assert typed.out("report", names[0], "--format", "json") == f"{folders[0]}/report.json\n"


def test_a_phone_shows_why_a_trial_changed(folders: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "changes.html").write_text(FORMATS["html"][1](Changes.build(*map(of, folders))))
    (tmp_path / "trier.html").write_text("""<!doctype html>
<iframe src="changes.html" width="390" height="900"></iframe>
<script>
onload = () => {
  const page = document.querySelector("iframe").contentWindow.document, said = document.createElement("pre");
  const cells = [...page.querySelectorAll(".changed td.said")].map((cell) => cell.getBoundingClientRect());
  said.id = "seen";
  said.textContent = JSON.stringify({ right: Math.max(...cells.map((box) => box.right)), number: cells.length });
  document.body.replaceChildren(said);
};
</script>""")
    seen = browse(tmp_path / "trier.html")
    assert seen["number"] > 0
    assert seen["right"] <= 390
