"""Logs of the first lab of this kind are read for what they tell; what they do not tell stays unknown and never becomes
a 0.

The fixture holds three runs in one pair of files: one that ended, one that was killed in the middle of a record, and
one of 26 prompts.
"""

import json
import math
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoslab.analysis.measures.mttr import Ending, incidents
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.judge import verdicts
from chaoslab.cli import main
from chaoslab.core.events import (
    CallFinished,
    Fallback,
    FaultWitnessed,
    PromptAttempt,
    PromptFinished,
    PromptStarted,
    Retry,
    RunFinished,
    RunStarted,
    Usage,
)
from chaoslab.record import legacy_logs
from chaoslab.record.history import History
from chaoslab.reports import places
from chaoslab.reports.charts import draw, overlay
from chaoslab.reports.charts import main as charts
from chaoslab.reports.charts._style import blank
from chaoslab.reports.charts.errors import errors
from chaoslab.reports.charts.success_rate import success_rate
from chaoslab.reports.frames import Frames, Joined
from chaoslab.reports.show import render as show
from tests.measure_parts import attempts
from tests.reports.fake_run import FakeRun, summary
from tests.reports.test_charts import check_legible, said
from tests.sure import sure

LOGS = Path(__file__).parent / "first_lab"


def stamp(second: float) -> str:
    minutes, seconds = divmod(second, 60)
    return f"2025-03-01 14:{int(minutes):02d}:{int(seconds):02d},{round(seconds % 1 * 1000):03d} [agent] "


def record(second: float, **fields: Any) -> str:
    """A record of info.log, written so many seconds after two o'clock."""
    return f"{stamp(second)}{json.dumps(fields, indent=2)}\n"


def attempt(prompt: str, **fields: Any) -> str:
    """A record of agent.log."""
    return json.dumps({"prompt": prompt} | fields, indent=2) + "\n"


def processed(second: float, index: int, count: int, **fields: Any) -> str:
    told = {"prompt_index": index, "event_type": "request_processed", "processed_count": count, "success_count": count}
    return record(second, **told | fields)


def called(second: float, tool: str = "search", took_s: float = 0.1, tries: int = 1) -> str:
    return record(second, tool=tool, network_latency=took_s, total_tool_attempts=tries)


def late(second: float, tool: str = "search") -> str:
    return f"{stamp(second)}Tool {tool} not responding in time\n"


def read(place: Path, *, info: str = "", agent: str = "", number: int | None = None) -> History:
    for name, text in (("info", info), ("agent", agent)):
        if text:
            (place / f"{name}.log").write_text(text)
    return sure(legacy_logs.read(place, number=number))


def row(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(name))


def bare(text: str) -> str:
    """Without the line breaks, which depend on how long this folder's name is."""
    return "".join(text.split())


# --- the fixture, as a user meets it ---


def test_the_newest_of_several_runs_is_told_and_the_others_are_named() -> None:
    text = summary(RunReport.of(places.read(str(LOGS))))
    assert text.startswith("1 of 26 judged trials did not end well.\n\n")
    assert "\n\nrun first_lab#3 · seed not known · world not known · model not known · done" in text
    assert "done after 85.7 s\n" in text.replace("\n  ", " ")
    assert bare(f"note: 3 runs are in this log, this is #3, the newest; {LOGS}#1 is the first") in bare(text)
    assert "note: that lab itself counted 21 of 26 prompts as successes\n" in text
    assert row(text, "unknown").split()[1:3] == ["25", "96%"]
    assert "Calls: 46 to tools, those to the model are not known; 22 failed; 14 retries, 7 fallbacks" in " ".join(
        text.split()
    )


def test_what_such_a_log_does_not_tell_is_said_to_be_unknown() -> None:
    text = summary(RunReport.of(places.read(str(LOGS))))
    assert "Faults are not known from such a log" in text
    assert "Usage of the model: not known from such a log" in text
    assert "could be judged, as failed or not: nothing was stated about\n  right answers.\n" in text
    assert "the model never answered" not in text
    assert "nobody injected" not in text


def test_a_run_is_picked_by_its_number() -> None:
    first = places.read(f"{LOGS}#1")
    assert [e.prompt_index for _, e in first.of(PromptStarted)] == list(range(6))
    assert places.read(f"{LOGS / 'info.log'}#2").records[0].run == "first_lab#2"
    with pytest.raises(LookupError, match=r"#4: this log holds 3 run\(s\), so #1 to #3"):
        places.read(f"{LOGS}#4")


