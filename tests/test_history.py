"""Reading is parsing: a log's line is looked at once, where it becomes an event.

No reader meets anything else.
"""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import chaoslab as lab
from chaoslab.base.shapes import DEPTH_MAX
from chaoslab.cli import main
from chaoslab.config import settings
from chaoslab.config.settings import SettingError
from chaoslab.core.events import (
    AttemptEvent,
    CallFinished,
    Event,
    FaultWitnessed,
    Retry,
    RunStarted,
    Usage,
)
from chaoslab.lab import launch, recorded_run
from chaoslab.lab.recorded_run import Unrepeatable
from chaoslab.record import lines as log_lines
from chaoslab.record.history import History, describe_unreadable_lines
from chaoslab.record.lines import Record, parse_line
from chaoslab.record.log import encode_event
from chaoslab.record.runs import Run
from chaoslab.reports import charts, show
from chaoslab.reports.frames import Frames
from tests.cli_parts import Typed
from tests.event_parts import ENVELOPE, call_at, names, sample, story
from tests.reports.fake_run import summary

ASKED = ({"prompt": "What is 17 times 24?", "facts": ["408"]}, "Tell Carla that the review is in room 204.")
FAULTS = ("WORLD=virtual", "TRIALS=2", "TOXIC_PROB=0.5", "ERROR_PROB=0.4", "MODEL_TOXIC_PROB=0.1", "SEED=4")
DEEP = "[" * 100_000 + "]" * 100_000
VALUES = (
    "null", "true", "0", "-1", "0.5", "1e30", "-1e30", "1e999", "NaN", "Infinity", "-Infinity", "9" * 19, "9" * 4000,
    "9" * 5000,
    '""', '"text"', '"1"', '"\\ud800"', '"\\u0000"', '"2026-13-45T99:00:00Z"', '"\\u001b[2J$x^{"',
    "[]", "[null]", "[1]", '["a", "b"]', '[["a"]]', "[[1]]", "[[null]]", "[{}]", '[{"effect": 1}]', '[["a", "b"]]',
    "[[[]]]",
    "{}", '{"a": null}', '{"a": {"b": []}}', '{"injections": null}', '{"injections": [1]}', '{"injections": [{}]}',
    '{"seed": 1, "injections": [{"name": "a", "choices": [{}], "chance": "x"}]}',
    '{"status": "x", "body": 1, "headers": null}',
    "[" * (DEPTH_MAX - 2) + "]" * (DEPTH_MAX - 2), "[" * 600 + "]" * 600, '{"a":' * 600 + "1" + "}" * 600,
)  # fmt: skip
"""As JSON spells them. Each is wrong somewhere."""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[bytes]]:
    """The lines of a run in virtual time, by file, with an event of every kind in them."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "mine.json").write_text(json.dumps(ASKED))
    chosen = settings.load_settings(
        (*FAULTS, f"PROMPTS={folder / 'mine.json'}"), environment={}, env_file=folder / ".env"
    )
    asked = launch.read_and_check_inputs(chosen)
    spec = launch.make_lab_spec(chosen, asked)
    run = Run.create(folder / "logs", now=spec.now, name=spec.name)
    assert launch.run_and_write_trials(spec, run.folder) == 0
    lines = {path.name: path.read_bytes().splitlines(keepends=True) for path in sorted(run.folder.glob("*.log"))}
    there = {json.loads(line)["kind"] for each in lines.values() for line in each}
    envelope = {key: value for key, value in json.loads(lines["info.log"][1]).items() if key in ENVELOPE}
    for name, kind in Event.kinds.items():
        if name not in there:
            lines["info.log"].append(
                json.dumps({**envelope, **json.loads(f"{{{encode_event(sample(kind))}")}).encode() + b"\n"
            )
    assert set(Event.kinds) == {parse(line).event.kind for each in lines.values() for line in each}
    return lines


def parse(line: bytes) -> Record:
    record = parse_line(line)
    assert record is not None, line
    return record


def spoilt(line: bytes, field: str, value: str) -> bytes:
    """The line with that value in the place of the field's own."""
    data = json.loads(line)
    data[field] = "@here@"
    return json.dumps(data).replace('"@here@"', value).encode() + b"\n"


def write(folder: Path, lines: dict[str, list[bytes]]) -> Path:
    for name, each in lines.items():
        (folder / name).write_bytes(b"".join(each))
    return folder


