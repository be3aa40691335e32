"""A run as the lab would leave it, without a lab: the real Log on a scripted clock, all chances from named dice."""

from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from chaoslab.analysis.measures.run_report import RunReport
from chaoslab.base.dice import Dice
from chaoslab.core.events import (
    CallFinished,
    CallStarted,
    Effect,
    Fallback,
    FaultArmed,
    FaultInjected,
    FaultScheduled,
    FaultWitnessed,
    PromptStarted,
    Retry,
    RunFinished,
    RunStarted,
    Usage,
)
from chaoslab.record.history import History
from chaoslab.record.log import Log
from chaoslab.reports.contents import Contents
from chaoslab.reports.formats import terminal
from tests.event_parts import call_at, fault_at, prompt_finished, run_started

TARGETS = {
    "search": "search_web",
    "weather": "current_weather",
    "movies": "search_movies",
    "calendar": "list_events",
    "calculator": "calculate",
    "messaging": "send_message",
    "translator": "translate",
}
FAULTS = {
    "latency": "wire",
    "timeout": "wire",
    "tool_error": "errors",
    "lost_reply": "errors",
    "wrong_value": "hallucination",
}


def summary(of: History | RunReport, *, where: str = "", program: str = "chaoslab", full: bool = False) -> str:
    """The page that `chaoslab summary` prints of this run."""
    report = RunReport.from_history(of) if isinstance(of, History) else of
    source = of if isinstance(of, History) else Path(report.name)
    return terminal.render_summary(Contents(source, report, where or report.name, program), full=full)


def changed(contents: Contents, **parts: Any) -> Contents:
    """The same report with other contents in these places."""
    made = replace(contents)
    vars(made).update(parts)
    return made


def stated(history: History, **changes: Any) -> History:
    """The same run, whose log says that the wire's faults were the only ones and that it was made with these settings
    too; any other field of `RunStarted` is changed by its name.
    """
    names = {f.name for f in fields(RunStarted)}
    records = []
    for record in history.records:
        if isinstance(event := record.event, RunStarted):
            wire = [i for i in event.plan["injections"] if i["name"] == "wire"]
            settings = event.settings | {name: value for name, value in changes.items() if name not in names}
            event = replace(event, settings=settings, plan=event.plan | {"injections": wire})
            record = replace(record, event=replace(event, **{n: v for n, v in changes.items() if n in names}))
        records.append(record)
    return History(records)


@dataclass
class ScriptedClock:
    """Time passes when the script says so."""

    now_s: float = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def utc(self) -> datetime:
        return datetime(2026, 6, 1, 9, tzinfo=UTC) + timedelta(seconds=self.now_s)

    def sleep(self, delay_s: float) -> None:
        self.now_s += delay_s

    async def sleep_async(self, delay_s: float) -> None:
        self.now_s += delay_s


