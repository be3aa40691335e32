"""Random logs: what is read in batches of whole trials gives the report that the whole history gives.

The trials are of real events in random order, so that ends come without beginnings, faults without calls, and effects
twice. They follow each other or run side by side, in one log or several, of this version or an earlier one, and lines
are cut, lost, repeated or out of order.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chaoslab.analysis.measures import run_report
from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.analysis.verdict.judge import judge_all_trials, judge_trial
from chaoslab.base.shapes import DEPTH_MAX
from chaoslab.core.events import Event
from chaoslab.record.history import History
from chaoslab.record.log import encode_event
from chaoslab.record.trial_stream import TrialStream, Unordered
from tests.event_parts import sample
from tests.reports.fake_run import summary

NOON = "2026-06-01T12:00:00Z"
OF_ATTEMPTS = (
    "call_started", "call_finished", "call_finished", "fault_scheduled", "fault_armed", "fault_injected",
    "fault_witnessed", "fault_healed", "call_disturbed", "retry", "fallback", "effect", "usage", "prompt_attempt",
)  # fmt: skip
SELDOM = ("fault_unreached", "budget", "warning", "lab_disturbed", "end_state", "turn_started", "prompt_started")
FAULTS = ("latency", "lost_reply", "wrong_value", "service_down", "of_another_lab")
OF_MANAGER = ("fault_scheduled", "fault_armed", "fault_healed", "lab_disturbed")
LATER = ("turn", "reply", "changed", "twin", "world", "asked", "code")
"""The fields that the lines of earlier versions lack."""


class Step(NamedTuple):
    """An event. `whose`: 0 is of its trial, 1 of no trial, 2 of one that never began. `odd`: the line has a field that
    this version does not know, so it is read in the general way."""

    kind: str
    target: str
    request: int
    attempt: int
    fault: str
    good: bool
    gap_s: float
    whose: int
    odd: bool


STEP = st.builds(
    Step,
    st.one_of(st.sampled_from(OF_ATTEMPTS), st.sampled_from(OF_ATTEMPTS), st.sampled_from(SELDOM)),
    st.sampled_from(("shop", "model")),
    st.integers(1, 2),
    st.integers(1, 2),
    st.sampled_from(FAULTS),
    st.booleans(),
    st.sampled_from((0.0, 0.25, 1.0)),
    st.sampled_from((0,) * 20 + (1, 2)),
    st.sampled_from((False,) * 8 + (True,)),
)


NEVER_BEGAN = Step("call_started", "shop", 1, 1, "latency", False, 0.0, 2, False)


def _call(first: Step, met: bool, again: bool) -> list[Step]:
    """The events of a call as a run has them: it may meet a fault, and may be made again."""
    step = first._replace(whose=0)
    stages = ("fault_scheduled", "fault_injected", "fault_witnessed") if met else ()
    kinds = ("call_started", *stages, "effect", "call_finished")
    tries = [step._replace(attempt=1, good=step.good and not met), *([step._replace(attempt=2)] if again else [])]
    return [each._replace(kind=kind, gap_s=each.gap_s / 4) for each in tries for kind in kinds]


CALL = st.builds(_call, STEP, st.booleans(), st.booleans())
STEPS = st.lists(st.one_of(CALL, STEP.map(lambda step: [step])), min_size=1, max_size=5).map(
    lambda parts: [step for part in parts for step in part]
)
TRIAL = st.tuples(STEPS, st.sampled_from(("ok", "ok", "ok", "failed", "hung", "none")))


@dataclass
class Logs:
    """The lines of each log, by its name."""

    several: bool
    old: bool
    lines: dict[str, list[bytes]]
    t: float = 0.0

    def put(self, kind: str, trial: str | None, values: dict[str, Any], *, odd: bool = False) -> None:
        """Adds a line: the event of `sample` with other values."""
        held = {"effect": "shop", "prompt_attempt": "agent"} | dict.fromkeys(OF_MANAGER, "manager")
        writer = held.get(kind, "info") if self.several else "info"
        lines = self.lines.setdefault(f"{writer}.log", [])
        envelope = {"ts": NOON, "t": self.t, "run": "r", "trial": trial, "writer": writer, "seq": len(lines) + 1}
        event = {**_SAMPLES[kind], **values, **({"new": 1} if odd else {})}
        told = {name: value for name, value in event.items() if not (self.old and name in LATER)}
        lines.append(json.dumps(envelope | {"kind": kind} | told).encode() + b"\n")

    def step(self, step: Step, trial: str) -> None:
        """Adds the event of a step of this trial."""
        self.t += step.gap_s
        values = _values(step) | {"turn": 1} if "turn" in _SAMPLES[step.kind] else _values(step)
        whose = (trial, None, "p9.r9")[step.whose]
        self.put(step.kind, whose, {k: v for k, v in values.items() if k in _SAMPLES[step.kind]}, odd=step.odd)


def _sampled(kind: type[Event]) -> dict[str, Any]:
    """The fields of a line of this kind."""
    found: dict[str, Any] = json.loads(f"{{{encode_event(sample(kind))}")
    found.pop("kind")
    return found


_SAMPLES = {name: _sampled(kind) for name, kind in Event.kinds.items()}


def _values(step: Step) -> dict[str, Any]:
    """The values of fields that measures look at, whatever the kind."""
    name = f"{step.fault} on {step.target}"
    status: object = 200 if step.good else 503
    if step.kind == "prompt_attempt":
        status = "ok" if step.good else "error"
    return {
        "target": step.target, "request": step.request, "attempt": step.attempt, "fault": step.fault,
        "request_id": f"id{step.request}" if step.good else "", "injection": name, "status": status, "ok": step.good,
        "error": None if step.good else ("timed_out", "cancelled")[step.attempt - 1], "rolled": [name] * step.good,
        "duration_s": step.gap_s, "via": ("function", "direct")[step.request - 1],
        "first_byte_s": step.gap_s if step.good else None, "effect": "sold", "content": {"item": step.request},
        "reply": "" if step.kind == "call_finished" else {}, "start_time": NOON, "end_time": NOON, "plan": {},
        "cost_usd": 0.1 * step.request if step.good else None, "error_type": "none" if step.good else "agent",
        "witnessed": step.good, "masked_by": "", "idle": "" if step.good else "nothing to do", "made": step.attempt,
        "prompt_index": step.request, "prompt": "buy", "stated": step.good, "effects": [], "facts": [],
    }  # fmt: skip


def _begin(logs: Logs, nth: int, trial: str) -> None:
    wish = [{"effect": "sold", "item": 1}]
    more = {"twin_s": 0.5, "twin_calls": 2} if nth % 2 else {"twin_s": None, "twin_calls": None}
    stated = {"stated": True, "effects": wish, "facts": [], "twin": "sold 1", "incomparable": "", "state": None}
    logs.put("prompt_started", trial, {"prompt_index": 1 + nth % 2, "prompt": "buy"} | stated | more)


def _end(logs: Logs, nth: int, trial: str, how: str) -> None:
    if how != "none":
        status = "ok" if how == "ok" else "failed"
        answer = ("sold 1", "I could not sell it.", "sold 2")[nth % 3]
        values = {"status": status, "answer": answer, "error_type": how if how == "hung" else "none"}
        logs.put("prompt_finished", trial, {"prompt_index": 1 + nth % 2, "duration_s": 0.1 * nth} | values)


def write(
    logs: Logs, trials: Sequence[tuple[list[Step], str]], *, side_by_side: bool, around: list[Step], ended: bool
) -> None:
    """Writes the trials, one after the other or in turns. `around`: a call of no trial, which begins before the trials
    and ends after them."""
    injections = [{"name": "latency on shop", "choices": [{"fault": "latency"}], "targets": ["shop"], "chance": 0.3}]
    logs.put("run_started", None, {"plan": {"seed": 1, "injections": injections}, "world": "virtual", "asked": []})
    keys = [f"p{1 + nth % 2}.r{1 + nth // 2}" for nth in range(len(trials))]
    for step in around[:1]:
        logs.step(step, "")
    if side_by_side:
        for nth, key in enumerate(keys):
            _begin(logs, nth, key)
        for turn in range(max((len(steps) for steps, _ in trials), default=0)):
            for key, (steps, _) in zip(keys, trials, strict=True):
                if turn < len(steps):
                    logs.step(steps[turn], key)
    for nth, (key, (steps, how)) in enumerate(zip(keys, trials, strict=True)):
        if not side_by_side:
            _begin(logs, nth, key)
            for step in steps:
                logs.step(step, key)
        _end(logs, nth, key, how)
    for step in around[1:]:
        logs.step(step, "")
    if ended:
        logs.put("run_finished", None, {"reason": "done"})


def damage(lines: list[bytes], how: str, one: int, other: int) -> None:
    """Spoils the log in one place."""
    one, other = one % len(lines), other % len(lines)
    match how:
        case "swap":
            lines[one], lines[other] = lines[other], lines[one]
        case "lose":
            lines[one] = b""
        case "cut":
            lines[one] = lines[one][: 10 * other] + b"\n"
        case "again":
            lines.append(lines[one])
        case "torn":
            lines[-1] = lines[-1][: len(lines[-1]) // 2]
        case "two":
            lines[one] = lines[one].rstrip(b"\n") + lines[other]
        case "broken":
            lines[one] = lines[one].replace(b", ", (b",\n", b",\r", b",\r\n", b"\n\n")[other % 4], 1)
        case "deep":
            depth = DEPTH_MAX - 2 + other % 4
            lines[one] = lines[one].replace(b'"item"', b'"deep": %b%b, "item"' % (b"[" * depth, b"]" * depth))


DAMAGE = st.tuples(
    st.sampled_from(("swap", "lose", "cut", "again", "torn", "two", "broken", "deep")),
    st.integers(0, 60),
    st.integers(0, 60),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


def told(report: RunReport) -> dict[str, str]:
    """Each field in words, so that 1 is not 1.0 and the order of what has one counts."""
    found = {field.name: getattr(report, field.name) for field in fields(report)}
    return {name: repr(sorted(value) if isinstance(value, frozenset) else value) for name, value in found.items()}


@given(
    trials=st.lists(TRIAL, min_size=1, max_size=6),
    several=st.booleans(),
    old=st.booleans(),
    side_by_side=st.sampled_from((False, False, True)),
    around=st.one_of(st.just([]), CALL.map(lambda steps: [step._replace(whose=1) for step in steps])),
    ended=st.booleans(),
    damages=st.one_of(st.just([]), st.lists(DAMAGE, max_size=3)),
    least=st.sampled_from((1, 1, 4, 12, 1000)),
)
@example(
    trials=[([NEVER_BEGAN], "ok"), ([NEVER_BEGAN._replace(whose=0)], "ok")], several=False, old=False,
    side_by_side=False, around=[], ended=False, damages=[], least=1,
)  # fmt: skip
@example(  # the gap is known only when the stray line's batch could be over
    trials=[([NEVER_BEGAN], "ok"), ([NEVER_BEGAN._replace(whose=0, gap_s=0.25)] * 2, "ok")], several=False, old=False,
    side_by_side=False, around=[], ended=False, damages=[("lose", 5, 0)], least=1,
)  # fmt: skip
def test_a_report_of_batches_is_the_history_s(
    folder: Path, trials: list[tuple[list[Step], str]], several: bool, old: bool, side_by_side: bool,
    around: list[Step], ended: bool, damages: list[tuple[str, int, int]], least: int,
) -> None:  # fmt: skip
    logs = Logs(several, old, {})
    write(logs, trials, side_by_side=side_by_side, around=around, ended=ended)
    for how, one, other in damages:
        damage(logs.lines[sorted(logs.lines)[one % len(logs.lines)]], how, one, other)
    for path in folder.glob("*.log"):
        path.unlink()
    for name, lines in logs.lines.items():
        (folder / name).write_bytes(b"".join(lines))
    history = History.read(folder)
    assert judge_all_trials(history) == {trial: judge_trial(history, trial) for trial in history.trials}
    whole = RunReport.from_history(history)
    with patch.object(run_report, "TrialStream", lambda folder: TrialStream(folder, least=least)):
        found = RunReport.from_folder(folder)
    assert told(found) == told(whole)
    assert summary(found) == summary(whole)
    if several or side_by_side or damages or any(step.whose == 2 for steps, _ in trials for step in steps):
        return
    try:
        batches = list(TrialStream(folder, least=least))
    except Unordered as error:
        pytest.fail(f"{error}, though its trials follow each other")
    strays = around or any(step.whose or step.kind == "prompt_started" for steps, _ in trials for step in steps)
    if least == 1 and not strays and all(how != "none" for _, how in trials):
        assert len(batches) == 1 + len(trials)
