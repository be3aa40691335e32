"""Checks the arguments of `run` before anything is started, and makes the run of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from chaoslab.base.clock import iso
from chaoslab.base.identity import digest
from chaoslab.base.jsonable import to_jsonable
from chaoslab.base.parsers import moment
from chaoslab.config.limits import limited
from chaoslab.config.settings import DEFAULT_NOW
from chaoslab.core.conversation import Conversation
from chaoslab.core.inject import check
from chaoslab.core.limits import all_of, check_targets
from chaoslab.core.plan import Injection, Plan
from chaoslab.execution import _validation
from chaoslab.execution.agents import _says
from chaoslab.execution.agents._case import AgentCase
from chaoslab.execution.agents._run import WORLDS, AgentSpec
from chaoslab.execution.agents.functions import name_of
from chaoslab.execution.forked import can_limit_memory
from chaoslab.execution.options import RunArguments, RunOptions
from chaoslab.execution.upstreams import check_clocks, check_hosts, check_refusing
from chaoslab.model.formats import with_objects
from chaoslab.record.runs import Run
from chaoslab.seams import adapters
from chaoslab.seams.services.refusals import check as check_services

IN_OTHER_FORM = frozenset({"faults", "judge", "logs", *(each.name for each in fields(AgentCase))})
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
class Ground:
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

    @classmethod
    def of(cls, run: AgentSpec) -> "Ground":
        """That of a run which was checked."""
        names = _validation.names_of(run.tools, run.reads, {**run.services, **run.upstreams})
        turns = run.prompt.most if isinstance(run.prompt, Conversation) else 1
        return cls(names, run.services, run.upstreams, run.models, turns, run.options.world, _is_mortal(run.options))

    @property
    def there(self) -> dict[str, Any]:
        """The services and those behind a gateway."""
        return {**self.services, **self.upstreams}

    def checked(self, faults: Iterable[Injection]) -> tuple[Injection, ...]:
        """The injections, if each can hit its targets here. Raises ValueError, LookupError: one cannot; the message is
        one line."""
        found = check(
            faults,
            self.names,
            turns=self.turns,
            models=self.models,
            functions=[name for name in self.names if name not in self.there],
            objects=[name for name in self.models if with_objects(name)],
            mortal=self.mortal,
        )
        check_services(found, self.there)
        _validation.check_lost(found, self.services)
        check_refusing(found, self.upstreams)
        if self.world != "virtual":
            check_clocks(found)
        return found


def checked(asked: RunArguments) -> tuple[AgentSpec, bool, Path | None]:
    """The run, True if it is compared with a twin, and the folder of its logs. Raises ValueError, LookupError,
    TypeError: an argument is invalid; the message is one line."""
    adapters.adapters.cache_clear()  # one may have been installed since the last run, in a notebook
    tools, reads = _validation.functions("tools", asked.tools), _validation.functions("reads", asked.reads)
    faults = _validation.a_list("faults", asked.faults, '[lab.inject("latency", "refund")]')
    services = _validation.services(asked.services)
    world, prompt, deadline_s = asked.world, asked.prompt, asked.deadline_s
    _check_world(world, services)
    _validation.check_elsewhere(asked.elsewhere, world)
    asked.check()
    if asked.logs is None and asked.keep != RunOptions.__dataclass_fields__["keep"].default:
        raise ValueError("keep= is about logs, and none are written: give logs= too")
    if asked.memory_mb is not None and not (asked.isolate and can_limit_memory()):
        raise ValueError("memory_mb= needs isolate='fork' on Linux: only a process of its own has a memory of its own")
    for name in ("now", "order") if world != "virtual" else ():
        if getattr(asked, name) != RunOptions.__dataclass_fields__[name].default:
            raise ValueError(f"{name}= needs world='virtual', whose clock and whose order are the lab's")
    upstreams = _validation.upstreams(asked.upstreams, world, isolate=_validation.isolated(asked.isolate))
    there = {**services, **upstreams}
    _validation.agent(asked.agent)
    names = _validation.names_of(tools, reads, there)
    models = _validation.models(asked.models, there)
    turns, words = 1, str(prompt)
    if isinstance(prompt, Conversation):
        turns, words = prompt.most, repr(prompt)
        deadline_s += prompt.waits_s
    if asked.resume_with is not None:
        _validation.agent(asked.resume_with, "resume_with")
        if world != "virtual":
            raise ValueError("resume_with= needs world='virtual': in real time, chaoslab exec has --resume-with")
    ground = Ground(names, services, upstreams, models, turns, world, _is_mortal(asked))
    plan = limited(Plan(asked.seed, ground.checked(faults), all_of(asked.limits) if asked.limits is not None else ()))
    check_hosts(plan, upstreams)
    if not there and asked.limits is not None:  # a service may have tools of other names
        check_targets(all_of(asked.limits), names)
    effects = None
    if asked.effects is not None:
        named = {name_of(function): function for function in tools}
        effects = _validation.effects(asked.effects, named, of_services=bool(there))
    acting = [name_of(function) for function in tools]
    _says.check(asked.says, acting, of_services=bool(there))
    for where, named_ in (
        ("undoes", [*(asked.undoes or {}), *(asked.undoes or {}).values()]),
        ("idempotent", asked.idempotent),
    ):
        _validation.check_effects(where, named_ or (), acting, of_services=bool(there))
    facts, twin = _validation.facts(asked.facts), asked.twin
    if twin is not None and not isinstance(twin, bool):
        raise TypeError(f"twin is {_validation.shown(twin)}: it should be True, False or None")
    if twin and effects is not None and facts:
        raise ValueError(
            "twin=True compares with a run without faults, and effects and facts state all that is right: leave one "
            "of them out"
        )
    ignore, raises = _validation.ignored(asked.ignore, [*tools, *reads]), asked.raises
    name = digest(
        [
            plan.to_json(), words, names, asked.timeout_s, deadline_s, facts, to_jsonable(effects), world,
            asked.calls_max, *([asked.elsewhere] if asked.elsewhere != "refuse" else ()),
            *([sorted(ignore), to_jsonable(raises)] if ignore or raises else ()), *_others(asked),
        ]
    )  # fmt: skip
    state = _validation.state(asked.state)
    wants_twin = (effects is None and world == "virtual") if twin is None else twin
    if state is not None and not wants_twin:
        raise ValueError("state= is compared with a run without faults: it needs twin=True, which this run has not")
    _validation.raises(raises, [name_of(function) for function in (*tools, *reads)])
    spec = AgentSpec(
        asked.agent, prompt, tools, reads, plan, f"py{asked.seed}-{name}",
        iso(datetime.fromisoformat(moment(asked.now or DEFAULT_NOW))), deadline_s, services, effects, facts,
        stated=effects is not None or bool(facts),
        models=models,
        ignore=ignore,
        upstreams=upstreams,
        options=_rest(asked),
    )  # fmt: skip
    if asked.logs is not None:
        Run.prepare(Path(asked.logs))
    return spec, wants_twin, None if asked.logs is None else Path(asked.logs)


def _rest(asked: RunArguments) -> RunOptions:
    """The options that the run holds as they are."""
    return RunOptions(
        **{each.name: getattr(asked, each.name) for each in fields(RunOptions) if each.name not in IN_OTHER_FORM}
    )


def _others(asked: RunArguments) -> list[list[Any]]:
    """The options that the run's name holds by name if they are given."""
    return [
        [each.name, to_jsonable(value)]
        for each in fields(RunOptions)
        if each.name not in NAMED | NOT_NAMED and (value := getattr(asked, each.name)) != each.default
    ]


def _is_mortal(options: RunOptions) -> bool:
    return options.world == "virtual" and (options.resume_with is not None or not options.resumes)


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
