"""Makes a plan of the settings."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from chaoslab.base.registry import suggest_name
from chaoslab.config.limits import add_environment_limits
from chaoslab.config.settings import SettingError, Settings, read_variable
from chaoslab.config.topology import MODEL, SERVICES
from chaoslab.core import triggers
from chaoslab.core.fault import get_trait, load_fault
from chaoslab.core.inject import ENGINE_ALONE, explain_fault_unfit_for_model, explain_where_fault_works
from chaoslab.core.levels import level, network
from chaoslab.core.plan import Choice, Injection, Plan, check_after_references

OF_MODEL = ("stream", "context", "model")
"""The layers, and the families, of the model alone."""
SETTINGS = {
    "wire": ("TOXICS", ("wire",)),
    "model_wire": ("TOXICS", ("wire",)),
    "errors": ("ERRORS", ("budget", "context", "meaning", "tool")),
    "stream": ("STREAM_FAULTS", ("stream",)),
}
"""Injection → (the setting that names its faults, the layers of these)."""


def plan_from_settings(settings: Settings) -> Plan:
    """The plan that the settings describe. An injection that can never hit is left out. Raises SettingError: a target
    that the table of services does not know, a plug-in's fault that cannot be used, or faults of streams where nothing
    is streamed."""
    if settings.stream_prob and not settings.is_streaming:
        raise SettingError(f"STREAM_PROB={settings.stream_prob:g} needs STREAM=on: with off, no answer is streamed")
    params: dict[str, dict[str, Any]] = {
        "latency": {"delay_s": settings.latency_ms / 1000, "jitter_s": settings.jitter_ms / 1000},
        "timeout": {"after_s": settings.timeout_ms / 1000},
    }

    def make_choices(weights: Iterable[tuple[str, float]]) -> tuple[Choice, ...]:
        return tuple(Choice(name, weight, params.get(name, {})) for name, weight in weights if weight)

    poisoned = _resolve_targets("TOXIC_TARGETS", settings.toxic_targets)
    failing = _resolve_targets("ERROR_TARGETS", settings.error_targets)
    wire = _parse_triggers("TOXIC_TRIGGERS", settings.toxic_triggers)
    errors = _parse_triggers("ERROR_TRIGGERS", settings.error_triggers)
    limits = {
        "tokens": settings.token_limit,
        "cost_usd": settings.effective_cost_limit_usd,
        "calls_max": settings.call_limit,
        "seconds": settings.time_limit_s,
    }
    budget = {name: limit for name, limit in limits.items() if limit}
    injections = (
        Injection("wire", make_choices(settings.toxics), poisoned, settings.toxic_prob, *wire),
        Injection("model_wire", make_choices(settings.toxics), (MODEL,), settings.model_toxic_prob),
        Injection("errors", make_choices(settings.errors), failing, settings.error_prob, *errors),
        Injection("stream", make_choices(settings.stream_faults), (MODEL,), settings.stream_prob),
        Injection("hallucination", (Choice("wrong_value"),), failing, settings.hallucination_prob, *errors),
        Injection("context", (Choice("truncate_context"),), (MODEL,), settings.context_prob),
        Injection(
            "budget",
            (Choice("budget", 1.0, {**budget, "mode": settings.budget}),),
            (*SERVICES, MODEL),
            1.0 if budget else 0.0,
        ),
    )
    # This one is a model's API as it was measured, so no service stands behind it.
    line = (MODEL,) if settings.network == "production" else poisoned
    network_faults = () if settings.network == "off" else network(settings.network, line)
    further = (
        *_iterate_named_injections(settings, params),
        *_iterate_level_injections(settings, params),
        *network_faults,
    )
    in_force = tuple(i for i in (*injections, *further) if i.chance > 0)
    for injection in in_force:
        _check_injection(injection)
    try:
        check_after_references(in_force)
        return add_environment_limits(Plan(settings.seed, in_force))
    except ValueError as error:
        raise SettingError(error.args[0]) from None


Params = Mapping[str, Mapping[str, Any]]
"""Fault → its parameters that other settings state."""


def _iterate_named_injections(settings: Settings, params: Params) -> Iterator[Injection]:
    """The injections that FAULTS states."""
    for named, chance in settings.faults:
        fault, at, target = named.partition("@")
        try:
            cls = load_fault(fault)
        except LookupError as error:
            raise SettingError(error.args[0]) from None
        layer = cls.layer
        if fault == "budget":
            raise SettingError("FAULTS names budget, which has settings of its own: TOKEN_LIMIT, CALL_LIMIT and others")
        if at and target not in (*SERVICES, MODEL):
            raise SettingError(f"FAULTS names '{named}': {suggest_name(target, (*SERVICES, MODEL))}")
        of_model = layer in OF_MODEL or get_trait(cls, "of_model")
        if at and of_model and target != MODEL:
            raise SettingError(f"FAULTS names '{named}', and {fault} needs the model")
        if get_trait(cls, "of_tools") and target == MODEL:
            raise SettingError(f"FAULTS names '{named}': {explain_fault_unfit_for_model(fault, target)}")
        if layer == "stream" and chance and not settings.is_streaming:
            raise SettingError(f"FAULTS names {fault}, which needs STREAM=on: with off, no answer is streamed")
        if get_trait(cls, "refuses_at") == "handshake" and target != MODEL:
            raise SettingError(f"FAULTS names '{named}', and the tools speak no TLS: name {fault}@{MODEL}")
        if get_trait(cls, "of_process") and target == MODEL:
            raise SettingError(f"FAULTS names '{named}', and {fault} stops the process of a service, not of the model")
        if (where := explain_where_fault_works(fault)) and not (where == ENGINE_ALONE and settings.world == "compose"):
            raise SettingError(f"FAULTS names {fault}, which {where}")
        if get_trait(cls, "of_clock"):
            raise SettingError(f"FAULTS names {fault}, which moves the clock of a function or of services= in Python")
        targets = (target,) if at else (MODEL,) if of_model else tuple(SERVICES)
        yield Injection(named, (Choice(fault, 1.0, params.get(fault, {})),), targets, chance)


def _iterate_level_injections(settings: Settings, params: Params) -> Iterator[Injection]:
    """The injections of CHAOS_LEVEL, which hit the services and the model."""
    families = settings.chaos_families
    if settings.chaos_level and "stream" in families and not settings.is_streaming:
        raise SettingError("CHAOS_FAMILIES has stream, which needs STREAM=on: with off, no answer is streamed")
    # Faults of meaning change the answers of tools; a model has a family of its own for that.
    for targets, left_out in ((tuple(SERVICES), OF_MODEL), ((MODEL,), ("meaning",))):
        present = [name for name in families if name not in left_out]
        if present:
            injections = level(settings.chaos_level, targets, families=present, of_bytes=True)
            for injection in injections:
                choices = tuple(replace(choice, params=params.get(choice.fault, {})) for choice in injection.choices)
                name = f"{injection.name.partition(' on ')[0]} on {'the model' if MODEL in targets else 'services'}"
                yield replace(injection, name=name, choices=choices)


OF_PROCESSES = ("local", "compose")
"""The worlds in which each service is a process of its own."""


def check_world_supports_plan(chosen: Settings, plan: Plan) -> None:
    """Checks that the world can do what the plan asks of it. Raises SettingError: a fault stops a process where nobody
    can."""
    alone = chosen.world == "compose" and read_variable("STOPPER") == "none"
    if not plan.outage_targets or (chosen.world in OF_PROCESSES and not alone):
        return
    name = next(fault for fault, _ in chosen.faults if get_trait(load_fault(fault.partition("@")[0]), "of_process"))
    if alone:
        raise SettingError(
            f"FAULTS names '{name}', which stops a tool's process, and no container may do that to another: use "
            "`chaoslab lab WORLD=compose`, which does it from the host, or WORLD=local"
        )
    raise SettingError(
        f"FAULTS names '{name}', which stops a tool's process, and the virtual world has none: use WORLD=local or "
        "compose, or lab.inject with services= in Python"
    )


def _parse_triggers(setting: str, text: str) -> tuple[tuple[int, ...], dict[str, Any]]:
    """The request numbers and the other triggers that a setting states. Raises SettingError: it is no such JSON, or one
    takes no such value."""
    should_be = 'JSON with triggers by name, as in {"max_times": 2, "tool": "get_*"}'
    try:
        parsed = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise SettingError(f"{setting} is {text!r:.60}: it should be {should_be}") from None
    if not isinstance(parsed, dict):
        raise SettingError(f"{setting} is {text!r:.60}: it should be {should_be}")
    if "chance" in parsed:
        raise SettingError(f"{setting} has a chance: state it in {setting.removesuffix('TRIGGERS')}PROB")
    try:
        plain = {
            name: triggers.parse_trigger(name, value, where=f" in {setting}").value_as_json
            for name, value in parsed.items()
        }
    except (LookupError, ValueError) as error:
        # A ValueError's words have the setting already, by `where`; those of an unknown name have not.
        raise SettingError(f"{setting}: {error.args[0]}" if isinstance(error, LookupError) else error.args[0]) from None
    return tuple(plain.pop("calls", ())), plain


def _check_injection(injection: Injection) -> None:
    """Checks the injection's faults. Raises SettingError: a fault cannot be used, or is of another layer than the
    setting that names it."""
    setting, layers = SETTINGS.get(injection.name, ("", ()))
    for choice in injection.choices:
        try:
            layer = load_fault(choice.fault).layer
        except LookupError as error:
            raise SettingError(error.args[0]) from None
        if setting and layer not in layers:
            # met in the client, before any lane
            early = get_trait(load_fault(choice.fault), "refuses_at") != "connection"
            fitting = (
                "FAULTS"
                if early
                else next(name for name, setting_layers in SETTINGS.values() if layer in setting_layers)
            )
            raise SettingError(f"{setting} names '{choice.fault}', a fault of the layer {layer}: name it in {fitting}")
    try:
        injection.check(turns=1)
    except (LookupError, TypeError, ValueError) as error:
        raise SettingError(error.args[0]) from None


def _resolve_targets(setting: str, names: tuple[str, ...]) -> tuple[str, ...]:
    if names == ("all",):
        return tuple(SERVICES)
    for name in names:
        if name not in SERVICES:
            raise SettingError(f"{setting} names '{name}', which is no service: {suggest_name(name, SERVICES)}")
    return names