@dataclass
class FakeRun:
    """Writes one run; what it is like is in its fields."""

    folder: Path
    prompts: int = 25
    chance: float = 0.3
    seed: int = 7
    targets: dict[str, str] = field(default_factory=lambda: dict(TARGETS))
    effects: bool = True
    streams: bool = True
    clock: ScriptedClock = field(default_factory=ScriptedClock)

    def write(self) -> Path:
        self.info, self.manager, self.service = (
            Log(self.folder, writer, run="fake", origin=0.0, clock=self.clock)
            for writer in ("info", "manager", "messaging")
        )
        with self.info, self.manager, self.service:
            self._run()
        return self.folder

    def _run(self) -> None:
        injections = [
            {"name": name, "chance": self.chance / 3, "calls": [], "choices": [], "targets": list(self.targets)}
            for name in ("wire", "errors", "hallucination")
        ]
        settings: dict[str, Any] = {"TOXIC_PROB": self.chance, "TOOL_LIMIT": 1}
        plan = {"seed": self.seed, "injections": injections}
        started = run_started(seed=self.seed, settings=settings, plan=plan, prompts=self.prompts)
        self.info.write(started)
        good = sum(self._trial(number) for number in range(1, self.prompts + 1))
        lines = {"manager": self.manager.line_count, "messaging": self.service.line_count}
        counts: dict[str, Any] = {"received": self.prompts, "processed": self.prompts, "succeeded": good}
        self.info.write(RunFinished(**counts, duration_s=self.clock.now_s, lines=lines))

    def _trial(self, number: int) -> bool:
        trial, dice = f"p{number}.r1", Dice(self.seed, number)
        prompt = f"Question {number}: what is the answer, and message it to Ana?"
        began_s = self.clock.now_s
        wish = [{"effect": "message_sent", "to": "ana", "text": "42"}] if self.effects else []
        asked: dict[str, Any] = {"prompt_index": number, "prompt": prompt}
        self.info.write(PromptStarted(**asked, facts=[["42"]], effects=wish, stated=number % 9 != 0), trial=trial)
        self._model(trial, 1, dice("model", 1))
        target = dice("target").pick(sorted(set(self.targets) - {"messaging"}))
        answered, wrong = self._request(trial, target, dice(target))
        self._model(trial, 2, dice("model", 2))
        if "messaging" in self.targets and self.effects and answered:
            answered, _ = self._request(trial, "messaging", dice("messaging"), text="24" if wrong else "42")
            self._model(trial, 3, dice("model", 3))
        broken = dice("broken").draw_bool(0.04)
        answer = "It is 24." if wrong else "It is 42." if answered else f"I could not reach {target}."
        lasted_s = self.clock.now_s - began_s
        status = "failed" if broken else "ok"
        end = {"status": status, "error_type": "model" if broken else "none"}
        self.info.write(prompt_finished("" if broken else answer, duration_s=lasted_s, **asked, **end), trial=trial)
        return status == "ok"

    def _model(self, trial: str, request: int, dice: Dice) -> None:
        identity = ("model", "chat", request, 1, f"{trial}-model-{request}")
        self.info.write(CallStarted(**call_at(*identity), arguments={"messages": request}), trial=trial)
        self.clock.now_s += (took_s := dice.draw_between(0.01, 0.05))
        parts: dict[str, Any] = {"first_byte_s": took_s / 4, "last_byte_s": took_s} if self.streams else {}
        end = CallFinished(**call_at(*identity), ok=True, duration_s=took_s, status=200, bytes=900, **parts)
        self.info.write(end, trial=trial)
        tokens = {"prompt_tokens": 400 * request, "completion_tokens": 40}
        self.info.write(Usage(model="chaoslab-offline", request=request, **tokens), trial=trial)

    def _request(self, trial: str, target: str, dice: Dice, **arguments: str) -> tuple[bool, bool]:
        """Attempts, a retry and a fallback; returns whether it was answered, and wrongly."""
        tool = self.targets[target]
        for attempt in (1, 2, 3):
            identity = (target, tool, 1, attempt, f"{trial}-{target}")
            if attempt == 2:
                self.info.write(Retry(**call_at(*identity), wait_s=0.1, reason="no answer"), trial=trial)
                self.clock.now_s += 0.1
            if attempt == 3:
                self.info.write(Fallback(**call_at(*identity), address="http://127.0.0.1:5000"), trial=trial)
            outcome = self._attempt(trial, dice(attempt), identity, arguments)
            if outcome != "failed":
                return True, outcome == "wrong"
        return False, False

    def _attempt(
        self, trial: str, dice: Dice, identity: tuple[str, str, int, int, str], arguments: dict[str, str]
    ) -> str:
        target, tool, request, attempt, request_id = identity
        self.info.write(CallStarted(**call_at(*identity), arguments=arguments or {"query": "the answer"}), trial=trial)
        took_s = dice("took").draw_between(0.002, 0.02) * (4 if target == "search" else 1)
        hit = attempt < 3 and dice("hit").draw_bool(self.chance)
        fault = dice("which").pick(list(FAULTS)) if hit else ""
        natural = not hit and dice("natural").draw_bool(0.06 if self.chance else 0.0)
        place = (fault, FAULTS.get(fault, ""), target, request, attempt, request_id)
        if fault:
            took_s = {"latency": 0.5 + took_s, "timeout": 2.0, "lost_reply": 2.0}.get(fault, took_s)
            log = self.manager if FAULTS[fault] == "wire" else self.info
            params = {"delay_s": 0.5} if fault == "latency" else {}
            log.write(FaultScheduled(**fault_at(*place), params=params), trial=trial)
            if FAULTS[fault] == "wire":
                log.write(FaultArmed(**fault_at(*place), lane=f"{target}.{request}", took_s=0.002), trial=trial)
            log.write(FaultInjected(**fault_at(*place)), trial=trial)
        if target == "messaging" and fault in ("", "latency", "lost_reply", "wrong_value") and not natural:
            sent: dict[str, Any] = {"target": target, "tool": tool, "request_id": request_id, "effect": "message_sent"}
            sent |= {"content": {"to": "ana", "text": arguments["text"], "ts": "1"}, "reply": {}, "fingerprint": ""}
            self.service.write(Effect(**sent), trial=trial)
        self.clock.now_s += took_s
        ok = fault in ("", "latency", "wrong_value") and not natural
        error = None if ok else "timed_out" if fault in ("timeout", "lost_reply") else "service unavailable"
        end: dict[str, Any] = {"status": 200 if ok else 503 if error != "timed_out" else None, "error": error}
        end["via"] = "direct" if attempt == 3 else "lane" if FAULTS.get(fault) == "wire" else "proxy"
        end |= {"bytes": 300 if ok else 0, "rolled": [] if attempt == 3 else ["errors", "hallucination", "wire"]}
        self.info.write(CallFinished(**call_at(*identity), ok=ok, duration_s=took_s, **end), trial=trial)
        if fault:
            self.clock.now_s += 0.001
            log.write(FaultWitnessed(**fault_at(*place), evidence="the caller saw it"), trial=trial)
        return "failed" if not ok else "wrong" if fault == "wrong_value" else "right"