def test_a_run_that_was_killed_in_a_record_ends_there_and_the_next_begins_whole() -> None:
    killed, newest = (places.read(f"{LOGS}#{number}") for number in (2, 3))
    assert [e.prompt_index for _, e in killed.of(PromptStarted)] == [0, 1, 2, 3]
    assert killed.first(RunFinished) is None
    assert " · not finished" in " ".join(summary(killed).split())
    assert [e.prompt_index for _, e in newest.of(PromptStarted)] == list(range(26))
    assert newest.cut == {"agent.log": 1, "info.log": 1}


def test_every_picture_is_drawn_and_none_takes_silence_for_a_zero() -> None:
    figures = draw(Frames(places.read(str(LOGS))))
    assert len([figure for figure in figures.values() if not blank(figure)]) == 9
    for figure in figures.values():
        check_legible(figure)
        assert "nobody injected" not in said(figure)
        assert "no faults were witnessed" not in said(figure)
        assert "no fault (" not in said(figure)
    assert "18 attempts" in said(figures["network_latency"])
    assert "which faults were met is not known from such a log" in said(figures["errors"])
    assert said(figures["success_rate"]).count("not judged") == 6
    assert "inferred" in said(figures["mttr"])
    assert "time from the noticed failure" in figures["mttr"].axes[0].get_xlabel()


def test_runs_of_both_labs_are_laid_over_each_other(tmp_path: Path) -> None:
    mine = History.read(FakeRun(tmp_path, prompts=25).write())
    runs = [mine, places.read(f"{LOGS}#1"), places.read(f"{LOGS}#3")]
    figures = overlay(Joined(map(Frames, runs)))
    assert "inferred in 2 of the runs" in said(figures["mttr_vs_toxic_prob"])
    line = next(line for line in figures["success_vs_toxic_prob"].axes[0].lines if line.get_marker() == "o")
    spots = np.asarray(line.get_xdata())  # lines are drawn a little apart
    assert spots == pytest.approx([0.3], abs=0.01), "only our own run could be judged"


def test_the_commands_take_such_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["summary", f"{LOGS}#2"]) == 0
    said = "None of 4 trials failed; nothing was stated about right answers."
    assert capsys.readouterr().out.startswith(f"{said}\n\nHarm is not known from such a log.\n\nrun first_lab#2 ")
    assert main(["show", str(LOGS), "--prompt", "5"]) == 0
    assert "It is 5." in capsys.readouterr().out
    monkeypatch.setattr("chaoslab.reports.charts._charts", lambda: [("success_rate", success_rate), ("errors", errors)])
    assert charts([str(LOGS)], out=tmp_path) == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == len(list(tmp_path.glob("*.png"))) == 2
    assert "note: 3 runs are in this log, this is #3" in told.err


def test_such_logs_straight_in_the_folder_for_logs_are_found_too(tmp_path: Path) -> None:
    shutil.copytree(LOGS, tmp_path / "logs")
    assert places.read("latest", logs=tmp_path / "logs").records[0].run == "logs#3"


# --- which lab wrote it: the content decides ---


def test_our_own_logs_are_read_as_before(tmp_path: Path) -> None:
    FakeRun(tmp_path / "mine", prompts=2).write()
    assert places.read("mine", logs=tmp_path).has(FaultWitnessed)
    with pytest.raises(LookupError, match="'mine' is one run of this lab"):
        places.read("mine#2", logs=tmp_path)


@pytest.mark.parametrize(
    "text", ["plain words\n", '{"a": 1}\n', late(1), stamp(1) + "{}\n", f'{stamp(1)}{{"tool": "search", "netw']
)
def test_a_folder_of_neither_lab_gets_one_line(text: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "logs" / "odd").mkdir(parents=True)
    (here / "logs" / "odd" / "info.log").write_text(text)
    for command in ("summary", "show", "charts"):
        assert main([command, "odd"]) == 2
        line = "the logs of 'odd' tell of no run: neither this lab nor the first one wrote them\n"
        assert capsys.readouterr().err == line


# --- calls and prompts ---


