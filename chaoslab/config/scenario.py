"""Makes a plan of the settings."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from chaoslab.base.registry import did_you_mean
from chaoslab.config.settings import SettingError, Settings
from chaoslab.config.topology import MODEL, SERVICES
from chaoslab.core import triggers
from chaoslab.core.fault import load
from chaoslab.core.plan import Choice, Injection, Plan, check_cascades

SETTINGS = {
    "wire": ("TOXICS", ("wire",)),
    "model_wire": ("TOXICS", ("wire",)),
    "errors": ("ERRORS", ("budget", "context", "meaning", "tool")),
    "stream": ("STREAM_FAULTS", ("stream",)),
}
"""Injection → (the setting that names its faults, the layers of these)."""


def from_settings(settings: Settings) -> Plan:
    """The plan that the settings describe. An injection that can never hit is left out.

    Raises:
        SettingError: a target that the table of services does not know, a plug-in's fault that cannot be used, or
            faults of streams where nothing is streamed.
    """
    if settings.stream_prob and settings.stream == "off":
        raise SettingError(
            f"STREAM_PROB={settings.stream_prob:g} needs STREAM=on, since without it no answer is streamed"
        )
    params: dict[str, dict[str, Any]] = {
        "latency": {"delay_s": settings.latency_ms / 1000, "jitter_s": settings.jitter_ms / 1000},
        "timeout": {"after_s": settings.timeout_ms / 1000},
    }

    def choices(weights: Iterable[tuple[str, float]]) -> tuple[Choice, ...]:
        return tuple(Choice(name, weight, params.get(name, {})) for name, weight in weights if weight)

    poisoned = _targets("TOXIC_TARGETS", settings.toxic_targets)
    failing = _targets("ERROR_TARGETS", settings.error_targets)
    wire = _triggers("TOXIC_TRIGGERS", settings.toxic_triggers)
    errors = _triggers("ERROR_TRIGGERS", settings.error_triggers)
    limits = {
        "tokens": settings.token_limit,
        "cost_usd": settings.cost_limit_in_force_usd,
        "calls": settings.call_limit,
        "seconds": settings.time_limit_s,
    }
    budget = {name: limit for name, limit in limits.items() if limit}
    injections = (
        Injection("wire", choices(settings.toxics), poisoned, settings.toxic_prob, *wire),
        Injection("model_wire", choices(settings.toxics), (MODEL,), settings.model_toxic_prob),
        Injection("errors", choices(settings.errors), failing, settings.error_prob, *errors),
        Injection("stream", choices(settings.stream_faults), (MODEL,), settings.stream_prob),
        Injection("hallucination", (Choice("wrong_value"),), failing, settings.hallucination_prob, *errors),
        Injection("context", (Choice("truncate_context"),), (MODEL,), settings.context_prob),
        Injection(
            "budget",
            (Choice("budget", 1.0, {**budget, "mode": settings.budget}),),
            (*SERVICES, MODEL),
            1.0 if budget else 0.0,
        ),
    )
    wanted = tuple(i for i in injections if i.chance > 0)
    for injection in wanted:
        _check(injection)
    try:
        check_cascades(wanted)
    except ValueError as error:
        raise SettingError(error.args[0]) from None
    return Plan(settings.seed, wanted)


def _triggers(setting: str, text: str) -> tuple[tuple[int, ...], dict[str, Any]]:
    """The request numbers and the other triggers that a setting states.

    Raises:
        SettingError: it is no such JSON, or one takes no such value.
    """
    should_be = 'JSON with triggers by name, as in {"max_times": 2, "tool": "get_*"}'
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise SettingError(f"{setting} is {text!r:.60}: it should be {should_be}") from None
    if not isinstance(found, dict):
        raise SettingError(f"{setting} is {text!r:.60}: it should be {should_be}")
    if "chance" in found:
        raise SettingError(f"{setting} has a chance: state it in {setting.removesuffix('TRIGGERS')}PROB")
    try:
        plain = {name: triggers.of(name, value, where=f" in {setting}").plain for name, value in found.items()}
    except (LookupError, ValueError) as error:
        raise SettingError(f"{setting}: {error.args[0]}" if isinstance(error, LookupError) else error.args[0]) from None
    return tuple(plain.pop("calls", ())), plain


def _check(injection: Injection) -> None:
    """Checks the injection's faults.

    Raises:
        SettingError: a fault cannot be used, or is of another layer than the setting that names it.
    """
    setting, layers = SETTINGS.get(injection.name, ("", ()))
    for choice in injection.choices:
        try:
            layer = load(choice.fault).layer
        except LookupError as error:
            raise SettingError(error.args[0]) from None
        if setting and layer not in layers:
            other = next(name for name, others in SETTINGS.values() if layer in others)
            raise SettingError(f"{setting} names '{choice.fault}', a fault of the layer {layer}: name it in {other}")
    try:
        injection.check(turns=1)
    except (LookupError, TypeError, ValueError) as error:
        raise SettingError(error.args[0]) from None


def _targets(setting: str, names: tuple[str, ...]) -> tuple[str, ...]:
    if names == ("all",):
        return tuple(SERVICES)
    for name in names:
        if name not in SERVICES:
            raise SettingError(f"{setting} names '{name}', which is no service: {did_you_mean(name, SERVICES)}")
    return names
