"""Checks the arguments of `run` before anything is started, and makes the run of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from chaoslab.base.clock import format_iso
from chaoslab.base.identity import hash_value
from chaoslab.base.jsonable import repr_one_line, to_jsonable
from chaoslab.base.parsers import parse_moment
from chaoslab.config.limits import add_environment_limits
from chaoslab.config.settings import DEFAULT_NOW
from chaoslab.core.conversation import Conversation
from chaoslab.core.inject import check_injections
from chaoslab.core.limits import check_targets, parse_limits
from chaoslab.core.plan import Injection, Plan
from chaoslab.execution import _validation
from chaoslab.execution.agents import _says
from chaoslab.execution.agents._case import AgentCase
from chaoslab.execution.agents._run import WORLDS, AgentSpec
from chaoslab.execution.agents.functions import ProcessAgent, check_agent, get_function_name
from chaoslab.execution.forked import can_limit_memory
from chaoslab.execution.options import RunArguments, RunOptions
from chaoslab.execution.upstreams import check_allowed_hosts, check_no_clock_faults, check_no_refusing_faults
from chaoslab.execution.workspace import parse_folder
from chaoslab.model.formats import has_object_arguments
from chaoslab.record.runs import Run
from chaoslab.seams import adapters
from chaoslab.seams.services.refusals import check_refusal_conditions as check_services

IN_OTHER_FORM = frozenset({"faults", "judge", "logs", *(option.name for option in fields(AgentCase))})
"""The options that a run holds in another form, or not at all."""
NAMED = frozenset({"seed", "timeout_s", "deadline_s", "facts", "effects", "world", "calls_max", "elsewhere", "ignore",
                   "raises", "faults", "limits"})  # fmt: skip
"""The options that the run's name holds in a place of their own."""
NOT_NAMED = frozenset(
    {
        "tools",
        "reads",
        "services",
        "upstreams",
        "models",
        "isolate",
        "files",
        "judge",
        "logs",
        "keep",
        "state",
        "twin",
        "anyway",
        "real_limit_s",
    }
)
"""The options that do not change the run's name: their names do, or nothing does. All others do."""


@dataclass(frozen=True)
class RunTargets:
    """All that an injection of a run may hit. `names`: its functions and services. `turns`: of its
    conversation."""

    names: Sequence[str]
    services: Mapping[str, Any]
    upstreams: Mapping[str, Any]
    models: Sequence[str]
    turns: int
    world: str
    mortal: bool = False
    """The agent can be killed, and something goes on."""
    wishes: int = 1

    @classmethod
    def from_spec(cls, run: AgentSpec) -> "RunTargets":
        """That of a run which was checked."""
        names = _validation.collect_target_names(
            run.tools, run.reads, {**run.services, **run.upstreams}, machine=_has_virtual_files(run.options)
        )
        turns = run.prompt.turn_count_max if isinstance(run.prompt, Conversation) else 1
        return cls(
            names,
            run.services,
            run.upstreams,
            run.models,
            turns,
            run.options.world,
            _can_be_killed(run.agent, run.options),
            run.options.wishes,
        )

    @property
    def services_and_upstreams(self) -> dict[str, Any]:
        """The services and those behind a gateway."""
        return {**self.services, **self.upstreams}

    def check_injections(self, faults: Iterable[Injection]) -> tuple[Injection, ...]:
        """The injections, if each can hit its targets here. Raises ValueError, LookupError: one cannot; the message is
        one line."""
        injections = check_injections(
            faults,
            self.names,
            turns=self.turns,
            models=self.models,
            functions=[name for name in self.names if name not in self.services_and_upstreams],
            objects=[name for name in self.models if has_object_arguments(name)],
            mortal=self.mortal,
            user=None,
        )
        for injection, fault, params in ((i, choice.fault, choice.params) for i in injections for choice in i.choices):
            if fault == "user_stops" and any(map(injection.covers, self.upstreams)):
                raise ValueError(
                    f"{injection.name} is at a service in real time: aim it at a function, or use services="
                )
            if params.get("say") and injection.chance < 1:
                raise ValueError(f"{injection.name} has say, and its twin is asked that: leave chance out")
            is_wished = fault == "event_twice" and self.wishes > 1
            # The trials share the twin, in which no other fault hits.
            if is_wished and (injection.chance < 1 or len(injection.choices) > 1 or "after" in injection.triggers):
                raise ValueError(
                    f"with wishes, the twin of {injection.name} is asked twice too: leave chance, after and other "
                    "choices out"
                )
            if (approval := str(params.get("approval", ""))) and not injection.covers(approval):
                raise ValueError(
                    f"{injection.name} has approval {approval!r}, which is none of its targets: name it too"
                )
        check_services(injections, self.services_and_upstreams)
        _validation.check_services_resettable(injections, self.services)
        check_no_refusing_faults(injections, self.upstreams)
        if self.world != "virtual":
            check_no_clock_faults(injections)
        return injections