def test_an_answer_after_failures_that_were_noticed_is_a_recovery_by_retry(tmp_path: Path) -> None:
    history = read(tmp_path, info=late(2) + late(4.5) + called(5, tries=3) + processed(6, 1, 1))
    assert [(r.t, e.ok, e.attempt) for r, e in history.of(CallFinished)] == [
        (0.0, False, 1), (2.5, False, 2), (3.0, True, 3),
    ]  # fmt: skip
    (incident,) = incidents(history)
    assert (incident.ending, incident.duration_s, incident.fault) == (Ending.RETRY, 3.0, "timed_out, inferred")
    assert [a.duration_s for a in attempts(history)] == [0.1], "how long the failed ones took is not known"


def test_failures_of_which_only_the_count_tells_are_counted_and_open_no_incident(tmp_path: Path) -> None:
    history = read(tmp_path, info=called(5, tries=3) + processed(6, 1, 1))
    assert [(e.ok, e.error) for _, e in history.of(CallFinished)] == [
        (False, "untold"), (False, "untold"), (True, None),
    ]  # fmt: skip
    assert len(list(history.of(Retry))) == 2
    assert incidents(history) == []
    assert "the log does not tell when a failure was noticed" in said(draw(Frames(history))["mttr"])


@pytest.mark.parametrize(
    ("status", "ending"), [(200, Ending.FALLBACK), ("success", Ending.FALLBACK), (500, Ending.NEVER)]
)
def test_a_fallback_that_was_answered_is_a_recovery(status: object, ending: Ending, tmp_path: Path) -> None:
    fields = {"tool": "search", "direct_url": "http://127.0.0.1:5000", "tool_attempts": 1, "fallback_used": True}
    history = read(tmp_path, info=late(2) + record(4, **fields, status=status, message="so") + processed(6, 1, 1))
    assert [e.address for _, e in history.of(Fallback)] == ["http://127.0.0.1:5000"]
    (incident,) = incidents(history)
    assert (incident.ending, incident.duration_s) == (ending, 4.0 if ending is Ending.NEVER else 2.0)


def test_a_fallback_without_a_status_is_not_taken_for_an_answer_nor_for_a_failure(tmp_path: Path) -> None:
    history = read(tmp_path, info=record(4, tool="search", fallback_used=True) + processed(6, 1, 1))
    assert len(list(history.of(Fallback))) == 1
    assert list(history.of(CallFinished)) == []


def test_a_prompt_that_failed_and_was_answered_later_is_a_recovery_of_the_agent(tmp_path: Path) -> None:
    def tried(nth: int, began: int, **fields: Any) -> str:
        times = {"start_time": f"2025-03-01T14:00:{began:02d}", "end_time": f"2025-03-01T14:00:{began + 2:02d}"}
        return attempt("Who?", prompt_attempt_no=nth, **times, **fields)

    agent = tried(1, 1, status="agent error", error_type="server", response="") + tried(2, 4, status=200, response="I.")
    history = read(tmp_path, info=processed(7, 0, 1), agent=agent)
    (incident,) = incidents(history)
    assert (incident.target, incident.fault, incident.ending, incident.duration_s) == (
        "agent", "server error, inferred", Ending.RETRY, 3.0,
    )  # fmt: skip
    (finished,) = [e for _, e in history.of(PromptFinished)]
    assert (finished.prompt_index, finished.answer, finished.attempts, finished.duration_s) == (0, "I.", 2, 5.0)


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"status": 200, "response": "It is 4."}, "unknown"),
        ({"status": "200", "response": "It is 4."}, "unknown"),
        ({"status": "validation error", "response": "It is 4."}, "unknown"),
        ({"status": 200}, "unknown"),
        ({"response": "It is 4."}, "unknown"),
        ({"status": 200, "response": {"answer": 4}}, "unknown"),
        ({"status": 200, "response": ""}, "failed"),
        ({"status": 500, "response": "Sorry"}, "failed"),
        ({"status": "agent error", "error_type": "network"}, "failed"),
        ({"status": "validation error", "response": ""}, "failed"),
    ],
)
def test_an_answer_in_plain_language_is_no_failure(fields: dict[str, Any], outcome: str, tmp_path: Path) -> None:
    history = read(tmp_path, agent=attempt("What is 2 + 2?", start_time="2025-03-01T14:00:00", **fields))
    assert [str(verdict.outcome) for verdict in verdicts(history).values()] == [outcome]


