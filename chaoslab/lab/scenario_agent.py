"""The lab's own agent in a scenario: `agent: lab`. It has the ten tools of the lab and the offline model."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from chaoslab.base import extras
from chaoslab.base.registry import suggest_name
from chaoslab.config.topology import MODEL, SERVICES
from chaoslab.core.fault import get_trait, load_fault
from chaoslab.core.inject import check_injections as check_targets
from chaoslab.core.plan import Injection
from chaoslab.execution.options import get_scenario_key, iterate_scenario_options
from chaoslab.scenarios.lab_agent import Say
from chaoslab.scenarios.scenario import BUDGET

if TYPE_CHECKING:
    from chaoslab.execution.exploring import SearchSession
    from chaoslab.execution.trial import Trial
    from chaoslab.scenarios.scenario import Scenario
    from chaoslab.scenarios.spec import ScenarioSpec

TARGETS = (*SERVICES, MODEL)
"""The services that its faults may hit."""
TWIN = "same_as_twin"
HAS_ITS_OWN = "it has tools and services of its own"
OF_THE_LAB = ("faults", "limits", "seed", "world", "timeout", "deadline", "effects", "facts", "judge")
"""The options that a scenario with the lab's agent may have. It has none of the others."""
NOT_OF_THE_LAB = {
    "state": "its services tell their effects; state effects or facts",
    **dict.fromkeys(
        ("isolate", "elsewhere", "calls_max", "model_calls_max", "settle", "now", "order", "memory_mb", "files"),
        "that is for an agent of yours",
    ),
}
"""The reason why not, if it is another than `HAS_ITS_OWN`."""


def check_scenario(spec: ScenarioSpec, say: Say) -> None:
    """Tells the keys that do not go with the lab's agent, and effects that no service of its can have."""
    if spec.world != "virtual":
        text = "each trial has a plan and a twin of its own, which the processes of the real lab have not"
        say(("world",), f"the agent is the lab's own: {text}; leave world out, or use chaoslab lab WORLD={spec.world}")
    for key in map(get_scenario_key, iterate_scenario_options()):
        value = getattr(spec, key) != type(spec).model_fields[key].get_default(call_default_factory=True)
        if value and key not in OF_THE_LAB:
            say((key,), f"the agent is the lab's own: {NOT_OF_THE_LAB.get(key, HAS_ITS_OWN)}")
    for n, value in enumerate(spec.expect):
        if value == TWIN or (isinstance(value, Mapping) and TWIN in value):
            text = (
                f"{TWIN} compares the services' own ids too, which differ; leave it out, the outcome compares all else"
            )
            say(("expect", n), f"the agent is the lab's own: {text}")
    effect_names = _list_effect_names() if spec.effects else []
    for n, effect in enumerate(spec.effects or ()):
        name = str(effect.get("effect", ""))
        if name not in effect_names:
            say(("effects", n), f"no effect is called '{name:.60}': {suggest_name(name, effect_names)}")


def _list_effect_names() -> list[str]:
    from chaoslab.flask_tools.service_module import ServiceModule

    tools = [tool for name in SERVICES for tool in ServiceModule.load(name).service.tools]
    return [tool.effect for tool in tools if tool.effect]


def check_faults(injections: Sequence[Injection], say: Say, *, turns: int) -> None:
    """Tells the faults that its services cannot meet in a conversation of so many turns."""
    for n, injection in enumerate(injections):
        if wrong := _explain_unfit_fault(injection, turns):
            say(("faults", n), wrong)


def _explain_unfit_fault(injection: Injection, turns: int) -> str:
    try:
        check_targets([injection], TARGETS, turns=turns, models=[MODEL])
    except (LookupError, ValueError) as error:
        return str(error.args[0])
    for choice in injection.choices:
        cls = load_fault(choice.fault)
        if get_trait(cls, "of_process"):
            return f"{choice.fault} stops the process of a service, and those of the lab's agent are not processes"
        if get_trait(cls, "of_clock"):
            return f"{choice.fault} moves the clock of a function or of services=, and the lab's agent has neither"
        tools = [name for name in SERVICES if injection.covers(name)]
        if tools and (cls.layer == "stream" or get_trait(cls, "refuses_at") == "handshake"):
            inability = "streams no answer" if cls.layer == "stream" else "speaks no TLS"
            return f"{choice.fault} cannot hit {tools[0]}, which {inability}: aim it at {MODEL}"
    return ""


def run_trials(
    scenario: Scenario,
    numbers: Sequence[int],
    *,
    seed: int,
    jobs: int,
    logs: Path | None,
    apart: bool,
    keep: str = "all",
) -> Generator[Trial, None, None]:
    """The trials with these numbers, from 0."""
    extras.require_extras("agent: lab", "tools", "agent")
    from chaoslab.lab._lab_trials import run_lab_trials

    spec = scenario.spec
    fields_given = spec.model_fields_set
    return run_lab_trials(
        scenario.prompt,
        numbers,
        faults=scenario.injections,
        seed=seed,
        jobs=jobs,
        logs=logs,
        effects=spec.effects,
        facts=[list(fact) for fact in spec.facts] or None,
        timeout_s=spec.timeout if "timeout" in fields_given else None,
        deadline_s=spec.deadline if "deadline" in fields_given else None,
        drawn=partial(scenario.draw_plan, seed) if scenario.spaces else None,
        limit_s=spec.real_limit if apart else None,
        limits=getattr(spec, "limits"),  # noqa: B009 - a key that the options bring
        keep=keep,
    )


@contextmanager
def open_search_session(
    scenario: Scenario, *, seed: int, jobs: int, fails: Callable[[Trial], str]
) -> Iterator[SearchSession]:
    """A context with the trials of a search, without the scenario's faults."""
    extras.require_extras("agent: lab", "tools", "agent")
    from chaoslab.execution.exploring import open_subject_search
    from chaoslab.lab._lab_trials import make_search_subject

    spec = scenario.spec
    fields_given = spec.model_fields_set
    search_subject = make_search_subject(
        scenario.prompt,
        TARGETS,
        _check_explored_injection,
        seed=seed,
        effects=spec.effects,
        facts=[list(fact) for fact in spec.facts] or None,
        timeout_s=spec.timeout if "timeout" in fields_given else None,
        deadline_s=spec.deadline if "deadline" in fields_given else None,
    )
    standing = [injection for injection in scenario.injections if injection.name == BUDGET]
    with open_subject_search(search_subject, fails, standing, jobs=jobs, limit_s=spec.real_limit) as trials:
        yield trials


def _check_explored_injection(injection: Injection) -> None:
    if wrong := _explain_unfit_fault(injection, 1):
        raise ValueError(wrong)
    if injection.layer == "stream":
        raise ValueError(f"{injection.choices[0].fault} cuts a stream, and the agent is explored without streams")