def build_agent_spec(arguments: RunArguments) -> tuple[AgentSpec, bool, Path | None]:
    """The run, True if it is compared with a twin, and the folder of its logs. Raises ValueError, LookupError,
    TypeError: an argument is invalid; the message is one line."""
    adapters.load_adapters.cache_clear()  # one may have been installed since the last run, in a notebook
    tools, reads = (
        _validation.parse_tool_list("tools", arguments.tools),
        _validation.parse_tool_list("reads", arguments.reads),
    )
    faults = _validation.require_list("faults", arguments.faults, '[lab.inject("latency", "refund")]')
    services = _validation.parse_services(arguments.services)
    world, prompt, deadline_s = arguments.world, arguments.prompt, arguments.deadline_s
    _check_world(world, services)
    _validation.check_elsewhere_option(arguments.elsewhere, world)
    arguments.check_values()
    if arguments.logs is None and arguments.keep != RunOptions.__dataclass_fields__["keep"].default:
        raise ValueError("keep= is about logs, and none are written: give logs= too")
    if arguments.files is not None:
        isolate = arguments.isolate or ("fork" if world == "virtual" else None)
        arguments = replace(arguments, files=str(parse_folder(arguments.files)), isolate=isolate)
    if arguments.memory_mb is not None and not (arguments.isolate and can_limit_memory()):
        raise ValueError("memory_mb= needs isolate='fork' on Linux: only a process of its own has a memory of its own")
    for name in ("now", "order") if world != "virtual" else ():
        if getattr(arguments, name) != RunOptions.__dataclass_fields__[name].default:
            raise ValueError(f"{name}= needs world='virtual', whose clock and whose order are the lab's")
    upstreams = _validation.parse_upstreams(
        arguments.upstreams, world, isolate=_validation.parse_isolate_option(arguments.isolate)
    )
    all_services = {**services, **upstreams}
    check_agent(arguments.agent)
    names = _validation.collect_target_names(tools, reads, all_services, machine=_has_virtual_files(arguments))
    has_files = arguments.files is not None
    models = _validation.parse_model_services(arguments.models, all_services)
    turns, prompt_text = 1, str(prompt)
    if isinstance(prompt, Conversation):
        turns, prompt_text = prompt.turn_count_max, repr(prompt)
        deadline_s += prompt.total_wait_s
    if arguments.resume_with is None and arguments.resumes > 1:
        raise ValueError(f"resumes={arguments.resumes} is how often resume_with goes on: give resume_with=, too")
    if arguments.resume_with is not None:
        check_agent(arguments.resume_with, "resume_with")
        if world != "virtual" and not isinstance(arguments.agent, ProcessAgent):
            raise ValueError("resume_with= needs world='virtual': in real time, chaoslab exec has --resume-with")
    ground = RunTargets(
        names,
        services,
        upstreams,
        models,
        turns,
        world,
        _can_be_killed(arguments.agent, arguments),
        arguments.wishes,
    )
    plan = add_environment_limits(
        Plan(
            arguments.seed,
            ground.check_injections(faults),
            parse_limits(arguments.limits) if arguments.limits is not None else (),
        )
    )
    check_allowed_hosts(plan, upstreams)
    if not all_services and arguments.limits is not None:  # a service may have tools of other names
        check_targets(parse_limits(arguments.limits), names)
    effects, has_others = None, bool(all_services) or has_files
    if arguments.effects is not None:
        tools_by_name = {get_function_name(function): function for function in tools}
        effects = _validation.parse_effects(arguments.effects, tools_by_name, of_services=has_others)
    tool_names = [get_function_name(function) for function in tools]
    if effects is not None and not isinstance(prompt, Conversation):
        is_repeated = any(choice.fault == "event_twice" for i in plan.injections for choice in i.choices)
        effects = [*effects] * (arguments.wishes if is_repeated else 1)
    _says.check_says_option(arguments.says, tool_names, of_services=has_others)
    for option, effect_names in (
        ("undoes", [*(arguments.undoes or {}), *(arguments.undoes or {}).values()]),
        ("idempotent", arguments.idempotent),
    ):
        _validation.check_effect_names(option, effect_names or (), tool_names, of_services=has_others)
    facts, twin = _validation.parse_facts(arguments.facts), arguments.twin
    if twin is not None and not isinstance(twin, bool):
        raise TypeError(f"twin is {repr_one_line(twin)}: it should be True, False or None")
    if twin and effects is not None and facts:
        raise ValueError(
            "twin=True compares with a run without faults, and effects and facts state all that is right: leave one "
            "of them out"
        )
    ignore, raises = _validation.parse_ignored_parameters(arguments.ignore, [*tools, *reads]), arguments.raises
    name = hash_value(
        [
            plan.to_json(),
            prompt_text,
            names,
            arguments.timeout_s,
            deadline_s,
            facts,
            to_jsonable(effects),
            world,
            arguments.calls_max,
            *([arguments.elsewhere] if arguments.elsewhere != "refuse" else ()),
            *([sorted(ignore), to_jsonable(raises)] if ignore or raises else ()),
            *_list_run_name_options(arguments),
        ]
    )
    state = _validation.check_state_function(arguments.state)
    wants_twin = (effects is None and (world == "virtual" or has_files)) if twin is None else twin
    if state is not None and not wants_twin:
        raise ValueError("state= is compared with a run without faults: it needs twin=True, which this run has not")
    _validation.check_raises_option(raises, [get_function_name(function) for function in (*tools, *reads)])
    spec = AgentSpec(
        arguments.agent,
        prompt,
        tools,
        reads,
        plan,
        f"py{arguments.seed}-{name}",
        format_iso(datetime.fromisoformat(parse_moment(arguments.now or DEFAULT_NOW))),
        deadline_s,
        services,
        effects,
        facts,
        stated=effects is not None or bool(facts),
        models=models,
        ignore=ignore,
        upstreams=upstreams,
        options=_copy_run_options(arguments),
    )
    if arguments.logs is not None:
        Run.prepare_logs_folder(Path(arguments.logs))
    return spec, wants_twin, None if arguments.logs is None else Path(arguments.logs)


