"""A run in virtual time, run again from its log: the same byte for byte, or said where it first differs, or refused."""

import io
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaoslab.cli import main
from chaoslab.execution.spec import TrialSpec
from chaoslab.execution.workers import InProcessExecutor
from chaoslab.lab import recorded_run, replay
from chaoslab.lab.recorded_run import Unrepeatable, read_recorded_run, select_trials_by_name
from chaoslab.record.history import History
from chaoslab.record.log import BufferedEvent
from tests.cli_parts import Typed, chaoslab, prompts
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

ASKED = (
    {"prompt": "What is 17 times 24?", "facts": ["408"]},
    "Tell Carla that the review is in room 204.",
    {"prompt": "What's the weather in Oslo?", "facts": [{"tool": "current_weather", "arguments": {"city": "Oslo"},
                                                         "path": "main.temp"}]},
)  # fmt: skip
FAULTS = ("TOXIC_PROB=0.5", "ERROR_PROB=0.3", "MODEL_TOXIC_PROB=0.1", "HALLUCINATION_PROB=0.2", "SEED=4")
Said = pytest.CaptureFixture[str]
Line = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which six trials have been made in virtual time."""
    folder = tmp_path_factory.mktemp("made")
    ended = chaoslab(folder, "run", "--world", "virtual", "--trials", "6", prompts(folder, ASKED), *FAULTS)
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.fixture
def there(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to spoil, and this process in it; the run's folder."""
    shutil.copytree(made, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    return Path("logs/latest")


def lines(folder: Path, writer: str = "info") -> list[Line]:
    return [json.loads(line) for line in (folder / f"{writer}.log").read_text().splitlines()]


def change(folder: Path, how: Callable[[Line], Line | None], *, writer: str = "info") -> None:
    """Rewrites a log line by line, as the log itself spells them; None leaves a line out."""
    kept = [changed for line in lines(folder, writer) if (changed := how(line)) is not None]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept)
    (folder / f"{writer}.log").write_text(text)


def replayed(typed: Typed, *arguments: str) -> tuple[int, list[str], str]:
    code, out, err = typed("replay", *arguments)
    return code, out.splitlines(), err


# The same.


def test_a_run_made_in_virtual_time_is_the_same_to_the_byte(made: Path) -> None:
    """By another process; test_lab_same has one with another seed of hashes."""
    again = chaoslab(made, "replay", "latest")
    assert again.returncode == 0, again.stdout + again.stderr
    events = sum(
        line["trial"] is not None
        for path in (made / "logs/latest").glob("*.log")
        for line in lines(path.parent, path.stem)
    )
    assert events > 100
    assert again.stdout.splitlines()[-1] == f"equal: 6 trials, {events} events, byte for byte"


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        (["2"], ["p2.r1"]),
        (["p3.r2"], ["p3.r2"]),
        (["2-4"], ["p2.r1", "p3.r1", "p1.r2"]),
        (["p2"], ["p2.r1", "p2.r2"]),
        (["6", "p1.r1"], ["p1.r1", "p3.r2"]),
        ([], ["p1.r1", "p2.r1", "p3.r1", "p1.r2", "p2.r2", "p3.r2"]),
    ],
)
def test_trials_are_chosen_by_number_or_by_name(wanted: list[str], keys: list[str], there: Path) -> None:
    assert select_trials_by_name(read_recorded_run(str(there)), wanted) == keys


def test_one_trial_alone_of_a_run_found_by_its_name_is_the_same_too(there: Path, typed: Typed) -> None:
    code, said, _ = replayed(typed, read_recorded_run(str(there)).run, "--trial", "p2.r2")
    (events,) = [len([line for line in History.read(there).records if line.trial == "p2.r2"])]
    assert (code, said[-1]) == (0, f"equal: 1 trial, {events} events, byte for byte")


def test_a_purse_is_as_full_as_it_was(here: Path, typed: Typed) -> None:
    """Dollars are counted over the run: the last trial, made alone, is refused for what those before it have spent."""
    priced = ("MODEL=llama-3.3-70b-versatile", "COST_LIMIT_USD=0.002", "TOXIC_PROB=0", "ERROR_PROB=0")
    ended = chaoslab(here, "run", "--world", "virtual", prompts(here, ["What is 17 times 24?"] * 3), *priced)
    assert ended.returncode == 0, ended.stderr
    run = read_recorded_run("latest")
    spent = [run.get_usd_spent_before(trial) for trial in run.trials]
    assert spent[0] == 0 < spent[1] < spent[2]
    assert "budget" in {line["kind"] for line in lines(run.folder) if line["trial"] == "p3.r1"}
    assert replayed(typed, "--trial", "3")[0] == 0


