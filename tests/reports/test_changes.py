"""Two runs side by side: which trials went worse and better, the test, and the new failures with their replay line."""

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
from chaoslab.reports.changes import Changes, Way
from chaoslab.reports.changes.formats import FORMATS, render_text
from chaoslab.reports.contents import Contents
from tests.cli_parts import Typed
from tests.measures.test_cost import log
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
    return Contents.of(History.read(folder), where=str(folder))


def test_pairs_are_by_prompt_and_repetition_and_new_failures_have_their_replay(folders: tuple[Path, Path]) -> None:
    then, now = map(of, folders)
    found = Changes.of(then, now)
    hit = sorted(row.trial for row in now.rows if row.met)
    assert len(found.pairs) == 10
    assert 0 < len(hit) < 10
    assert sorted(one.trial for one in found.new) == hit
    assert (found.count(Way.WORSE), found.count(Way.BETTER), found.count(Way.SAME)) == (len(hit), 0, 10 - len(hit))
    assert (found.figure.count("worse"), found.figure.count("better")) == (len(hit), 0)
    assert sorted(found.then_alone) == ["p1.r11", "p1.r12"]
    for one in found.new:
        assert (one.then, one.now) == ("correct", "wrong")
        assert one.replay.endswith(f"{folders[1]} --trial {one.trial}")


def test_the_other_way_round_they_are_better_and_nothing_is_new(folders: tuple[Path, Path]) -> None:
    now, then = map(of, folders)
    found, back = Changes.of(then, now), Changes.of(now, then)
    assert (found.new, found.count(Way.BETTER)) == ([], back.count(Way.WORSE))
    assert found.figure.change == pytest.approx(-(back.figure.change or 0))


def test_a_run_and_itself_have_nothing_to_test(folders: tuple[Path, Path]) -> None:
    one = of(folders[0])
    found = Changes.of(one, one)
    assert (found.count(Way.SAME), found.figure.change, found.change) == (12, 0, "")
    assert "12 → 12 of 12 pairs" in found.tested


def test_many_trials_of_one_prompt_that_became_worse_say_nothing_of_three(tmp_path: Path) -> None:
    list(lab.run_many(patient, "The price?", trials=48, reads=[price], logs=tmp_path, anyway=True))
    then = of(tmp_path / "latest")

    def asked(prompts: int, now: Outcome) -> Contents:
        """The run with its trials shared among so many prompts, those of the first of which ended so."""
        rows = [replace(row, prompt=str(n % prompts)) for n, row in enumerate(then.rows)]
        first = [replace(row, outcome=now, standing=stand_by_outcome(now)) for row in rows if row.prompt == "0"]
        return changed(then, rows=[*first, *(row for row in rows if row.prompt != "0")])

    one, three = (Changes.of(asked(number, Outcome.CORRECT), asked(number, Outcome.WRONG)) for number in (1, 3))
    assert (one.change, len(one.new), three.change, len(three.new)) == ("worse", 48, "", 16)
    assert three.tested.endswith("(the mean over 3 prompts): no change is shown.")


def test_every_format_tells_the_same(folders: tuple[Path, Path]) -> None:
    found = Changes.of(*map(of, folders))
    told = {kind: make(found) for kind, (_, make) in FORMATS.items()}
    shown = {**told, "text": " ".join(render_text(found).split())}
    for kind in ("html", "markdown", "text"):
        assert found.said in shown[kind], kind
        assert found.tested in unescape(shown[kind]), kind
        assert found.new[0].replay in shown[kind], kind
    value = json.loads(told["json"])
    assert (value["well"]["change"], value["change"]) == (found.figure.change, found.change)
    assert [pair["trial"] for pair in value["pairs"] if pair["new"]] == [one.trial for one in found.new]
    assert "<b>99" not in told["html"]


