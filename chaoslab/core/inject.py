"""Faults as Python code states them: `inject("latency", "message", chance=0.3, delay_s=2.0)`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from chaoslab.base.parsers import SECONDS_MAX
from chaoslab.base.registry import did_you_mean
from chaoslab.core.fault import load
from chaoslab.core.fault_list import WithFaults
from chaoslab.core.plan import Choice, Injection

NUMBER_MAX = 10**15
"""The largest value of a limit or a factor."""
Parameter = bool | int | float | str


def inject(
    fault: str,
    target: str | Sequence[str],
    *,
    chance: float = 1.0,
    calls: Sequence[int] | int | float = (),
    name: str | None = None,
    **params: Parameter,
) -> Injection:
    """One source of faults for a trial.

    `target` is the name of a function or service, or several names. `chance` (0–1) is rolled for each attempt. `calls`
    hits the first attempts of exactly those requests to the target instead, counted from 1; a trial in which it cannot
    hit them is invalid. (For `budget`, `calls` is a plain number: the limit of that name.) `name` names the dice,
    "<fault> on <target>" by default. `params` are the fault's own (listed below), in seconds where they end in `_s`.

    Raises:
        LookupError: no such fault. ValueError, TypeError: a parameter or a value that it does not take.
    """
    if not isinstance(fault, str):
        raise TypeError(f"fault is {fault!r}: it should be the name of a fault, as in 'latency'")
    known = {f.name: f for f in fields(load(fault))}
    if isinstance(calls, int | float) and "calls" in known:
        params["calls"], calls = calls, ()
    hints = get_type_hints(load(fault))
    for key, value in params.items():
        if key not in known:
            hint = did_you_mean(key, known) if known else "it has none"
            raise ValueError(f"{fault} has no parameter '{key}': {hint}")
        if wrong := _wrong(known[key], hints[key], value):
            raise ValueError(f"{key} of {fault} is {value!r:.60}: it should be {wrong}")
    load(fault)(**params)  # a fault may check its own parameters
    targets = (target,) if isinstance(target, str) else tuple(target) if isinstance(target, Iterable) else ()
    if not targets or not all(isinstance(one, str) and one for one in targets):
        raise ValueError(f"{fault} has the target {target!r}: it should be the name of a function or service")
    if not isinstance(chance, int | float) or not 0 <= chance <= 1:
        raise ValueError(f"chance of {fault} on {targets[0]} is {chance!r}: it should be a number from 0 to 1")
    if not isinstance(calls, list | tuple | set | range) or not all(type(n) is int and n >= 1 for n in calls):
        raise ValueError(f"calls of {fault} on {targets[0]} is {calls!r}: it should be requests' numbers, as in [1, 3]")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name of {fault} on {targets[0]} is {name!r}: it should be a text")
    found = Injection(
        name or f"{fault} on {', '.join(targets)}", (Choice(fault, 1.0, params),), targets, float(chance), tuple(calls)
    )
    if found.layer == "context":
        raise ValueError(f"{fault} works on the messages that a model is sent, and {targets[0]} is no model")
    return found


inject.__doc__ = WithFaults(inject.__doc__ or "")


def _wrong(parameter: Field[Any], hint: Any, value: Any) -> str:
    """The values that the parameter takes, in words; empty if this is one of them."""
    if get_origin(hint) is Literal:
        options = get_args(hint)
        return "" if value in options else " or ".join(repr(option) for option in options)
    if hint is str:
        return "" if isinstance(value, str) else "a text"
    default = parameter.default if parameter.default is not MISSING else 0
    least = min(0, default) if isinstance(default, int | float) else 0
    kinds = (int,) if hint is int else (int, float)
    a_number = f"a {'whole ' if hint is int else ''}number"
    if isinstance(value, bool) or not isinstance(value, kinds) or not value >= least:
        return f"{a_number}, {least:g} or more"
    most = SECONDS_MAX if parameter.name.endswith("_s") else NUMBER_MAX
    return "" if value <= most else f"{a_number} from {least:g} to {most}"


def check(injections: Iterable[Injection], known: Iterable[str]) -> tuple[Injection, ...]:
    """The injections, if each has a name of its own and targets that exist.

    Raises:
        LookupError: a target does not exist. ValueError: two of one name.
    """
    names, there = set(), list(known)
    checked = tuple(injections)
    for injection in checked:
        if not isinstance(injection, Injection):
            raise ValueError(f"faults has {injection!r} in it: it should be lab.inject(fault, target, …)")
        for target in injection.targets:
            if target not in there:
                hint = did_you_mean(target, there) if there else "there are none, give them as tools= or reads="
                raise LookupError(f"'{injection.name}' has no function or service '{target}' to hit: {hint}")
        if injection.name in names:
            raise ValueError(f"two injections are called '{injection.name}': give one of them another name=")
        names.add(injection.name)
    return checked
