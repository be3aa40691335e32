"""A run's log as tables: each column has its dtype, and what is not known is missing, never 0."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import chaoslab as lab
from chaoslab.base.extras import build_install_command
from chaoslab.core.events import RunStarted
from chaoslab.execution.trials import Trials
from chaoslab.record import provenance
from chaoslab.record.history import History
from chaoslab.reports._columns import COLUMNS
from chaoslab.reports.frames import Frames, JoinedRunFrames
from chaoslab.reports.loaded import Loaded
from tests.reports.fake_run import FakeRun, stated


def refund(order: int) -> str:
    return f"refunded {order}"


def agent(prompt: str) -> str:
    for _ in range(2):
        try:
            return refund(17)
        except OSError:
            continue
    return prompt


def begun(**more: Any) -> Trials[Any]:
    lost = lab.inject("lost_reply", "refund", chance=0.5)
    return lab.run_many(agent, "Refund order 17.", trials=8, tools=[refund], faults=[lost], **more)


def trials(**more: Any) -> list[lab.Trial]:
    return list(begun(**more))


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    logs = tmp_path_factory.mktemp("logs")
    trials(logs=logs)
    return lab.load(str(logs / "latest"))


@pytest.mark.parametrize("name", COLUMNS)
def test_each_column_has_its_dtype_in_a_run_and_without_any_event(name: str, frames: Frames) -> None:
    for held in (frames, Frames(History([]))):
        table = getattr(held, name)
        settings = ["TOOL_TIMEOUT_S", "DEADLINE_S"] if name == "runs" and len(table) else []
        assert list(table.columns) == [*(column.name for column in COLUMNS[name]), *settings]
        found = [str(dtype).lower() for dtype in table.dtypes]
        assert found == [*(column.dtype.lower() for column in COLUMNS[name]), *["float64"] * len(settings)]
    assert len(getattr(Frames(History([])), name)) == 0


def test_the_tables_say_what_the_trials_say(frames: Frames) -> None:
    done = trials()
    table = frames.trials
    assert list(table.outcome) == [str(trial.outcome) for trial in done]
    assert list(table.duration_s) == [trial.seconds for trial in done]
    assert list(table.effects) == [len(list(trial.effects)) for trial in done]
    assert (table.harms > 0).sum() == (table.outcome == "harm").sum() > 0
    met = frames.faults
    assert len(met) == met.witnessed.sum() == met.injected.sum() == table.faults.sum()
    assert set(met.fault) == {"lost_reply"}
    calls = frames.calls
    assert len(calls) == table.calls.sum()
    assert set(calls[calls.faults != ""].error) == {"timed_out"}
    assert calls[calls.faults == ""].ok.all()
    assert len(frames.effects) == table.effects.sum()
    assert set(frames.effects.content) == {'{"order": 17}'}


def test_the_trials_of_run_many_are_the_same_table(frames: Frames) -> None:
    assert lab.frame(trials()).drop(columns="began_s").equals(frames.trials.drop(columns="began_s"))


def asks(prompt: str) -> str:
    refund(17)
    asked = {"model": "gpt-5-nano", "messages": [{"role": "user", "content": prompt}]}
    reply = httpx.post("http://model/v1/chat/completions", json=asked)
    return "asked" if reply.is_success else "I could not ask."


@pytest.mark.parametrize(
    ("agent", "options"),
    [
        # no call of some trials leaves the agent
        (agent, {"tools": [refund], "faults": [lab.inject("timeout_before_effect", "refund", chance=0.7)]}),
        # the model answers in some trials alone
        (
            asks,
            {
                "tools": [refund],
                "services": {"model": lab.offline_model()},
                "faults": [lab.inject("refused", "model", chance=0.5)],
            },
        ),
    ],
)
def test_what_is_known_of_one_trial_is_known_of_all_in_the_table(
    agent: Callable[[str], str], options: dict[str, Any], tmp_path: Path
) -> None:
    table = lab.frame(list(lab.run_many(agent, "What is 2 + 3?", trials=12, logs=tmp_path, **options)))
    assert table.tokens.isna().all() or table.tokens.notna().all()
    assert table.drop(columns="began_s").equals(lab.load(str(tmp_path / "latest")).trials.drop(columns="began_s"))


def test_run_many_gives_the_table_itself_unless_some_of_it_was_taken_before(frames: Frames) -> None:
    run = begun()
    assert run.frame().drop(columns="began_s").equals(frames.trials.drop(columns="began_s"))
    with pytest.raises(ValueError, match="taken before: keep them in a list"):
        run.frame()
    run = begun()
    next(run)
    with pytest.raises(ValueError, match="taken before"):
        run.frame()
    run.close()
    assert list(run) == []


def test_what_is_not_known_is_missing(frames: Frames) -> None:
    assert frames.trials.tokens.isna().all()
    assert frames.trials.cost_usd.isna().all()
    assert frames.calls.status.isna().all()
    assert len(frames.usage) == 0


EMPTY = {("trials", "prompt"), ("calls", "faults")}
"""The columns in which nothing is a value of its own."""


def test_a_string_that_is_not_there_is_missing_and_not_empty(frames: Frames) -> None:
    silent = lab.run(lambda _: str(bool(refund(17)))[4:], "Refund order 17.", tools=[refund])
    for held in (frames, Frames(silent.history)):
        for name, columns in COLUMNS.items():
            texts = [column.name for column in columns if column.dtype == "string" and (name, column.name) not in EMPTY]
            assert {text for text in texts if (getattr(held, name)[text] == "").any()} == set()
    assert frames.effects.request_id.isna().all(), "the agent gave no idempotency key"
    assert frames.calls.request_id.notna().all()
    assert Frames(silent.history).trials.answer.isna().all()


def test_tokens_are_those_of_the_usage() -> None:
    import httpx

    def asks(prompt: str) -> str:
        body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": prompt}]}
        return str(httpx.post("http://api.openai.com/v1/chat/completions", json=body).json()["choices"])

    trial = lab.run(
        asks, "What is 6 times 7?", services={"api.openai.com": lab.offline_model()}, twin=False, facts=["42"]
    )
    held = Frames(trial.history)
    (spent,) = held.usage.itertuples()
    assert held.trials.tokens[0] == spent.prompt_tokens + spent.completion_tokens > 0
    assert held.trials.cost_usd[0] == spent.cost_usd


@pytest.mark.usefixtures("here")
def test_a_run_that_is_not_there_is_told() -> None:
    with pytest.raises(LookupError):
        lab.load("latest")


@pytest.mark.parametrize("ask", [lambda: lab.load("x"), lambda: lab.frame([])], ids=["load", "frame"])
def test_without_pandas_a_line_says_what_to_install(ask: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import re
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        ValueError, match=re.escape(f"needs pandas, which is not installed: {build_install_command('charts')}")
    ):
        ask()


def test_incidents_and_error_budgets_are_tables(frames: Loaded) -> None:
    met = frames.incidents
    assert len(met) == met["recovered"].sum() + (~met["recovered"]).sum() > 0
    noticed = met[met["repair_s"].notna()]
    assert (noticed["detect_s"] + noticed["repair_s"]).round(6).equals(noticed["duration_s"])
    budgets = frames.reliability
    assert list(budgets["objective"]) == [0.9, 0.95, 0.99, 0.999]
    assert budgets["judged"].nunique() == 1
    figures = frames.figures.set_index(["section", "name"])
    assert [*frames.figures["value"].dropna()] == [
        one["value"] for one in frames.report().figures if one["value"] is not None
    ]
    repaired = met[met["recovered"]].duration_s
    assert figures.loc[("Recovery", "recovered")].value == len(repaired)
    if len(repaired):
        assert figures.loc[("Recovery", "time to recovery")].value == pytest.approx(repaired.mean())


def test_several_runs_are_one_table_told_apart_by_their_names(tmp_path: Path) -> None:
    for name, prompts in (("one", 3), ("two", 4)):
        FakeRun(tmp_path / name, prompts=prompts).write()
    both = lab.load(tmp_path / "one", tmp_path / "two")
    assert len(both.trials) == len(lab.load(f"{tmp_path}/[ot]*").trials) == 7
    assert len(both.incidents) == sum(len(lab.load(tmp_path / name).incidents) for name in ("one", "two"))
    with pytest.raises(ValueError, match="these are 2 runs"):
        both.report()
    with pytest.raises(LookupError, match="no run is called like"):
        lab.load(f"{tmp_path}/three*")


def test_a_chart_of_the_lab_s_is_a_figure_and_an_unknown_one_is_refused(frames: Loaded) -> None:
    assert frames.chart("success_rate").axes[0].patches
    with pytest.raises(LookupError, match="there is no chart 'recovery_curv' of this: did you mean 'recovery_curve'"):
        frames.chart("recovery_curv")


def test_the_tables_of_the_measures_agree_with_those_of_the_lines(tmp_path: Path) -> None:
    """They are made of one log by other code, so they could differ."""
    held = lab.load(FakeRun(tmp_path / "run", prompts=60, chance=0.4).write())
    calls, met, trials = held.calls, held.incidents, held.trials
    assert dict(zip(held.outcomes.outcome, held.outcomes.trials, strict=True)) == dict(trials.outcome.value_counts())
    assert held.outcomes.share.sum() == pytest.approx(1)
    by_fault = held.mttr.drop_duplicates("fault").set_index("fault")  # the first row is over all of its targets
    assert held.mttr[held.mttr.target != "all"].incidents.sum() == len(met)
    assert dict(by_fault.incidents) == dict(met.fault.value_counts())
    assert dict(by_fault.mttr_s.dropna()) == pytest.approx(dict(met[met.recovered].groupby("fault").duration_s.mean()))
    sent = held.amplification.set_index("target")
    assert dict(sent.attempts) == dict(calls.target.value_counts())
    assert dict(sent.requests) == dict(calls.drop_duplicates(["trial", "target", "request"]).target.value_counts())
    ended = calls.groupby(["target", calls.faults != ""]).duration_s
    latency = held.latency.set_index(["target", "met"])
    for name, share in (("p50_s", 0.5), ("p90_s", 0.9), ("p99_s", 0.99), ("longest_s", 1.0)):
        assert dict(latency[name]) == pytest.approx(dict(ended.quantile(share)))
    assert (held.throughput.trials.sum(), held.throughput.calls.sum()) == (len(trials), len(calls))
    assert (calls.failure.notna() == ~calls.ok).all()
    assert set(calls[calls.faults != ""].cause.dropna()) <= set(held.faults.fault)
    assert set(held.matrix[held.matrix.state == "witnessed"].fault) == set(held.faults[held.faults.witnessed].fault)
    corners = held.recovery[~held.recovery.open]
    assert (corners.share.iloc[0], corners.seconds.iloc[0]) == (1, 0)
    share, at_risk = 1.0, len(met)  # by hand: what never recovered is at risk to the end, what is censored to its own
    for one in met[met.recovered | (met.ending == "censored")].sort_values("duration_s").itertuples():
        share *= 1 - one.recovered / at_risk
        at_risk -= 1
    assert corners.share.iloc[-1] == pytest.approx(share)


def test_the_table_of_runs_has_how_each_was_made_and_how_it_went(frames: Loaded) -> None:
    (run,) = frames.runs.itertuples()
    assert (run.run, run.trials, run.level, run.seed) == (frames.history.run_name, 8, 0.0, "1")
    assert run.faults == len(frames.faults) > 0
    assert (run.incidents, run.recovered) == (len(frames.incidents), frames.incidents.recovered.sum())
    ((_, started),) = frames.history.find_events(RunStarted)
    assert started.settings["TOOL_TIMEOUT_S"] == run.TOOL_TIMEOUT_S
    assert run.revision == provenance.read_git_commit()


def test_settings_are_numbers_where_all_runs_state_numbers(tmp_path: Path) -> None:
    plain = History.read(FakeRun(tmp_path, prompts=2).write())
    given: list[dict[str, Any]] = [
        {"LATENCY_MS": 300, "TOOL_LIMIT": 2, "STREAM": "on"},
        {"LATENCY_MS": 12.5, "TOOL_LIMIT": None},
        {},
    ]
    table = JoinedRunFrames(Frames(stated(plain, **each)) for each in given).runs
    assert table["LATENCY_MS"].dtype == "Float64"
    assert [*table["LATENCY_MS"].dropna()] == [300, 12.5]
    assert [*table["TOOL_LIMIT"]] == ["2", "null", "1"]
    assert table["STREAM"].isna().tolist() == [False, True, True]


def test_runs_of_one_name_are_told_apart_in_every_table(tmp_path: Path) -> None:
    run = Frames(History.read(FakeRun(tmp_path, prompts=2).write()))
    both = JoinedRunFrames([run, run])
    for name in COLUMNS:
        assert [*getattr(both, name)["run"].unique()] in (["fake", "fake (2)"], [])
    assert [*both.trials["run"].value_counts()] == [2, 2]


def test_runs_over_which_no_chart_can_be_drawn_say_why(tmp_path: Path) -> None:
    for name in ("one", "two"):
        trials(logs=tmp_path / name)
    with pytest.raises(LookupError, match="no chart 'success' of this: these runs differ in no setting that all"):
        lab.load(tmp_path / "one" / "latest", tmp_path / "two" / "latest").chart("success")
