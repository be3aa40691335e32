"""The limits of a plan: which part of the traffic its faults may hit, how many, and until when. They are data and
travel with the plan; whoever makes faults keeps to them, whatever asked for the faults.

A share is taken by systematic sampling: of the requests to one target, request k may be hit if k × share + u passes a
whole number, with u from the trial's dice. So among the first n at most ⌈n × share⌉ may be, and nothing has to be
remembered. Of m retries of a request ⌊m × share⌋ may be hit too, if it may be itself: an equal request at a gateway
counts as a retry, whoever makes it, and else a request that failed would fail for everybody from then on.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from math import floor
from pathlib import Path
from typing import Any

from chaoslab.base import levers, parsers
from chaoslab.base.clock import Clock, system
from chaoslab.base.dice import Dice
from chaoslab.base.jsonable import repr_one_line
from chaoslab.base.registry import suggest_name
from chaoslab.core.occasion import Occasion

LEASE_S = 10.0
"""The longest time between two renewals of a lease, by default, in seconds."""
LOOK_S, SLICE_S = 0.05, 0.25
"""The time between two looks at the files that end faults, and the longest part of a wait without one, in seconds."""
SHADOW = "shadow: nothing is hit"


@dataclass(frozen=True)
class Limits:
    """The limits on all faults of a plan; each that is left out limits nothing.

    `share`: of the requests, 0–1. `targets`: names or patterns of tools, services or routes. `tenants`: patterns of
    values by header. `at_once`: faults under way at a time; `faults`: in all, over all parts that share the file
    `tally`, else of one trial. `opens`, `until`: moments. `lease`: a file that is touched every `lease_s` at least.
    `lever`: a file that ends all faults by being there. `hosts`: the only hosts beside loopback whose services a
    gateway may break; None: any. `shadow`: nothing is hit, and what would be is told.
    """

    share: float = 1.0
    targets: tuple[str, ...] = ()
    tenants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    at_once: int | None = None
    faults: int | None = None
    opens: str = ""
    until: str = ""
    lease: str = ""
    lease_s: float = LEASE_S
    lever: str = ""
    tally: str = ""
    hosts: tuple[str, ...] | None = None
    shadow: bool = False

    @classmethod
    def build(cls, options: Any) -> "Limits":
        """The limits of a mapping as a user writes it: shares as 0.1 or "10%", times in seconds or as in "5m". Raises
        ValueError, LookupError: it is none; the message says what it should be."""
        if not isinstance(options, Mapping):
            raise ValueError(
                f"limits is {repr_one_line(options)}: it should be a mapping, as in {{share: 10%, faults: 5}}"
            )
        if unknown := [name for name in options if name not in _READS]:
            raise LookupError(f"limits has no key {repr_one_line(unknown[0])}: {suggest_name(str(unknown[0]), _READS)}")
        values = {}
        for name, value in options.items():
            try:
                values[name] = _READS[name](value)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{name} of limits is {repr_one_line(value)}: it should be {error}") from None
        limits = cls(**values)
        if limits.opens and limits.until and limits.opens >= limits.until:
            raise ValueError(f"until of limits is {limits.until}: it should be later than opens, {limits.opens}")
        return limits

    def to_json(self) -> dict[str, Any]:
        """The limits that are given; `of` takes them again."""
        values_by_name = {member.name: getattr(self, member.name) for member in fields(self)}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values_by_name.items()}
        plain["tenants"] = {name: list(values) for name, values in self.tenants.items()}
        return {name: value for name, value in plain.items() if value not in (None, "", {}) and value != _UNSET[name]}

    def find_exceeded_limit(self, occasion: Occasion) -> str:
        """The limit beyond which a fault of this attempt would be; empty if there is none. It depends on the attempt
        alone."""
        names = (occasion.target, occasion.tool)
        if self.targets and not any(fnmatchcase(name, pattern) for pattern in self.targets for name in names):
            return f"targets {', '.join(self.targets)}"
        for header, values in self.tenants.items():
            header_value = (occasion.headers or {}).get(header)
            if header_value is None or not any(fnmatchcase(header_value, pattern) for pattern in values):
                return f"tenants {header}: {', '.join(values)}"
        if self.share < 1:
            start = Dice(occasion.seed, occasion.trial, "limits", occasion.target)("share").uniform()
            if not _crosses_whole_number(occasion.request, self.share, start):
                return f"share {self.share:g}"
            if occasion.attempt > 1 and not _crosses_whole_number(occasion.attempt - 1, self.share):
                return f"share {self.share:g}"
        return ""


def ends_all_faults(limit: str) -> bool:
    """True for a limit, as a `LimitGuard` words it, beyond which no fault at all is made: a trial under it met other
    faults than its plan has."""
    return limit == SHADOW or limit.partition(" ")[0] in ("lever", "opens", "until", "lease")


def _crosses_whole_number(k: int, share: float, start: float = 0.0) -> bool:
    """True if step k, from 1, of so many by `share` passes a whole number."""
    return floor(k * share + start) != floor((k - 1) * share + start)


def _parse_share(value: Any) -> float:
    rule = "a share above 0 up to 1, as in 0.1 or 10%"
    if isinstance(value, str) and value.endswith("%"):
        value = parsers.parse_bounded_number(value[:-1].strip(), 0.0, 100.0, rule) / 100
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError(rule)
    return float(value)


def _parse_names(value: Any) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not listed or not all(isinstance(name, str) and name for name in listed):
        raise ValueError("a name or a list of names or patterns, as in [crm, order_*]")
    return tuple(listed)


def _parse_hosts(value: Any) -> tuple[str, ...]:
    # An empty list is a limit too: loopback alone.
    return () if value in ([], ()) else _parse_names(value)


def _parse_tenants(value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping) or not value or not all(isinstance(name, str) and name for name in value):
        raise ValueError("patterns by header, as in {x-tenant: [test-*]}")
    # Names of headers have no case (RFC 9110, section 5.1).
    return {name.lower(): _parse_names(values) for name, values in value.items()}


def _parse_count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**9:
        raise ValueError("a whole number from 1")
    return value


def _normalize_moment(value: Any) -> str:
    if not isinstance(value, str) or value == "now":
        raise ValueError("a moment like 2026-06-01T09:00:00Z")
    return parsers.parse_moment(value)


def _parse_path(value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("a file")
    return value


def _parse_seconds(value: Any) -> float:
    rule = "a time above 0, as in 10 or 5m"
    if isinstance(value, str):
        value = parsers.parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= parsers.SECONDS_MAX:
        raise ValueError(rule)
    return float(value)


def _parse_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


_READS: Mapping[str, Callable[[Any], Any]] = {
    "share": _parse_share, "targets": _parse_names, "tenants": _parse_tenants, "at_once": _parse_count,
    "faults": _parse_count, "opens": _normalize_moment,
    "until": _normalize_moment, "lease": _parse_path, "lease_s": _parse_seconds, "lever": _parse_path,
    "tally": _parse_path, "hosts": _parse_hosts,
    "shadow": _parse_flag,
}  # fmt: skip
_UNSET: Mapping[str, Any] = {"share": 1.0, "targets": [], "lease_s": LEASE_S, "shadow": False} | dict.fromkeys(
    ("tenants", "at_once", "faults", "opens", "until", "lease", "lever", "tally", "hosts")
)


def parse_limits(options: Any) -> tuple[Limits, ...]:
    """One or several limits, all of which hold, as a user writes them. Raises ValueError, LookupError: one is wrong."""
    return tuple(map(Limits.build, options if isinstance(options, list | tuple) else [options]))


def check_targets(limits: Iterable[Limits], names: Sequence[str]) -> None:
    """Checks that each target of the limits is one of all these. Raises LookupError: one is none, so its limits would
    hold every fault back."""
    for target in (target for limit in limits for target in limit.targets):
        if not any(fnmatchcase(name, target) for name in names):
            raise LookupError(f"targets of limits names {repr_one_line(target)}: {suggest_name(target, names)}")


Told = Callable[[str, Occasion, str], object]
"""Takes a fault that was held back: its injection, the attempt, and the limit."""


class LimitGuard:
    """Keeps one maker of faults within limits, levers, leases and windows. In virtual time, where a trial is a moment
    of the machine's, it looks at the files and the clock once.

    `tell` is told of each fault that is held back. `others`: the number of faults that go on beside those of attempts,
    such as outages. For one thread, or under its caller's lock.
    """

    __slots__ = ("_clock", "_ended", "_looked_s", "_made", "_open", "limits", "others", "tell")

    def __init__(self, limits: Sequence[Limits] = (), *, clock: Clock = system) -> None:
        self.limits, self._clock = tuple(limits), clock if levers.is_in_real_time() else system
        self.tell: Told = lambda *_: None
        self.others: Callable[[], int] = int
        self._open: dict[tuple[str, int, int], int] = {}
        self._made, self._ended, self._looked_s = 0, "", float("-inf")

    @property
    def can_end_faults(self) -> bool:
        """True if a fault that lasts may have to end before its time."""
        return bool(self.limits) and levers.is_in_real_time()

    @property
    def header_names(self) -> Iterable[str]:
        """The headers that the limits read, in lower case."""
        return (name for limit in self.limits for name in limit.tenants)

    def find_fault_end_reason(self) -> str:
        """The reason for which no fault may be made, or go on, now; empty if there is none. It looks at its files every
        `LOOK_S` at most."""
        now_s = self._clock.monotonic() if levers.is_in_real_time() else 0.0
        if now_s - self._looked_s >= LOOK_S:
            self._looked_s, self._ended = now_s, self._compute_fault_end_reason()
        return self._ended

    def _compute_fault_end_reason(self) -> str:
        if reason := levers.describe_pulled_lever():
            return reason
        for limit in self.limits:
            if limit.lever and (reason := levers.read_stop_reason(Path(limit.lever))):
                return f"lever {limit.lever}: {reason}"
            if limit.opens or limit.until:
                now = self._clock.utc()
                if limit.opens and now < _parse_moment(limit.opens):
                    return f"opens {limit.opens}"
                if limit.until and now >= _parse_moment(limit.until):
                    return f"until {limit.until}"
            if limit.lease and levers.is_lease_expired(Path(limit.lease), limit.lease_s, clock=self._clock):
                return f"lease {limit.lease}: nobody renewed it for {limit.lease_s:g} s"
        return ""

    def find_limit_or_count_hit(self, injection: str, occasion: Occasion) -> str:
        """The limit for which a fault of this injection may not hit; empty if it may, and then it is counted. A refusal
        is told."""
        reason = self.find_fault_end_reason() or next(
            (reason for limit in self.limits if (reason := limit.find_exceeded_limit(occasion))), ""
        )
        reason = reason or self._find_exceeded_count(occasion)
        if not reason and any(limit.shadow for limit in self.limits):
            reason = SHADOW
        if reason:
            self.tell(injection, occasion, reason)
        return reason

    def _find_exceeded_count(self, occasion: Occasion) -> str:
        if not self.limits:
            return ""
        key = (occasion.target, occasion.request, occasion.attempt)
        # Where it was asked, faults may be under way that this part knows nothing of.
        under_way = max(self.active_fault_count, occasion.under_way)
        for limit in self.limits:
            if limit.at_once is not None and under_way >= limit.at_once:
                return f"at_once {limit.at_once}"
            if limit.faults is None:
                continue
            counted = (
                levers.reserve_fault(Path(limit.tally), limit.faults) if limit.tally else self._made < limit.faults
            )
            if not counted:
                return f"faults {limit.faults}"
        self._made += 1
        self._open[key] = self._open.get(key, 0) + 1
        return ""

    @property
    def active_fault_count(self) -> int:
        """The faults that are under way."""
        return sum(self._open.values()) + self.others()

    def count_attempt(self, target: str, request: int, attempt: int) -> bool:
        """Counts an attempt that another part may hit. False: one of its faults is counted already."""
        if not self.limits or (target, request, attempt) in self._open:
            return False
        self._open[target, request, attempt] = 1
        return True

    def end_attempt(self, target: str, request: int, attempt: int) -> None:
        """Takes the end of an attempt."""
        if self._open:
            self._open.pop((target, request, attempt), None)


def _parse_moment(moment: str) -> datetime:
    instant = datetime.fromisoformat(moment)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