def test_without_agent_log_how_a_prompt_ended_is_unknown_whatever_was_counted(tmp_path: Path) -> None:
    history = read(tmp_path, info=called(1) + processed(2, 1, 1) + processed(3, 2, 2, success_count=1))
    assert [str(verdict.outcome) for verdict in verdicts(history).values()] == ["unknown", "unknown"]
    assert all(math.isnan(e.duration_s) for _, e in history.of(PromptFinished))
    assert "no data: the log tells no trial's duration" in said(draw(Frames(history))["response_time"])
    assert "after untold time, untold attempts: untold in such a log" in show(history)
    assert "that lab itself counted 1 of 2 prompts as successes" in history.notes
    uncounted = read(tmp_path, info=processed(2, 1, 1, success_count=None))
    assert not any("itself counted" in note for note in uncounted.notes)


def test_without_info_log_calls_are_no_data(tmp_path: Path) -> None:
    history = read(tmp_path, agent=attempt("Who?", status=200, response="I.", duration=1.5))
    figures = draw(Frames(history))
    assert "no data: the log tells no call's duration" in said(figures["network_latency"])
    assert "no data: the log tells of no failed attempt" in said(figures["errors"])
    assert "median 1.50 s" in said(figures["response_time"])
    assert not history.has(Usage)


def test_moments_since_1970_are_moved_to_the_prefixes_local_time(tmp_path: Path) -> None:
    """The prefix is the local time of a machine two hours ahead of UTC; 1740830400 is noon there in UTC."""
    info = record(10, tool="search", network_start=1740830405.0, network_end=1740830410.0) + processed(20, 1, 1)
    agent = attempt("Who?", status=200, response="I.", start_time=1740830401.0, end_time=1740830419.0)
    history = read(tmp_path, info=info, agent=agent)
    assert [e.duration_s for _, e in history.of(CallFinished)] == [5.0]
    assert [record.t for record, _ in history.of(PromptAttempt)] == [18.0]
    assert [record.t for record, _ in history.of(PromptFinished)] == [19.0]


def test_an_unmarked_prompt_does_not_take_the_mark_of_the_next(tmp_path: Path) -> None:
    def tried(prompt: str, began: int) -> str:
        return attempt(
            prompt, status=500, start_time=f"2025-03-01 14:00:{began}", end_time=f"2025-03-01 14:00:{began + 5}"
        )

    agent = tried("One?", 10) + tried("Two?", 20) + tried("Three?", 30)
    history = read(tmp_path, info=processed(15.1, 0, 1) + processed(35.1, 2, 2), agent=agent)
    asked = [(e.prompt, e.prompt_index) for _, e in history.of(PromptStarted)]
    assert asked == [("One?", 0), ("Two?", 1), ("Three?", 2)]


def test_the_settings_are_those_that_were_written(tmp_path: Path) -> None:
    configuration = {"toxic_probability": "0.4", "tool_limit": 2}
    history = read(tmp_path, info=called(1) + record(9, duration="0:00:09.5", configuration=configuration))
    started, finished = sure(history.first(RunStarted)), history.first(RunFinished)
    assert started.settings == {"TOXIC_PROB": 0.4, "TOOL_LIMIT": 2.0}
    assert finished is not None
    assert (finished.duration_s, finished.processed) == (9.5, -1)


@pytest.mark.parametrize(
    ("latency", "took_s"),
    [
        (1, 1.0),
        ("0.5", 0.5),
        ("0.5 s", 0.5),
        ("0:00:01.5", 1.5),
        (-1, None),
        (True, None),
        ("soon", None),
        (None, None),
    ],
)
def test_a_duration_is_taken_as_it_was_written_or_is_unknown(
    latency: object, took_s: float | None, tmp_path: Path
) -> None:
    history = read(tmp_path, info=record(4, tool="search", network_latency=latency) + processed(6, 1, 1))
    assert [a.duration_s for a in attempts(history)] == ([] if took_s is None else [took_s])


@pytest.mark.parametrize("count", [1.5, -2, 10**9, True, "many", float("inf")])
def test_what_is_no_count_of_attempts_is_not_taken_for_one(count: object, tmp_path: Path) -> None:
    history = read(tmp_path, info=record(4, tool="search", network_latency=1, total_tool_attempts=count))
    assert [(e.ok, e.attempt) for _, e in history.of(CallFinished)] == [(True, 1)]


def test_other_line_ends_and_a_mark_of_utf_8_make_no_difference(tmp_path: Path) -> None:
    for path in LOGS.glob("*.log"):
        (tmp_path / path.name).write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    there = bare(summary(RunReport.of(places.read(str(tmp_path)))))
    assert there.replace(str(tmp_path), str(LOGS)).replace(tmp_path.name, LOGS.name) == bare(
        summary(RunReport.of(places.read(str(LOGS))))
    )