def replay(folder: Path) -> None:
    """Reads the log as a replay does before it runs anything."""
    run = recorded_run.read_recorded_run(str(folder))
    trials = recorded_run.select_trials_by_name(run, ())
    recorded_run.make_replay_spec(run)
    assert [run.get_trial_number(trial) for trial in trials]


READERS: dict[str, Callable[[Path], object]] = {
    "show": lambda folder: show.render_stories(History.read(folder)),
    "summary": lambda folder: summary(History.read(folder)),
    "replay": replay,
    "charts": lambda folder: charts.draw_charts(Frames(History.read(folder))),
}
QUICK = ("show", "summary", "replay")


def read_by(names: Sequence[str], folder: Path) -> None:
    """Each reads it, or says in one line why it does not."""
    for name in names:
        said = ""
        try:
            READERS[name](folder)
        except (LookupError, Unrepeatable, SettingError) as refusal:
            said = str(refusal.args[0])
        assert "\n" not in said, name


# Each field of each kind.


ENVELOPED = ("run_started", "prompt_started", "call_finished", "fault_armed", "effect")
"""The kinds of which the envelope's fields are tried too. Its code is the same for all; these are whom readers look up
by it."""


def list_fields(kind: str) -> tuple[str, ...]:
    return (*(ENVELOPE if kind in ENVELOPED else ()), *names(Event.kinds[kind]))


@pytest.mark.parametrize("kind", Event.kinds)
def test_what_a_field_cannot_hold_makes_its_line_unread_and_all_else_is_read_by_all(
    kind: str, logs: dict[str, list[bytes]], tmp_path: Path
) -> None:
    """The kind's first line stands there once for each value of each field. What replay takes from a line it takes from
    the run's beginning, and ends at the first that it cannot take, so there it gets a log for each field.
    """
    name, at = next((n, i) for n, each in logs.items() for i, line in enumerate(each) if parse(line).event.kind == kind)
    write(tmp_path, logs)
    every: list[bytes] = []
    for field in list_fields(kind):
        broken = [spoilt(logs[name][at], field, value) for value in VALUES]
        unreadable = sum(parse_line(line) is None for line in broken)
        assert unreadable >= LEAST.get(str(Event.kinds[kind].__annotations__.get(field, "")), 30), field
        every += broken
        if kind == "run_started":
            write(tmp_path, {name: [*logs[name][:at], *broken, *logs[name][at + 1 :]]})
            read_by(("replay",), tmp_path)
    write(tmp_path, {name: [*logs[name][:at], *every, *logs[name][at + 1 :]]})
    cut = tuple(number for number, line in enumerate(every, at + 1) if parse_line(line) is None)
    assert History.read(tmp_path).cut_lines == {name: cut}
    read_by(QUICK, tmp_path)


LEAST = {"Any": 3, "list[Any]": 10, "dict[str, Any]": 10, "dict[str, Setting]": 10, "list[dict[str, Any]]": 10}
"""Values that such a field cannot hold."""


def test_what_is_left_of_such_lines_can_be_drawn(logs: dict[str, list[bytes]], tmp_path: Path) -> None:
    first = {parse(line).event.kind: line for each in logs.values() for line in each}
    for kind, line in first.items():
        (tmp_path / f"{kind}.log").write_bytes(
            b"".join(spoilt(line, field, value) for field in list_fields(kind) for value in VALUES)
        )
    charts.write_charts(charts.render_pngs(charts.draw_charts(Frames(History.read(write(tmp_path, logs))))), tmp_path)


def test_any_line_may_be_lost(logs: dict[str, list[bytes]], tmp_path: Path) -> None:
    """The first of its kind in a file, or the last."""
    write(tmp_path, logs)
    for name, each in logs.items():
        kinds = [parse(line).event.kind for line in each]
        ends = {kinds.index(kind) for kind in kinds} | {len(kinds) - 1 - kinds[::-1].index(kind) for kind in kinds}
        for at in sorted(ends):
            write(tmp_path, {name: [*each[:at], b'{"ts": "cut\n', *each[at + 1 :]]})
            read_by(QUICK, tmp_path)
        write(tmp_path, {name: each})