def test_what_is_run_again_is_said_before_it_is(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Shown(io.StringIO):
        def flush(self) -> None:
            shown.append(self.getvalue())

    shown: list[str] = []
    monkeypatch.setattr(sys, "stdout", Shown())
    assert main(["replay", "latest", "--trial", "2"]) == 0
    assert re.fullmatch(rf"{there}: run \S+, made in virtual; 1 trial of 6 again in virtual time\n", shown[0])


def test_a_replay_as_data(there: Path, typed: Typed) -> None:
    told = json.loads(typed.out("replay", "latest", "--trial", "2", "--json"))
    (trial,) = told["trials"]
    assert (told["folder"], told["exact"], told["equal"]) == (str(there), True, True)
    assert (trial["trial"], trial["difference"], trial["left_out"]) == ("p2.r1", None, None)


# Not the same.


def _first(kind: str, **wanted: Any) -> Callable[[Line], bool]:
    """True once: of the first such line."""
    left = [True]

    def is_it(line: Line) -> bool:
        if left and line["kind"] == kind and wanted.items() <= line.items():
            left.clear()
            return True
        return False

    return is_it


def test_a_trial_whose_first_line_does_not_happen_now_is_told_so_and_its_other_times_stand(there: Path) -> None:
    log = read_recorded_run(str(there))
    (done,) = InProcessExecutor().map(recorded_run.make_replay_spec(log), [TrialSpec(log.get_trial_number("p2.r1"))])
    wanted = log.get_lines("p2.r1")
    assert replay._compare_log_bytes(log, wanted, done.buffered_events) == ""
    more = BufferedEvent(
        "stranger", done.buffered_events[0].t + 0.5, "p2.r1", '"kind": "warning", "message": "x"}', True
    )
    assert (
        replay._compare_log_bytes(log, wanted, [more, *done.buffered_events])
        == "stranger.log: warning happens now, and did not then"
    )
    others = [entry for entry in done.buffered_events if entry.writer != "info"]
    assert others
    assert replay._compare_log_bytes(log, wanted, others) == (
        f"info.log, line {wanted['info.log'][0].number}: this prompt_started does not happen now"
    )


def test_a_line_that_the_lab_cannot_read_itself_is_a_mistake_of_ours_and_said_with_its_number(there: Path) -> None:
    kept = [
        BufferedEvent("info", 0.0, "p1.r1", '"kind": "warning", "message": "x"}', True),
        BufferedEvent("info", 0.0, "p1.r1", '"kind": 7}', True),
    ]
    with pytest.raises(AssertionError, match=r"^line 2 of the replay of p1\.r1 cannot be read: .*\"kind\": 7"):
        list(replay._make_replay_records(read_recorded_run(str(there)), "p1.r1", kept))


def test_a_value_that_differs_is_named_with_its_line(there: Path, typed: Typed) -> None:
    chosen = _first("call_finished", trial="p2.r1", target="model", ok=True)
    number = 1 + next(n for n, line in enumerate(lines(there)) if line["trial"] == "p2.r1" and chosen(line))
    which = _first("call_finished", trial="p2.r1", target="model", ok=True)
    change(there, lambda line: {**line, "bytes": 7} if which(line) else line)
    code, said, _ = replayed(typed)
    real = lines(there)
    assert code == 1
    assert re.fullmatch(
        rf"p2\.r1  info\.log, line {number} \(call_finished\): bytes was 7, is \d+; \w+ as before", said[-2]
    )
    assert said[-1] == "different: 1 of 6 trials"
    assert real[number - 1]["bytes"] == 7


def test_an_event_that_is_gone_and_one_that_is_new(there: Path, typed: Typed) -> None:
    last = lines(there, "agent")[-1]
    change(there, lambda line: None if line == last else line, writer="agent")
    code, said, _ = replayed(typed, "--trial", "6")
    assert code == 1
    assert said[-2].startswith("p3.r2  agent.log: prompt_attempt happens now, and did not then; ")
    change(there, lambda line: line, writer="agent")
    with (there / "agent.log").open("a") as log:
        log.write(json.dumps({**last, "trial": "p1.r1"}) + "\n")
    code, said, _ = replayed(typed, "--trial", "1")
    assert code == 1
    assert said[-2].startswith("p1.r1  agent.log, line 6: this prompt_attempt does not happen now; ")


def test_another_spelling_is_a_difference(there: Path, typed: Typed) -> None:
    text = (there / "info.log").read_text()
    (there / "info.log").write_text(text.replace('"ok": true', '"ok":true'))
    code, said, _ = replayed(typed, "--trial", "1")
    assert code == 1
    assert "(call_finished): its spelling was " in said[-2]


def test_of_a_long_value_the_beginning_is_told(there: Path, typed: Typed) -> None:
    which = _first("prompt_finished", trial="p1.r1")
    change(there, lambda line: {**line, "answer": "x" * 300} if which(line) else line)
    _, said, _ = replayed(typed, "--trial", "1")
    assert f'answer was "{"x" * 159}…, is' in said[-2]


def test_what_a_difference_made_of_the_outcome_is_said(there: Path, typed: Typed) -> None:
    which = _first("prompt_finished", trial="p1.r1")
    change(there, lambda line: {**line, "answer": "409"} if which(line) else line)
    code, said, _ = replayed(typed, "--trial", "1")
    assert code == 1
    assert re.search(r'answer was "409", is ".*"; wrong, now \w+$', said[-2])


# Said, and gone on.


def test_code_that_has_changed_is_named_and_the_replay_goes_on(there: Path, typed: Typed) -> None:
    def older(line: Line) -> Line:
        if line["kind"] == "run_started":
            line["code"] |= {"agent": "0123456789ab", "langchain": "0.0.1"}
        return line

    now = lines(there)[0]["code"]["langchain"]
    change(there, older)
    code, said, err = replayed(typed, "--trial", "1")
    assert err.startswith(f"not as it was: agent has changed; langchain is {now}, was 0.0.1\n")  # as below
    assert (code, said[-1].partition(":")[0]) == (0, "equal")


def test_the_logs_own_prompts_are_used(there: Path, typed: Typed) -> None:
    asked = there.parent.parent / "mine.json"

    def elsewhere(line: Line) -> Line:
        if line["kind"] == "run_started":
            line["settings"]["PROMPTS"] = str(asked)
        return line

    change(there, elsewhere)
    asked.write_text('["What is 1 plus 1?"]')
    code, _, err = replayed(typed, "--trial", "1")
    assert code == 0
    assert err.startswith(f"{asked} is not as it was: the prompts of the log are used\n")  # on a slow day, the progress
    asked.unlink()
    code, _, err = replayed(typed, "--trial", "1")
    assert code == 0
    assert err.startswith(f"the prompts of the log are used: PROMPTS={asked} cannot be read: No such file or directory")


# Refused.


def _without(kind: str, **wanted: Any) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        which = _first(kind, **wanted)
        change(folder, lambda line: None if which(line) else line)

    return do


def _without_file(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _started(**values: Any) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        change(folder, lambda line: {**line, **values} if line["kind"] == "run_started" else line)

    return do


def _of(version: str) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        code = lines(folder)[0]["code"]
        _started(code={**code, "log": version})(folder)

    return do


def _renamed(trial: str, name: str) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        for path in folder.glob("*.log"):
            change(folder, lambda line: {**line, "trial": name} if line["trial"] == trial else line, writer=path.stem)

    return do


def _setting(name: str, value: Any) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        _started(settings={**lines(folder)[0]["settings"], name: value})(folder)

    return do


def _cut(writer: str) -> Callable[[Path], None]:
    def do(folder: Path) -> None:
        path = folder / f"{writer}.log"
        path.write_bytes(path.read_bytes()[:-20])

    return do


def _no_line(folder: Path) -> None:
    """The first of a ledger of effects."""
    path = next(path for path in folder.glob("*.log") if path.stem == "messaging")
    _, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"{\n" + b"".join(rest))


def _nobodys(folder: Path) -> None:
    for path in folder.glob("*.log"):
        path.write_text("nothing of ours\n")


NO_BEGINNING = "logs/latest does not tell how its run began (run_started): info.log is missing or cut, or was changed"
TRIALS = "its trials are 1 to 6 (p1.r1 to p3.r2)"


def _nothing(folder: Path) -> None: ...


@pytest.mark.parametrize(
    ("spoil", "words", "line"),
    [
        (_without("run_started"), "", NO_BEGINNING),
        (_without_file("info.log"), "", NO_BEGINNING),
        (
            _without("prompt_finished", trial="p3.r1"),
            "",
            "p3.r1 was cut off, and nobody knows how it would have ended: leave it out with --trial 1-2 --trial 4-6",
        ),
        (
            _without("prompt_finished", trial="p1.r1"),
            "",
            "p1.r1 was cut off, and nobody knows how it would have ended: leave it out with --trial 2-6",
        ),
        (_cut("agent"), "", "logs/latest/agent.log, line 6 cannot be read: it is cut, or was changed"),
        (_cut("agent"), "--trial 6", "logs/latest/agent.log, line 6 cannot be read: it is cut, or was changed"),
        (_no_line, "--trial 2", "logs/latest/messaging.log, line 1 cannot be read: it is cut, or was changed"),
        (_nobodys, "", "the logs of 'latest' tell of no run: this lab did not write them"),
        (_of("3"), "", "logs/latest was written by version 3 of the log; this lab replays version 5"),
        (_of("6"), "", "logs/latest was written by version 6 of the log; this lab replays version 5"),
        (_started(code={}), "",
         "logs/latest was written by version 1 of the log, which did not keep what a replay needs"),
        (
            _setting("TOXIC_PROBE", 1),
            "",
            "TOXIC_PROBE is not a setting (logs/latest/info.log, line 1); did you mean TOXIC_PROB?",
        ),
        (_setting("TOXIC_PROB", 7), "", "TOXIC_PROB=7 (logs/latest/info.log, line 1) should be a chance from 0 to 1"),
        (
            _started(seed=99),
            "",
            "logs/latest/info.log, line 1: it has the seeds 99, 4 (plan) and 4 (SEED): it was changed",
        ),
        (_started(plan={}), "", "logs/latest/info.log, line 1: its plan is none of this lab's ('seed')"),
        (_started(asked=[{"question": "What?"}]), "",
         "logs/latest/info.log, line 1: its prompts are none of this lab's"),
        (_renamed("p2.r1", "mine"), "", "logs/latest: mine is no trial of 3 prompts: it was changed"),
        (_renamed("p2.r1", "p4.r1"), "", "logs/latest: p4.r1 is no trial of 3 prompts: it was changed"),
        (_renamed("p2.r1", "p2.r0"), "", "logs/latest: p2.r0 is no trial of 3 prompts: it was changed"),
        (_nothing, "--trial 7", f"this run has no trial 7: {TRIALS}"),
        (_nothing, "--trial 0", f"this run has no trial 0: {TRIALS}"),
        (_nothing, "--trial 5-9", f"this run has no trial 5-9: {TRIALS}"),
        (_nothing, "--trial 4-2", f"this run has no trial 4-2: {TRIALS}"),
        (_nothing, "--trial p9.r1", f"this run has no trial p9.r1: {TRIALS}"),
        (_nothing, "--trial first", f"this run has no trial first: {TRIALS}"),
        (_nothing, "--trial 99999999999999999999", f"this run has no trial 99999999999999999999: {TRIALS}"),
        (_nothing, "nowhere", "no run with logs is called 'nowhere': …"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_again_is_refused_in_a_line(
    spoil: Callable[[Path], None], words: str, line: str, there: Path, typed: Typed
) -> None:
    spoil(there)
    assert re.fullmatch(re.escape(line).replace("…", ".*"), typed.refused("replay", *words.split()).strip())


def test_a_log_without_its_end_is_said_to_be_so(there: Path, typed: Typed) -> None:
    _without("run_finished")(there)
    code, said, err = replayed(typed)
    assert (code, said[-1].partition(",")[0]) == (0, "equal: 6 trials")
    assert (
        "the log has no end (run_finished): the run was killed, or info.log is cut; what there is of it is compared"
        in err
    )


def test_whole_trials_of_a_log_that_is_cut_can_be_replayed(there: Path, typed: Typed) -> None:
    _without("prompt_finished", trial="p3.r2")(there)
    _cut("agent")(there)
    with pytest.raises(Unrepeatable, match=r"p3\.r2 was cut off"):
        select_trials_by_name(read_recorded_run(str(there)), [])
    code, said, _ = replayed(typed, "--trial", "1-2")
    assert (code, said[-1].partition(",")[0]) == (0, "equal: 2 trials")


# As stories: what was made in real time.


@pytest.fixture
def as_if_local(there: Path) -> Path:
    """The same log, as if it had been made on loopback."""
    _started(world="local")(there)
    return there


def test_times_apart_a_run_is_the_same_story(as_if_local: Path, typed: Typed) -> None:
    def later(line: Line) -> Line:
        line["t"] += 0.25
        return {**line, **({"duration_s": line["duration_s"] * 1.5} if "duration_s" in line else {})}

    change(as_if_local, later)
    code, said, _ = replayed(typed)
    assert code == 0, said
    assert re.fullmatch(r"equal: 6 trials, \d+ events, as stories, times apart", said[-1])


@pytest.mark.parametrize(
    ("kind", "wanted", "changed", "line"),
    [
        ("call_finished", {"target": "messaging", "request": 1, "attempt": 1}, {"status": 418}, "status was 418, is "),
        ("effect", {"target": "messaging"}, {"effect": "event_deleted"},
         'happened[0][0] was "event_deleted", is "message_sent"'),
        ("prompt_finished", {}, {"answer": "Nothing."}, 'answer was "Nothing.", is '),
        ("prompt_started", {}, {"facts": [["nine"]]}, 'facts was [["nine"]], is []'),
    ],
)  # fmt: skip
def test_where_two_stories_part_is_told(
    kind: str, wanted: Line, changed: Line, line: str, as_if_local: Path, typed: Typed
) -> None:
    which = _first(kind, trial="p2.r1", **wanted)
    writer = "messaging" if kind == "effect" else "info"
    change(as_if_local, lambda line: {**line, **changed} if which(line) else line, writer=writer)
    code, said, _ = replayed(typed, "--trial", "2")
    assert code == 1
    assert line in said[-2]
    assert said[-1] == "different: 1 of 1 trial"


def test_a_delay_close_to_the_deadline_may_go_either_way(as_if_local: Path, typed: Typed) -> None:
    """The fault of the log gets such a delay, and its call another end: that is no difference, and is said."""
    trial, place = next(
        (line["trial"], (line["request_id"], line["attempt"])) for line in lines(as_if_local, "manager")
        if line["kind"] == "fault_scheduled" and line["fault"] == "timeout"
    )  # fmt: skip

    def near(line: Line) -> Line:
        if line.get("trial") == trial and (line.get("request_id"), line.get("attempt")) == place:
            if line["kind"] == "fault_scheduled":
                line["params"] = {**line["params"], "after_s": 1.5}
            if line["kind"] == "call_finished":
                line["error"] = "closed"
        return line

    change(as_if_local, near)
    change(as_if_local, near, writer="manager")
    code, said, _ = replayed(typed, "--trial", trial)
    assert code == 0
    assert re.fullmatch(
        rf"{trial}  left out: \w+ \d+\.\d+ may go either way \(a delay within a factor of 2 of the deadline\), and did",
        said[-2],
    )
    assert said[-1] == "equal: 0 trials, 0 events, as stories, times apart; 1 trial left out"


def test_a_closed_connection_may_be_seen_as_reset_and_as_nothing_else(here: Path, typed: Typed) -> None:
    asked = prompts(here, ["What is 17 times 24?"])
    toxics = ("TOXIC_PROB=1", "TOXICS=timeout", "TIMEOUT_MS=300", "ERROR_PROB=0")
    assert chaoslab(here, "run", "--world", "virtual", asked, *toxics).returncode == 0
    folder = here / "logs" / "latest"
    _started(world="local")(folder)
    told = " may go either way (timeout closes a connection of which not all may have been read), and did"
    was = "closed"
    for seen, code in (("reset", 0), ("garbled", 1)):
        change(folder, lambda line: {**line, "error": seen} if line.get("error") == was else line)  # noqa: B023
        found, said, _ = replayed(typed)
        assert (found, said[-2].endswith(told)) == (code, code == 0)
        was = seen


def test_a_trial_that_the_lab_itself_got_in_the_way_of_is_left_out(as_if_local: Path, typed: Typed) -> None:
    some = next(line for line in lines(as_if_local) if line["kind"] == "call_started" and line["trial"] == "p1.r1")
    with (as_if_local / "info.log").open("a") as log:
        names = ("target", "tool", "request", "attempt", "request_id")
        event = {name: some[name] for name in names} | {"kind": "call_disturbed", "why": "it was cut"}
        log.write(json.dumps({**{k: some[k] for k in ("ts", "t", "run", "trial", "writer", "seq")}, **event}) + "\n")
    code, said, _ = replayed(typed, "--trial", "1")
    assert code == 0
    assert said[-2] == "p1.r1  left out: the lab itself got in the way (it was cut)"