def test_what_a_trial_took_is_told_over_the_pairs(folders: tuple[Path, Path]) -> None:
    then, now = map(of, folders)
    found = Changes.of(then, now)
    spent = {one.amount: one for one in found.spent}
    assert list(spent) == ["seconds", "calls", "failed calls", "retries"]  # no model, so no tokens and no dollars
    before = {row.trial: row for row in then.rows}
    for amount in spent:
        field = amount.removesuffix(" calls")
        one = spent[amount]
        pairs = [(getattr(before[row.trial], field), getattr(row, field)) for row in now.rows]
        assert one.pairs == len(pairs) == 10
        assert one.then == pytest.approx(median(was for was, _ in pairs))
        assert one.now == pytest.approx(median(is_now for _, is_now in pairs))
        assert one.difference == pytest.approx(median(is_now - was for was, is_now in pairs))
    assert spent["retries"].now == 0 < spent["retries"].then
    assert spent["failed calls"].cells[2:] == ("0", "")
    low, high = (spent["retries"].interval.low, spent["retries"].interval.high) if spent["retries"].interval else (0, 0)
    assert low == spent["retries"].difference < high == 0
    for kind in ("html", "markdown"):
        assert "retries" in FORMATS[kind][1](found)
    assert "\nretries " in render_text(found)
    assert json.loads(FORMATS["json"][1](found))["spent"]["calls"]["difference"] == spent["calls"].difference
    (same,) = {one.cells[2:] for one in Changes.of(then, then).spent}
    assert same == ("0", "")


@pytest.mark.parametrize(("now", "told"), [(0.25, ["tokens", "dollars"]), (None, ["tokens"])])
def test_dollars_are_compared_only_if_every_answer_has_a_price(now: float | None, told: list[str]) -> None:
    runs = [Contents.of(log((set(), [(2, usd)], 1.0)), where="x") for usd in (0.5, now)]
    spent = {one.amount: one for one in Changes.of(*runs).spent}
    assert [*spent][-len(told) :] == told
    assert spent["tokens"].cells == ("3.00", "3.00", "0", "")
    if now is not None:
        assert spent["dollars"].cells == ("0.500000 USD", "0.250000 USD", "-0.250000 USD", "")


def test_a_pair_that_was_cut_off_counts_for_no_mean(folders: tuple[Path, Path]) -> None:
    then, now = map(of, folders)
    hung = [replace(row, outcome=Outcome.HUNG) if row.trial == "p1.r1" else row for row in now.rows]
    assert {one.pairs for one in Changes.of(then, changed(now, rows=hung)).spent} == {9}


def test_settings_that_differ_are_told_with_their_values(tmp_path: Path) -> None:
    history = History.read(FakeRun(tmp_path, prompts=1).write())
    runs = [Contents.of(stated(history, TOOL_TIMEOUT_S=limit), where="x") for limit in (2.0, 0.3)]
    assert Changes.of(*runs).notes == ("The setting TOOL_TIMEOUT_S is another: 2.0 then, 0.3 now.",)
    page = render_text(Changes.of(*runs))
    assert page.index("note: The setting") < page.index("median of a trial")  # what makes the pairs unlike comes first
    html = FORMATS["html"][1](Changes.of(*runs))
    assert html.index("The setting TOOL_TIMEOUT_S") < html.index('class="facts"')


def test_a_setting_is_text_in_markdown_whatever_is_in_it(tmp_path: Path) -> None:
    history = History.read(FakeRun(tmp_path, prompts=1).write())
    runs = [Contents.of(stated(history, PROMPTS=name), where="x") for name in ("a", "<img src=x> **b**")]
    page = FORMATS["markdown"][1](Changes.of(*runs))
    assert "- `The setting PROMPTS is another: 'a' then, '<img src=x> **b**' now.`" in page


def test_of_two_runs_the_comparison_alone_is_printed(folders: tuple[Path, Path], here: Path, typed: Typed) -> None:
    before = {path: path.stat().st_mtime_ns for folder in folders for path in folder.iterdir()}
    for kind, (_, make) in FORMATS.items():
        assert typed.out("report", *folders, "--format", kind, "--out", "-") == make(Changes.of(*map(of, folders)))
    assert {path: path.stat().st_mtime_ns for folder in folders for path in folder.iterdir()} == before
    assert list(here.iterdir()) == []


def test_the_command_compares_two_runs(folders: tuple[Path, Path], typed: Typed) -> None:
    names = list(map(str, folders))
    for kind, (file, _) in FORMATS.items():
        assert typed.out("report", *names, "--format", kind).splitlines()[-1] == f"{folders[1]}/{file}"
        assert (folders[1] / file).stat().st_size
    assert typed.out("report", names[0], "--format", "json") == f"{folders[0]}/report.json\n"


def test_a_phone_shows_why_a_trial_changed(folders: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "changes.html").write_text(FORMATS["html"][1](Changes.of(*map(of, folders))))
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
