"""A trial's story stands in time order, from its question to its verdict, with the replies and what a fault changed."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaoslab.analysis.verdict.table import Outcome
from chaoslab.core.events import (
    REPLY_MAX,
    CallDisturbed,
    CallFinished,
    Event,
    FaultArmed,
    FaultHealed,
    FaultInjected,
    FaultScheduled,
    FaultWitnessed,
    PromptStarted,
    RunStarted,
)
from chaoslab.record.history import History
from chaoslab.record.lines import Record
from chaoslab.reports.show import render_event, render_stories
from tests.event_parts import call_at, fault_at, prompt_finished, sample, story
from tests.reports.fake_run import FakeRun

PLACE = ("search", 1, 1, "id")
WRONG = ("wrong_value", "hallucination", *PLACE)
SLOW = ("latency", "wire", *PLACE)


def told(*events: Event, trial: str = "p1.r1", **options: Any) -> list[str]:
    """The lines of a trial in which this happened, a second apart, without their moments."""
    begun, over = PromptStarted(prompt_index=1, prompt="what?"), prompt_finished("that", prompt="what?", duration_s=9.0)
    told = render_stories(story(begun, *events, over, trial=trial), **options)
    return [text.partition(" s  ")[2] or text for text in told.splitlines()]


def faults(*events: Event, **options: Any) -> list[str]:
    return [text for text in told(*events, **options) if text.startswith("fault")]


def ended(*, ok: bool = True, status: int | None = 200, error: str | None = None, reply: str = "") -> CallFinished:
    of: dict[str, Any] = {"status": status, "error": error, "reply": reply}
    return CallFinished(**call_at("search", "search_web", 1, 1, "id"), ok=ok, duration_s=0.5, **of)


WORDS = """
AgentDied: process  weather 3.2 the agent was killed
AgentResumed: process  the agent resumes (3)
Budget: budget   text: 0.25 of 0.25 (text)
CallDisturbed: lab      weather 3.2 disturbed: text
CallFinished: result   weather 3.2 ok 503 said in 0.250 s via text, replayed: text
CallStarted: call     weather 3.2 text({"city": "Zürich"})
CallsOrdered: order    wire, errors: drawn for calls made together
ChanceSet: set      text was 0.5 and was set to 0.5 while the run went on
Effect: effect   text text {"a": [1, null]}
EventRepeated: user     the same event, at once: text
Fallback: fallback weather 3.2 to text
FaultArmed: fault    weather 3.2 text armed on lane text
FaultHealed: fault    weather 3.2 text healed
FaultInjected: fault    weather 3.2 text injected
FaultScheduled: fault    weather 3.2 text scheduled by text {"a": [1, null]}
FaultUnreached: fault    text 3 NOT REACHED by text
FaultWitnessed: fault    weather 3.2 text witnessed: text (text)
FaultsOff: off      switched off while the run went on: wire, errors
LabWarning: warning  text
PromptAttempt: attempt  3 ended with a text error: text
PromptFinished: answer   after 0.250 s, 3 attempts: text
PromptStarted: twin     without faults: said
RepeatAnswered: user     the repeat is answered: text
Retry: retry    weather 3.2 after 0.25 s: text
ServiceResumed: process  text back after 0.25 s
ServiceStopped: process  weather 3.2 text for text
StoryLeftOut: left out its story, as it ended well (keep='failed'): 1 call, 1 fault met
TurnFinished: turn     3 answered: text
TurnStarted: turn     3: text
Usage: usage    model 3 3 + 3 tokens
UsageUnstated: usage    model 3 not stated, about 6 tokens
UserStopped: user     weather 3.2 stops the agent, and says: text
ValuesDrawn: drawn    a = [1, None]
"""


def test_each_event_has_its_words_in_a_story() -> None:
    texts = {kind.__name__: render_event(sample(kind)) for kind in Event.kinds.values()}
    assert "".join(f"{name}: {text}\n" for name, text in sorted(texts.items()) if text) == WORDS.lstrip()


def test_a_moment_soon_after_the_start_is_not_the_start() -> None:
    events = [(5.0, PromptStarted(prompt_index=1, prompt="what?")), *((t, ended()) for t in (5.0, 5.00002, 5.004))]
    history = History(Record("", t, "run", "p1.r1", "info", n, event) for n, (t, event) in enumerate(events))
    moments = [line.partition("  result ")[0].strip() for line in render_stories(history).splitlines()[1:4]]
    assert moments == ["+0.000 s", "+20 µs", "+4.0 ms"]


def test_a_fault_is_one_line_where_it_was_met() -> None:
    stages: list[Event] = [
        FaultScheduled(**fault_at(*SLOW), params={"delay_s": 0.5}),
        FaultArmed(**fault_at(*SLOW), lane="lane.1"),
        FaultInjected(**fault_at(*SLOW)),
    ]
    met = FaultWitnessed(**fault_at(*SLOW), evidence="took 0.5 s")
    lines = told(*stages, ended(), met, FaultHealed(**fault_at(*SLOW)))
    line = "fault    search 1.1 latency (wire): took 0.5 s – witnessed"
    assert [text for text in lines if "latency" in text] == [line] == lines[2:3]
    changed = FaultWitnessed(**fault_at(*WRONG), evidence="a value reached the caller", changed="temperature 12 → 21")
    before = FaultScheduled(**fault_at(*WRONG)), FaultInjected(**fault_at(*WRONG))
    lines = told(*before, changed, ended(reply='{"temperature": 21}'))
    assert lines[1:3] == [
        "fault    search 1.1 wrong_value (hallucination): temperature 12 → 21 – witnessed",
        'result   search 1.1 ok 200 in 0.500 s via proxy: {"temperature": 21}',
    ]
    assert len(faults(*stages, met, stages=True)) == 4


def test_a_fault_that_names_its_injection_says_it_once() -> None:
    place = ("lost_reply", "lost_reply on refund", "refund", 1, 1, "id")
    met = FaultWitnessed(**fault_at(*place), evidence="", changed="30 → timed_out")
    lines = told(FaultScheduled(**fault_at(*place)), FaultInjected(**fault_at(*place)), met)
    assert lines[1] == "fault    refund 1.1 lost_reply: 30 → timed_out – witnessed"


def failed(error: str) -> CallFinished:
    return ended(ok=False, status=None, error=error)


ARMED, HEALED = FaultArmed(**fault_at(*SLOW), lane="lane.1"), FaultHealed(**fault_at(*SLOW), witnessed=False)
LOST = CallDisturbed(**call_at("search", "search_web", 1, 1, "id"), why="its lane was lost")


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([ARMED, ended(), HEALED], "ARMED AND NOT WITNESSED: the caller got 200 after 0.500 s"),
        ([ARMED, failed("reset")], "ARMED AND NOT WITNESSED: the call ended with reset after 0.500 s"),
        ([ARMED], "ARMED AND NOT WITNESSED: the call never ended"),
        ([ARMED, LOST, ended()], "ARMED AND NOT WITNESSED: the lab itself got in the way (its lane was lost)"),
        ([FaultInjected(**fault_at(*SLOW)), ended()], "INJECTED AND NOT WITNESSED: the caller got 200 after 0.500 s"),
        ([ended()], "not injected: it found nothing to change"),
        ([failed("timed_out")], "not injected: the call ended with timed_out after 0.500 s"),
        ([], "not injected: the call never ended"),
    ],
)
def test_a_fault_that_nobody_witnessed_stands_out_with_the_reason(events: list[Event], said: str) -> None:
    (line,) = faults(FaultScheduled(**fault_at(*SLOW), params={"delay_s": 0.5}), *events)
    assert line == f'fault    search 1.1 latency (wire) {{"delay_s": 0.5}}: {said}'


def test_faults_of_one_attempt_are_told_apart() -> None:
    late, wrong = FaultScheduled(**fault_at(*SLOW)), FaultScheduled(**fault_at(*WRONG))
    met = FaultWitnessed(**fault_at(*SLOW), evidence="late")
    assert faults(wrong, late, met, FaultWitnessed(**fault_at(*WRONG), evidence="", changed="a → b")) == [
        "fault    search 1.1 latency (wire): late – witnessed",
        "fault    search 1.1 wrong_value (hallucination): a → b – witnessed",
    ]


def test_what_was_replied_is_told_unless_the_error_says_it_already() -> None:
    assert told(ended(reply="x" * REPLY_MAX))[1].endswith("x" * 150 + "…")
    busy = told(ended(ok=False, status=429, error="busy", reply='{"error": "busy"}'))
    assert busy[1] == "result   search 1.1 FAILED 429 busy in 0.500 s via proxy"
    odd = told(ended(ok=False, status=200, error="status 200", reply="<html>"))
    assert odd[1] == "result   search 1.1 FAILED 200 status 200 in 0.500 s via proxy: <html>"


def test_a_story_tells_what_was_planned_and_not_met() -> None:
    names = ("wrong_value", "by chance", "elsewhere")
    plan = {"seed": 1, "injections": [{"name": name, "choices": [], "targets": []} for name in names]}
    run = RunStarted(seed=1, settings={}, plan=plan, prompts=1, now="2026-06-01T09:00:00Z", model="m")
    met = FaultScheduled(at=ended().at, fault="wrong_value", injection="wrong_value", params={})
    started = PromptStarted(prompt_index=1, prompt="what?")
    events = [run, started, met, replace(ended(), rolled=["wrong_value", "by chance"])]
    history = History(
        Record("", float(n), "run", "p1.r1" if n else None, "info", n, event) for n, event in enumerate(events)
    )
    assert [text.strip() for text in render_stories(history).splitlines()[-2:]] == [
        "not met  spared by the dice: by chance",
        "not met  planned, and no call was for it: elsewhere",
    ]


def test_the_twins_answer_stands_beside() -> None:
    lines = told(PromptStarted(prompt_index=1, prompt="what?", twin="this"))
    assert "twin     without faults: this" in lines


def test_nothing_in_a_log_steers_the_terminal() -> None:
    assert all(text.isprintable() for text in told(ended(reply="\x1b[2J\x9bowned")))


def run_of(*answers: str) -> History:
    """A prompt asked several times, to which 42 is the answer; an empty answer is none."""
    records, t = [], 0.0
    for n, answer in enumerate(answers, 1):
        status, kind = ("ok", "none") if answer else ("failed", "model")
        for event in (
            PromptStarted(prompt_index=7, prompt="again", facts=[["42"]], stated=True, twin="42"),
            prompt_finished(answer, prompt_index=7, prompt="again", status=status, error_type=kind),
        ):
            t += 1
            records.append(Record("", t, "run", f"p7.r{n}", "info", int(t), event))
    return History(records)


@pytest.mark.parametrize(("kind", "said"), [("none", "empty"), ("model", "none (model error)")])
def test_an_empty_answer_is_told_from_one_that_never_came(kind: str, said: str) -> None:
    assert f"answer   after 1.000 s, 1 attempt: {said}" in told(prompt_finished(" ", prompt="what?", error_type=kind))


def test_trials_are_chosen_by_name_and_by_outcome() -> None:
    history = run_of("42", "41", "", "42")

    def shown(**options: Any) -> list[str]:
        return re.findall(r"^p\d+\.r\d+", render_stories(history, **options), flags=re.MULTILINE)

    assert shown() == ["p7.r1", "p7.r2", "p7.r3", "p7.r4"]
    assert shown(trials=["p7.r3"]) == ["p7.r3"]
    assert shown(trials=["p7.r4", "p7.r1"]) == ["p7.r1", "p7.r4"]
    assert shown(trials=["p7"], outcomes={Outcome.WRONG}) == ["p7.r2"]
    assert shown(outcomes={Outcome.WRONG, Outcome.FAILED}) == ["p7.r2", "p7.r3"]
    assert shown(trials=["p7.r2"], outcomes={Outcome.FAILED}) == []
    assert render_stories(history, outcomes={Outcome.HARM}) == "no trial here is harm: 2 correct, 1 wrong, 1 failed\n"
    assert render_stories(history, outcomes={Outcome.HARM, Outcome.HUNG, Outcome.INVALID}).startswith(
        "no trial here is harm, hung or invalid: "
    )
    with pytest.raises(
        LookupError, match=re.escape("this run has no trial p8.r1: its trials are 1 to 4 (p7.r1 to p7.r4)")
    ):
        render_stories(history, trials=["p8.r1"])
    with pytest.raises(LookupError, match="this run has no prompt 1: its prompts are 7 to 7"):
        render_stories(history, trials=["p7.r1"], prompt=1)


def test_a_story_goes_from_question_over_faults_to_verdict(tmp_path: Path) -> None:
    text = render_stories(History.read(FakeRun(tmp_path, prompts=60).write()), prompt=9, stages=True)
    lines = text.splitlines()
    assert lines[0].startswith("p9.r1  prompt 9: Question 9")
    order = (
        "call     translator 1.1 translate(",
        "timeout scheduled by wire",
        "timeout armed on lane translator.1",
        "result   translator 1.1 FAILED timed_out in 2.000 s via lane",
        "timeout witnessed: the caller saw it",
        "call     translator 1.2",
        'effect   messaging message_sent {"to": "ana", "text": "42"',
        "answer   after",
        "verdict  unknown",
    )
    places = [next(n for n, line in enumerate(lines) if part in line) for part in order]
    assert places == sorted(places)
    moments = [float(line.split()[0]) for line in lines[1:] if " s  " in line[:16]]
    assert len(moments) > len(order)
    assert moments == sorted(moments)
    assert moments[0] == 0.0
    assert "retry    translator 1.2 after 0.1 s: no answer" in text


def test_fault_parameters_and_fallbacks_show(tmp_path: Path) -> None:
    text = render_stories(History.read(FakeRun(tmp_path, prompts=60).write()), stages=True)
    assert 'latency scheduled by wire {"delay_s": 0.5}' in text
    assert "to http://127.0.0.1:5000" in text
    assert text.count("verdict  ") == 60


def test_each_repeat_is_told() -> None:
    begun = PromptStarted(prompt_index=7, prompt="again")
    starts = [Record("", float(n), "run", f"p7.r{n}", "info", n, begun) for n in (1, 2)]
    text = render_stories(History(starts), prompt=7)
    assert "p7.r1  prompt 7: again" in text
    assert "p7.r2  prompt 7: again" in text
    assert text.count("unfinished: the run ended before it did") == 2


def test_a_prompt_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    history = History.read(FakeRun(tmp_path, prompts=3).write())
    with pytest.raises(LookupError, match="this run has no prompt 9: its prompts are 1 to 3"):
        render_stories(history, prompt=9)
    with pytest.raises(LookupError, match="this run has no prompt: no trial was started in it"):
        render_stories(History([]))
