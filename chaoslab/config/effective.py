"""Shows the settings in force, each with its value and origin. Also turns options that are really settings into
settings."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from chaoslab.base import parsers
from chaoslab.base.secrets import printed
from chaoslab.config.settings import Settings, find_value_origin, format_value, load_settings

_CREDENTIALS = re.compile(r"(?<=//)[^/@?#]*@|(?<=\?)[^#]*")
"""The parts of an address that may hold a name and a password, or a key."""


def render_effective_settings(
    arguments: Sequence[str] = (), *, environment: Mapping[str, str] | None = None, env_file: Path = Path(".env")
) -> str:
    """A line per setting: its name, its value's origin, and the value. A secret shows only if it is set. Raises
    SettingError: as `load`."""
    rows = [("setting", "from", "value")]
    rows_in_force = list_effective_settings(arguments, environment=environment, env_file=env_file)
    rows += [(setting["name"], setting["from"], setting["value"] or "(empty)") for setting in rows_in_force]
    widths = [max(len(row[n]) for row in rows) for n in (0, 1)]
    return "".join(f"{name:{widths[0]}}  {source:{widths[1]}}  {value}\n" for name, source, value in rows)


def list_effective_settings(
    arguments: Sequence[str] = (), *, environment: Mapping[str, str] | None = None, env_file: Path = Path(".env")
) -> list[dict[str, str]]:
    """Each setting's `name`, `from` (its value's origin) and `value`. A secret is "set" or "not set". Raises
    SettingError: as `load`."""
    chosen = load_settings(arguments, environment=environment, env_file=env_file)
    derived = {
        "MODEL": (chosen.model, chosen.model_name, "default"),
        "COST_LIMIT_USD": (chosen.cost_limit_usd, chosen.effective_cost_limit_usd, "default with a key"),
        **{name.upper(): (getattr(chosen, name), value, "AGENT") for name, value in chosen.resilience.items()},
    }
    rows = []
    for f in fields(Settings):
        name, value = f.name.upper(), getattr(chosen, f.name)
        source = find_value_origin(name, arguments, environment=environment, env_file=env_file)
        if name in derived and derived[name][0] != derived[name][1]:
            _, value, source = derived[name]
        shown_value = (
            ("set" if value else "not set")
            if f.metadata["secret"]
            else _CREDENTIALS.sub(_mask_match, format_value(value))
        )
        rows.append({"name": name, "from": source, "value": shown_value})
    return rows


def _mask_match(match: re.Match[str]) -> str:
    return "***@" if match[0].endswith("@") else "***" if match[0] else ""


def guess_meant_settings(stated: Sequence[str], unknown: Iterable[str]) -> str:
    """The settings, as in "SEED=3", that unknown options must have meant; empty unless each of them is like a setting.
    `stated` is the whole command line, `unknown` the words of it that were not understood."""
    table = {f.name.upper(): f for f in fields(Settings)}
    assignments = []
    for option in (word for word in unknown if word.startswith("-")):
        written, equals, value = option.partition("=")
        name = written.lstrip("-").replace("-", "_").upper()
        if name not in table:
            near = parsers.find_closest(name, table)
            if not near:
                return ""
            name = near
        if not equals:
            after = stated[stated.index(option) + 1 :][:1]
            value = after[0] if after and not after[0].startswith("-") else ""
        assignments.append(f"{name}={'…' if table[name].metadata['secret'] or not value else printed.mask(value)[:60]}")
    return " ".join(assignments)
