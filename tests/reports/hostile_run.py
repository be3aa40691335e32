"""A run whose agent, tools and faults say what could do harm in a report: markup, escapes, halves of characters."""

from pathlib import Path

from chaoslab.core.events import (
    CallFinished,
    CallStarted,
    Effect,
    FaultInjected,
    FaultScheduled,
    FaultWitnessed,
    PromptStarted,
    RunFinished,
)
from chaoslab.record.log import Log
from tests.event_parts import call_at, fault_at, prompt_finished, run_started
from tests.reports.fake_run import ScriptedClock

SCRIPT = "</script><script>document.title='owned'</script>"
IMAGE = '"><img src=x onerror="document.title=1">'
STEERS = "\x1b[31mred\x1b[0m \u2028 \u202e \ud800 \x00 | `tick` @everyone"
FORMULA = '=HYPERLINK("javascript:alert(1)")'
TARGET = "tool'>"


def write(folder: Path, *, trials: int = 2) -> Path:
    """Writes the run into the folder. Its first trial does an effect twice, the others end well."""
    clock = ScriptedClock()
    with (
        Log(folder, "info", run="hostile", origin=0.0, clock=clock) as log,
        Log(folder, "service", run="hostile", origin=0.0, clock=clock) as service,
    ):
        injection = {"name": SCRIPT, "choices": [{"fault": IMAGE}], "targets": [TARGET], "chance": 1.0}
        log.write(
            run_started(plan={"seed": 1, "injections": [injection]}, prompts=trials, model=SCRIPT)
        )  # fmt: skip
        for number in range(1, trials + 1):
            _trial(log, service, clock, number)
        log.write(RunFinished(received=trials, processed=trials, succeeded=trials, duration_s=clock.now_s))
    return folder


def _trial(log: Log, service: Log, clock: ScriptedClock, number: int) -> None:
    trial, prompt = f"p{number}.r1", f"{number} {SCRIPT} {STEERS}"
    at = call_at(TARGET, FORMULA, 1, 1, f"{trial}-1")
    place = fault_at(IMAGE, SCRIPT, TARGET, 1, 1, f"{trial}-1")
    wish = [{"effect": "paid", "to": "ana"}]
    log.write(
        PromptStarted(prompt_index=number, prompt=prompt, facts=[["done"]], effects=wish, stated=True), trial=trial
    )
    log.write(CallStarted(**at, arguments={"a": IMAGE, "b": STEERS}), trial=trial)
    log.write(FaultScheduled(**place), trial=trial)
    log.write(FaultInjected(**place), trial=trial)
    for nth in range(2 if number == 1 else 1):
        clock.now_s += 0.25
        service.write(
            Effect(
                target=TARGET, tool=FORMULA, request_id=f"{trial}-{nth}", effect="paid",
                content={"to": "ana", "note": SCRIPT}, reply={}, fingerprint="",
            ),
            trial=trial,
        )  # fmt: skip
    log.write(
        CallFinished(**at, ok=False, duration_s=0.25, status=500, error=IMAGE, reply=SCRIPT + STEERS), trial=trial
    )
    log.write(FaultWitnessed(**place, evidence=SCRIPT, changed=STEERS), trial=trial)
    log.write(
        prompt_finished(f"{FORMULA} done {IMAGE} {STEERS}", prompt_index=number, prompt=prompt, duration_s=0.5),
        trial=trial,
    )  # fmt: skip
