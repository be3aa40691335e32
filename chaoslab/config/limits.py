"""The limits that whoever started this process has set to all faults made in it: a file that CHAOSLAB_LIMITS names. A
campaign sets it for all that it runs, so a plan or a scenario cannot go beyond."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from chaoslab.base import files
from chaoslab.config.settings import copy_environment
from chaoslab.core.limits import Limits, parse_limits
from chaoslab.core.plan import Plan

VARIABLE = "CHAOSLAB_LIMITS"


def load_limits(source: str, origin: str) -> tuple[Limits, ...]:
    """The limits in a JSON file or text: a mapping, or a list of several. `origin`: what named it. Raises ValueError:
    it cannot be read, or is wrong."""
    name = f"{origin}{source[:60]}"
    try:
        return parse_limits(files.parse_json(source) if source[:1] in "{[" else files.read_json(Path(source)))
    except files.Unreadable as error:
        raise ValueError(f"{name} {error}") from None
    except (ValueError, LookupError) as error:
        raise ValueError(f"{name}: {error.args[0]}") from None


def add_environment_limits(plan: Plan) -> Plan:
    """The plan with the limits of this process too. Raises ValueError: the file that states them is wrong, so nothing
    may be done."""
    named = copy_environment().get(VARIABLE)
    return replace(plan, limits=plan.limits + load_limits(named, f"{VARIABLE}=")) if named else plan


def list_allowed_hosts(limits: Iterable[Limits]) -> frozenset[str] | None:
    """The hosts beside loopback whose services may be broken: those that each limit names. None: there are no limits.
    Where there are some, and none of them names hosts, there is none."""
    allowed = list(limits)
    stated_hosts = [frozenset(limit.hosts) for limit in allowed if limit.hosts is not None]
    return frozenset.intersection(*stated_hosts) if stated_hosts else frozenset() if allowed else None


def make_limit_environment(path: Path) -> Mapping[str, str]:
    """The variables that hand on the limits in this file to a process."""
    return {VARIABLE: str(path.absolute())}
