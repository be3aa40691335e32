"""All that decides a run as text by name: its settings, and beside them its model, prompts, injections and code."""

import json
from collections.abc import Mapping
from typing import Any

from chaoslab.base.identity import digest
from chaoslab.core.events import RunStarted
from chaoslab.reports._columns import COLUMNS

WIRE = "wire"
"""The injection that TOXIC_PROB makes; the settings describe it completely."""
_OWN = frozenset(column.name for column in COLUMNS["runs"])


def settings(run: RunStarted | None) -> dict[str, str]:
    """The settings that the run's log states."""
    return {} if run is None else {name: as_text(value) for name, value in run.settings.items()}


def settings_of(run: Mapping[str, Any]) -> dict[str, str]:
    """The settings in a row of the table `runs`."""
    return {name: as_text(value) for name, value in run.items() if name not in _OWN}


def others(run: RunStarted | None) -> dict[str, str]:
    """All else that its log states. What is long is a digest; injections that follow from the settings are left out."""
    if run is None:
        return {}
    found: dict[str, Any] = {"prompts": digest(run.asked)[:6]} if run.asked else {}
    found |= {name: value for name, value in (("MODEL", run.model), ("WORLD", run.world)) if value}
    if run.now and "NOW" not in run.settings:  # NOW=now is another time in each run
        found["NOW"] = run.now
    injections = [] if _follows(run.plan, run.settings) else run.injections
    found |= {f"injection {i.get('name')}": _rest(i) for i in injections if i.get("name") != WIRE}
    found |= {f"version of {name}": value for name, value in run.code.items()}
    return {name: as_text(value) for name, value in found.items()}


def as_text(value: Any) -> str:
    """The value of a setting as a chart and a table have it."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:g}"
    if isinstance(value, str):
        return value
    return digest(value)[:6] if isinstance(value, dict) else json.dumps(value, ensure_ascii=False, default=str)


def _rest(injection: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in injection.items() if key != "name"}


def _follows(plan: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """True if the plan is what the settings ask for, so that they say it all."""
    from chaoslab.config.scenario import from_settings
    from chaoslab.config.settings import SettingError, Settings

    try:
        made = from_settings(Settings.from_shown(settings, where="a log")).to_json()
        return digest(made) == digest(dict(plan))
    except (SettingError, TypeError, ValueError):
        return False