# --- several runs ---


def test_a_run_without_an_end_is_over_where_the_counter_starts_again(tmp_path: Path) -> None:
    """Neither run was cut in a record: the longest pause parts them."""
    killed = called(1) + processed(2, 0, 1) + called(3)
    again = called(40) + processed(41, 0, 1) + called(42) + processed(43, 1, 2)
    assert len(list(read(tmp_path, info=killed + again, number=1).of(CallFinished))) == 2
    assert len(list(read(tmp_path, info=killed + again).of(CallFinished))) == 2


def test_agent_log_alone_begins_anew_where_its_first_prompt_does(tmp_path: Path) -> None:
    def tried(prompt: str, nth: int) -> str:
        return attempt(prompt, prompt_attempt_no=nth, status=200, response="so")

    agent = tried("One?", 1) + tried("One?", 2) + tried("Two?", 1)
    history = read(tmp_path, agent=agent + agent, number=1)
    assert [e.prompt for _, e in history.of(PromptAttempt)] == ["One?", "One?", "Two?"]


# --- whatever stands in the file ---

WORDS = st.text(max_size=30) | st.sampled_from(
    ["Tool search not responding in time", '{"tool": "search", "network_latency": 1}', "{", "}", stamp(3) + "{",
     '{\n  "a": 1'],
)  # fmt: skip
MESSAGES = WORDS.filter(lambda text: not text.startswith("{"))
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        name: st.none() | st.booleans() | st.integers() | st.floats() | WORDS
        | st.just({"a": [1]}) | st.just("14:00:01")
        for name in (
            "status", "response", "start_time", "end_time", "duration", "error_type", "prompt_attempt_no",
            "network_start",
            "network_end", "total_tool_attempts", "prompt_index", "processed_count", "success_count", "tool_attempts",
            "fallback_used", "direct_url", "message", "start", "end", "configuration", "# of successful requests",
        )
    },
)  # fmt: skip
KINDS: list[tuple[bool, dict[str, Any]]] = [
    (True, {"tool": "search", "network_latency": 0.1}),
    (True, {"tool": "search", "fallback_used": True}),
    (True, {"event_type": "request_processed"}),
    (True, {"configuration": {"toxic_probability": 0.1}}),
    (False, {"prompt": "Who?", "status": 200}),
]
PIECES = st.lists(st.tuples(st.sampled_from(KINDS), FIELDS) | MESSAGES, max_size=8)


def written(pieces: list[Any]) -> tuple[str, list[tuple[int, dict[str, Any]]]]:
    """The file, and each of its records with the place where it is complete."""
    text, records = "", []
    for piece in pieces:
        if isinstance(piece, str):
            text += stamp(1) + piece.replace("\n", " ").replace("\r", " ") + "\n"
            continue
        (prefixed, kind), fields = piece
        data = fields | kind
        text += (stamp(1) if prefixed else "") + json.dumps(data, indent=2)
        records.append((len(text), data))
        text += "\n"
    return text, records


def told(text: str) -> list[str]:
    return [json.dumps(entry.data) for entry in legacy_logs.scan(text)[0] if entry.kind != "late"]


@given(PIECES, PIECES, st.data())
def test_no_record_is_lost_or_invented_wherever_the_file_was_cut(
    before: list[Any], after: list[Any], data: st.DataObject
) -> None:
    (old, olds), (new, news) = written(before), written(after)
    place = data.draw(st.integers(0, len(old)))
    whole = [json.dumps(fields) for end, fields in olds if end <= place]
    assert told(old[:place]) == whole
    assert told(old[:place] + new) == whole + [json.dumps(fields) for _, fields in news]


@given(PIECES, PIECES, st.integers(0, 400))
@settings(max_examples=25)
def test_whatever_its_fields_hold_a_log_is_told(info: list[Any], agent: list[Any], cut: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        for file, pieces in (("info", info), ("agent", agent)):
            text = written(pieces)[0]
            (Path(name) / f"{file}.log").write_text(text[: max(0, len(text) - cut)], encoding="utf-8", errors="replace")
        history = legacy_logs.read(Path(name))
        if history is not None:
            assert summary(RunReport.of(history))
            assert all(incident.duration_s >= 0 for incident in incidents(history))
