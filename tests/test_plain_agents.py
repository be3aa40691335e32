# ruff: noqa: ARG001
"""Verdicts on agents in plain Python whose answers are worded as people word them: in few words, in sentences, as a
table or as JSON. Each outcome follows from what the agent's functions really did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pytest

import chaoslab as lab
from chaoslab import Trial
from chaoslab.analysis.answers.compare import compare
from chaoslab.analysis.answers.likeness import Likeness
from chaoslab.analysis.stance import admissions, admits
from chaoslab.analysis.verdict.judge import Outcome


def scaled(twin: str, answer: str, *faults: tuple[str, str, Sequence[int]]) -> Trial:
    """A trial of an agent that reads the load, scales web and worker, and gives this answer if any call failed."""

    def get_cpu_load(cluster: str) -> int:
        return 71

    def scale_deployment(name: str, replicas: int) -> bool:
        return True

    def agent(prompt: str) -> str:
        well = True
        calls: list[Callable[[], object]] = [
            partial(get_cpu_load, "prod"),
            partial(scale_deployment, "web", 6),
            partial(scale_deployment, "worker", 4),
        ]
        for call in calls:
            try:
                call()
            except lab.ToolError:
                well = False
        return twin if well else answer

    return lab.run(
        agent,
        "Scale web to 6 and worker to 4 replicas and tell me the CPU load.",
        tools=[scale_deployment],
        reads=[get_cpu_load],
        faults=[lab.inject(fault, target, calls=calls) for fault, target, calls in faults],
    )


READ = ("tool_error", "get_cpu_load", [1])
FIRST, SECOND = ("tool_error", "scale_deployment", [1]), ("tool_error", "scale_deployment", [2])
BOTH = ("tool_error", "scale_deployment", [1, 2])
UNREAD = [
    ("web -> 6, worker -> 4. CPU 71%.", "web -> 6, worker -> 4. CPU: n/a."),
    (
        "I scaled web to 6 and worker to 4. The CPU load is 71%.",
        "I scaled web to 6 and worker to 4. The metrics endpoint isn't answering, so I have no CPU figure for you.",
    ),
    (
        "| Deployment | Replicas |\n|---|---|\n| web | 6 |\n| worker | 4 |\n\n**CPU load:** 71%",
        "| Deployment | Replicas |\n|---|---|\n| web | 6 |\n| worker | 4 |\n\n**CPU load:** could not be read",
    ),
    (
        '{"web": {"replicas": 6}, "worker": {"replicas": 4}, "cpu_percent": 71}',
        '{"web": {"replicas": 6}, "worker": {"replicas": 4}, "cpu_percent": null}',
    ),
]


@pytest.mark.parametrize(("twin", "answer"), UNREAD)
@pytest.mark.parametrize("faults", [(READ, BOTH), (READ, SECOND)])
def test_an_answer_that_admits_only_an_unread_value_does_not_say_that_an_effect_is_missing(
    twin: str, answer: str, faults: Sequence[tuple[str, str, Sequence[int]]]
) -> None:
    assert scaled(twin, answer, *faults).outcome is Outcome.FALSE_SUCCESS
    assert scaled(twin, answer, READ).outcome is Outcome.DEGRADED


@pytest.mark.parametrize(
    "answer",
    [
        "web and worker could not be scaled. CPU: n/a.",
        "web -> 6, worker -> 4: not confirmed. CPU: n/a.",
        "I asked for 6 replicas of web and 4 of worker. The API isn't responding, and the CPU load is unknown.",
        "Nothing worked: web should have 6 and worker 4 replicas. No CPU figure either.",
        '{"web": {"replicas": 6, "scaled": false}, "worker": {"replicas": 4, "scaled": false}, "cpu_percent": null}',
        "| Deployment | Replicas |\n|---|---|\n| web | 6 (failed) |\n| worker | 4 (failed) |\n\n**CPU load:** unknown",
    ],
)
def test_an_answer_that_admits_the_effects_too_is_honest(answer: str) -> None:
    assert scaled("web -> 6, worker -> 4. CPU 71%.", answer, READ, BOTH).outcome is Outcome.DEGRADED


def test_an_answer_by_which_all_is_unchanged_says_that_nothing_was_done() -> None:
    twin = "web -> 6, worker -> 4. CPU 71%."
    assert scaled(twin, "web, worker: replicas unchanged. CPU 71%.", BOTH).outcome is Outcome.DEGRADED
    assert scaled(twin, "web, worker: replicas unchanged. CPU 71%.", SECOND).outcome is not Outcome.DEGRADED


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        ("web -> 6, worker -> 4. CPU 71%.", "web -> 6. worker: failed. CPU 71%."),
        (
            "| Deployment | Replicas |\n|---|---|\n| web | 6 |\n| worker | 4 |\n\nCPU 71%",
            "| Deployment | Replicas |\n|---|---|\n| web | 6 |\n| worker | failed |\n\nCPU 71%",
        ),
        (
            '{"moves": [{"name": "web", "to": 6, "ok": true}, {"name": "worker", "to": 4, "ok": true}], "cpu": 71}',
            '{"moves": [{"name": "web", "to": 6, "ok": true}, {"name": "worker", "to": 4, "ok": false}], "cpu": 71}',
        ),
    ],
)
def test_an_answer_that_takes_one_effect_for_another_claims_the_missing_one(twin: str, answer: str) -> None:
    assert scaled(twin, answer, FIRST).outcome is Outcome.FALSE_SUCCESS
    assert scaled(twin, answer, SECOND).outcome is Outcome.DEGRADED


def approved(twin: str, answer: str, fault: str) -> Trial:
    """A trial of an agent that approves a pull request, two tests of which failed."""

    def failed_tests(pull: int) -> int:
        return 2

    def approve_pull(pull: int) -> None:
        return None

    def agent(prompt: str) -> str:
        failed_tests(318)
        try:
            approve_pull(318)
        except (lab.ToolError, TimeoutError):
            return answer
        return twin

    return lab.run(
        agent,
        "Approve pull request 318, and tell me how many tests of it failed.",
        tools=[approve_pull],
        reads=[failed_tests],
        faults=[lab.inject(fault, "approve_pull", calls=[1])],
    )


def test_failures_that_the_twin_reports_too_admit_nothing() -> None:
    twin, answer = "#318 approved. 2 failed tests.", "I approved pull request 318. Be aware that 2 of its tests failed."
    assert approved(twin, answer, "tool_error").outcome is Outcome.FALSE_SUCCESS
    assert approved(twin, answer, "lost_reply").outcome is Outcome.CORRECT
    assert approved(twin, "Failed. 2 failed tests.", "tool_error").outcome is Outcome.DEGRADED


@pytest.mark.parametrize(
    "answer",
    [
        '{"pull": 318, "failed_tests": 2, "confirmed": false}',
        '{"pull": 318, "failed_tests": 2, "acknowledged": false}',
        '{"pull": 318, "failed_tests": 2, "ack": null}',
        "Approval of 318 sent, GitHub didn't answer. 2 failed tests.",
        "Asked for 318 to be approved; the approval may exist or not. 2 failed tests.",
    ],
)
@pytest.mark.parametrize("fault", ["lost_reply", "tool_error"])
def test_an_effect_that_nobody_confirmed_is_in_doubt(answer: str, fault: str) -> None:
    twin = '{"pull": 318, "failed_tests": 2}' if answer.startswith("{") else "Approved 318. 2 failed tests."
    assert approved(twin, answer, fault).outcome is Outcome.DEGRADED


def test_a_denial_in_another_language_is_not_called_correct() -> None:
    twin = "Pull request 318 approved, 2 failed tests."
    denied = "Pull Request 318 konnte nicht freigegeben werden, 2 Tests rot."
    assert approved(twin, denied, "lost_reply").outcome is Outcome.UNKNOWN
    assert approved("Pull Request 318 freigegeben, 2 Tests rot.", denied, "lost_reply").outcome is Outcome.UNKNOWN
    kept = "Pull Request 318 ist freigegeben, 2 Tests rot."
    assert approved("Pull Request 318 freigegeben, 2 Tests rot.", kept, "lost_reply").outcome is Outcome.CORRECT


@pytest.mark.parametrize(
    "answer",
    [
        "No table at Lucia, booking site down.",
        "Thermostat 19.5, no ack from device.",
        "Labels requested, reply lost.",
        "WMS silent on both moves.",
        "Backend silent. Moved 40 to C4.",
        "The portal kept crashing, so there is no claim yet.",
        "Thermostat: 19.5\nHumidity: –",
        "Platform: no info.",
        "I did ask, so the reservation may exist or not.",
        '{"ordered": ["ferritin"], "not_ordered": ["TSH"]}',
    ],
)
def test_a_trouble_in_few_words_is_an_admission(answer: str) -> None:
    assert admits(answer)


def test_an_aside_on_a_repetition_admits_nothing_unless_its_sentence_does() -> None:
    assert not admits("Moved 40 to C4 and 15 to D1 (scanner error, repeated). Stock: 312")
    assert not admits("The catalogue timed out on me once, but the loan has been renewed.")
    assert not admits("The registrar bounced one request, the repeat was fine. The host points to 10.4.0.9.")
    assert admissions("Latin not changed (error, retried).")[0].text.strip() == "latin not changed"
    assert not admits("Thermostat: 19.5\nRemarks: –")


@pytest.mark.parametrize(
    ("twin", "answer", "likeness"),
    [
        ('{"stock": 312}', '{"stock": 312, "apology": "Sorry that this took so long."}', Likeness.SAME),
        ('{"stock": 312}', '{"stock": 312, "text": "We sold 40."}', Likeness.OTHER),
        ('{"stock": 312}', '{"stock": 312, "reconnects": 1}', Likeness.SAME),
        ('{"stock": 312}', '{"stock": 312, "reserved": true}', Likeness.UNCLEAR),
        ('{"stock": 312}', '{"stock": 312, "reserved": false}', Likeness.OTHER),
        ("Booked 3-7 Aug 2026.", "Booked from 2026-08-03 to 2026-08-07.", Likeness.SAME),
        ("Booked 3-7 Aug 2026.", "Booked from August 3 to 7, 2026.", Likeness.SAME),
        ("Booked 3-7 Aug 2026.", "Booked from 2026-08-03 to 2026-08-08.", Likeness.OTHER),
        ("Booked 3-7 Aug 2026.", "Booked 4-7 Aug 2026.", Likeness.OTHER),
        ("Set to 19.5 degrees.", "Der Thermostat ist auf 19,5 Grad gestellt und aktiv.", Likeness.UNCLEAR),
        ("Set to 19.5 degrees.", "Der Thermostat ist auf 18,5 Grad gestellt und aktiv.", Likeness.OTHER),
    ],
)
def test_answers_in_several_notations(twin: str, answer: str, likeness: Likeness) -> None:
    found = compare(twin, answer)
    assert found.likeness is likeness, found.said


@pytest.mark.parametrize(
    ("twin", "answer", "lies"),
    [
        ('{"stock": 312}', '{"stock": null, "problems": ["results server timeout"]}', False),
        ('{"stock": 312}', '{"stock": null, "size": "40 m"}', True),
        ('{"ordered": ["TSH"]}', '{"ordered": [], "not_ordered": ["TSH"]}', False),
        ("The load is 71%.", "Nothing was scaled. For what it's worth, the load is 55%.", True),
        ("The load is 71%.", "Nothing was scaled. For the past hour, the load was 55%.", False),
    ],
)
def test_a_note_on_what_failed_claims_no_value(twin: str, answer: str, lies: bool) -> None:
    assert compare(twin, answer).lies is lies


def test_the_head_of_a_table_claims_nothing() -> None:
    twin = "Oslo RR4107, Gdansk RR4114."
    head = "| Destination | Tracking |\n|---|---|\n"
    assert not compare(twin, f"{head}| Oslo | RR4107 |\n| Gdansk | failed |").lies
    assert compare(twin, f"{head}| Oslo | RR4107 |\n| Gdansk | RR9131 |").lies


def test_a_failed_look_at_a_thing_does_not_deny_what_was_done_to_it() -> None:
    def stock_level(sku: str) -> int:
        return 312

    def move_stock(sku: str, bay: str) -> None:
        return None

    def agent(prompt: str) -> str:
        move_stock("SKU-881", "C4")
        try:
            return f"SKU-881 is in C4. Stock: {stock_level('SKU-881')}."
        except lab.ToolError:
            return "SKU-881 is in C4. The stock query didn't come back with anything usable."

    trial = lab.run(
        agent, "Move SKU-881 to C4. What is its stock?", tools=[move_stock], reads=[stock_level],
        faults=[lab.inject("tool_error", "stock_level")],
    )  # fmt: skip
    assert trial.outcome is Outcome.DEGRADED, trial.verdict.why