REFUSED = [
    ("call_finished", "duration_s", ["null", '"1"', "true", "NaN", "Infinity", "1e999", "-0.001", "1e30"]),
    ("call_finished", "t", ["NaN", "Infinity", "-1e30", "1e30", '"soon"', "null"]),
    ("call_finished", "seq", ["Infinity", "1.5", "-1", "9" * 30, "9" * 5000, '"1"']),
    ("call_finished", "rolled", ["null", '"wire"', "[1]", "[[]]", "{}"]),
    ("call_finished", "status", ['"200"', "-1", "200.0", "true"]),
    ("call_finished", "trial", ["1", "[]", "{}"]),
    ("prompt_started", "facts", ["null", '["408"]', "[[408]]", "[null]"]),
    ("prompt_started", "effects", ['["message_sent"]', "[[]]", "{}"]),
    ("prompt_attempt", "start_time", ['""', '"now"', '"2026-02-30T09:00:00Z"', "0"]),
    ("run_started", "now", ['""', '"today"', "null"]),
    ("run_started", "seed", ["1.5", '"7"', "9" * 400]),
    ("run_started", "settings", ["[]", '{"TOXICS": [[]]}', '{"TOXIC_PROB": {}}', '{"TOXICS": [["a", "b"]]}']),
    ("run_started", "plan", ['{"injections": 1}', '{"injections": [{"name": "a", "chance": 2}]}',
                             '{"injections": [{"name": []}]}']),
    ("run_finished", "received", ["-1", "null"]),
    ("effect", "reply", ['{"status": 200}', '{"status": "200", "body": "", "headers": {}}']),
    ("call_started", "arguments", [DEEP, "[" * 990 + "]" * 990, '{"a":' * DEPTH_MAX + "1" + "}" * DEPTH_MAX]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "field", "values"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_line_with_such_a_value_is_none(
    kind: str, field: str, values: Sequence[str], logs: dict[str, list[bytes]]
) -> None:
    line = next(line for each in logs.values() for line in each if parse(line).event.kind == kind)
    assert [value[:40] for value in values if parse_line(spoilt(line, field, value)) is not None] == []


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("call_finished", "duration_s", "0"),
        ("call_finished", "duration_s", "315360000.0"),
        ("call_finished", "t", "-0.5"),
        ("call_finished", "status", "null"),
        ("prompt_started", "prompt", '"\\ud800 alone"'),
        ("prompt_attempt", "end_time", '"2026-06-01T09:00:00.123456Z"'),
        ("call_started", "arguments", "[" * (DEPTH_MAX - 1) + "NaN" + "]" * (DEPTH_MAX - 1)),
        ("prompt_started", "effects", "null"),
        ("run_started", "plan", "{}"),
        ("effect", "reply", "{}"),
    ],
)
def test_what_a_run_may_write_is_read(kind: str, field: str, value: str, logs: dict[str, list[bytes]]) -> None:
    line = next(line for each in logs.values() for line in each if parse(line).event.kind == kind)
    assert repr(
        getattr(parse(spoilt(line, field, value)), field, None)
        or getattr(parse(spoilt(line, field, value)).event, field)
    ) == repr(json.loads(value))


def test_a_field_that_is_left_out_has_its_default_each_time_its_own(logs: dict[str, list[bytes]]) -> None:
    line = next(line for line in logs["info.log"] if parse(line).event.kind == "call_finished")
    data = json.loads(line)
    del data["rolled"], data["via"]
    one, two = (parse(json.dumps(data).encode()).event for _ in range(2))
    assert isinstance(one, CallFinished)
    assert isinstance(two, CallFinished)
    assert (one.rolled, one.via) == ([], "proxy")
    assert one == two
    assert one.rolled is not two.rolled


# Which lines.


@pytest.mark.parametrize(
    ("numbers", "line"),
    [
        ([7], "info.log: line 7 could not be read"),
        ([12, 40], "info.log: lines 12 and 40 could not be read"),
        ([12, 40, 41, 50, 90], "info.log: lines 12, 40 and 3 more could not be read"),
    ],
)
def test_the_lines_that_could_not_be_read_are_named(numbers: list[int], line: str) -> None:
    assert describe_unreadable_lines("info.log", numbers) == line


NO_REPLAY = ("values_drawn", "chance_set")
"""The events of a run that is not replayed."""


def test_every_reader_says_which(logs: dict[str, list[bytes]], here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "logs/mine").mkdir(parents=True)
    usage = next(at for at, line in enumerate(logs["info.log"]) if parse(line).event.kind == "usage")
    info = [
        *logs["info.log"][:usage],
        spoilt(logs["info.log"][usage], "cost_usd", "NaN"),
        *(line for line in logs["info.log"][usage + 1 :] if parse(line).event.kind not in NO_REPLAY),
    ]
    write(Path("logs/mine"), {**logs, "info.log": info})
    said = f"note: info.log: line {usage + 1} could not be read\n"
    for command in ("show", "summary"):
        assert main([command, "mine"]) == 0
        captured = capsys.readouterr()
        assert said in captured.out + captured.err, command
    assert main(["replay", "mine", "--trial", "2"]) in (0, 1)
    assert said in capsys.readouterr().err