def _copy_run_options(arguments: RunArguments) -> RunOptions:
    """The options that the run holds as they are."""
    return RunOptions(
        **{
            option.name: getattr(arguments, option.name)
            for option in fields(RunOptions)
            if option.name not in IN_OTHER_FORM
        }
    )


def _list_run_name_options(arguments: RunArguments) -> list[list[Any]]:
    """The options that the run's name holds by name if they are given."""
    return [
        [option.name, to_jsonable(value)]
        for option in fields(RunOptions)
        if option.name not in NAMED | NOT_NAMED and (value := getattr(arguments, option.name)) != option.default
    ]


def _can_be_killed(agent: Any, options: RunOptions) -> bool:
    has_process = options.world == "virtual" or isinstance(agent, ProcessAgent)
    return has_process and (options.resume_with is not None or not options.resumes)


def _has_virtual_files(options: RunOptions) -> bool:
    return options.world == "virtual" and options.files is not None


def _check_world(world: str, services: Mapping[str, Any]) -> None:
    if world == "compose":
        raise ValueError(
            "world='compose' is for the lab's own agent (chaoslab lab --world compose): functions cannot be moved "
            "into containers"
        )
    if world not in WORLDS:
        raise ValueError(f"world is {world!r}: it should be 'virtual' (a clock that jumps) or 'local' (real time)")
    if services and world != "virtual":
        raise ValueError("services stand on the virtual network: they need world='virtual'")