def test_a_line_without_end_is_one_that_cannot_be_read(
    logs: dict[str, list[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken into memory as a whole, however long it is."""
    monkeypatch.setattr(log_lines, "LINE_MAX", 1 << 16)
    with (tmp_path / "info.log").open("wb") as file:
        file.write(logs["info.log"][0])
        file.seek(2 * log_lines.LINE_MAX + len(logs["info.log"][0]) + 10)
        file.write(b"\n" + logs["info.log"][1])
    history = History.read(tmp_path)
    assert (len(history.records), history.cut_lines) == (2, {"info.log": (2,)})


def test_a_line_is_as_long_as_what_is_read_at_once_with_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_lines, "LINE_MAX", 8)
    log = tmp_path / "info.log"
    log.write_bytes(b"1234567\n12345678\n" + b"x" * 20 + b"\nnext\n" + b"y" * 8)
    assert list(log_lines.iterate_lines(log)) == [b"1234567\n", b"12345678", b"xxxxxxxx", b"next\n", b"yyyyyyyy"]


# What a log has no place for.


def begun(world: str, asked: Sequence[str] = ()) -> RunStarted:
    return RunStarted(seed=1, settings={}, plan={}, prompts=1, now="", model="", world=world, asked=list(asked))


def ended(via: str) -> CallFinished:
    return CallFinished(**call_at("refund", "refund", 1, 1, "id"), ok=True, duration_s=0.1, via=via)


@pytest.mark.parametrize(
    ("events", "of_functions"),
    [
        ([], False),
        ([ended("proxy")], False),
        ([ended("none"), ended("function")], True),
        ([begun("virtual")], True),
        ([begun("virtual", ["a prompt"]), ended("function")], False),
        ([begun(""), ended("function")], False),
    ],
)
def test_a_run_of_functions_is_told_from_one_of_the_lab(events: list[Event], of_functions: bool) -> None:
    assert story(*events).is_user_agent_run is of_functions


def test_a_base_of_kinds_finds_the_events_of_all_of_them() -> None:
    events = [ended("function"), sample(Usage), sample(FaultWitnessed), sample(Retry)]
    found = story(*events)
    assert [event for _, event in found.find_events(AttemptEvent)] == [events[0], events[2], events[3]]
    assert [event for _, event in found.find_events(Usage)] == [events[1]]


def test_a_text_that_recurs_in_a_log_is_kept_once(logs: dict[str, list[bytes]]) -> None:
    read = [record for lines in logs.values() for record in map(parse_line, lines) if record is not None]
    assert len({id(record.run) for record in read}) == 1
    assert len({id(record.writer) for record in read}) == len(logs)
    targets = [record.event.target for record in read if isinstance(record.event, AttemptEvent)]
    assert len({id(target) for target in targets}) == len(set(targets)) < len(targets)


# What is no log at all.


def _device(log: Path) -> None:
    log.symlink_to("/dev/zero")


NO_LOGS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a device": _device,
    "empty": Path.touch,
    "of zeros": lambda log: log.write_bytes(bytes(100_000)),
    "in UTF-16": lambda log: log.write_text('{"kind": "run_started"}\n' * 9, encoding="utf-16"),
}


@pytest.mark.parametrize("what", NO_LOGS)
@pytest.mark.parametrize("command", ["show", "summary", "charts", "replay"])
def test_what_is_no_log_is_said_in_a_line(command: str, what: str, here: Path, typed: Typed) -> None:
    (here / "logs/mine").mkdir(parents=True)
    NO_LOGS[what](Path("logs/mine/info.log"))
    assert "mine" in typed.refused(command, "mine")


@pytest.mark.parametrize("command", ["show", "summary", "charts", "replay", "report"])
@pytest.mark.parametrize("name", ["A" * 5000, "logs/" + "A" * 300, "with\0in it", "a/" * 3000, "latest"])
def test_a_name_that_no_run_can_have_is_said_in_a_line(command: str, name: str, here: Path, typed: Typed) -> None:
    (here / "logs").mkdir()
    Path("logs/latest").symlink_to("gone")
    assert len(typed.refused(command, name)) < 160


def test_a_history_is_a_sequence_of_its_records() -> None:
    history = lab.run(lambda _: "done", "go").history
    assert len(history) == len(list(history)) > 2
    assert (history[0], history[-1]) == (history.records[0], history.records[-1])
    assert bool(History([]))
