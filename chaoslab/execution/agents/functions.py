"""A user's functions: their names, their parameters and their stand-ins; and what is made anew for each trial."""

from __future__ import annotations

import hashlib
import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from chaoslab.base import files
from chaoslab.base.phrases import a
from chaoslab.seams import adapters
from chaoslab.seams.functions import code_swap
from chaoslab.seams.functions.inside import unasked_parameters
from chaoslab.seams.functions.seam import Wrapping


@dataclass(frozen=True)
class NamedTool:
    """A tool under a name that its user gives it, as in `tools={"refund": Refund.run}`."""

    name: str
    tool: Any


def unwrap_tool(tool: Any) -> Any:
    """The tool without the name that its user gives it."""
    return tool.tool if isinstance(tool, NamedTool) else tool


@dataclass(frozen=True)
class Fresh:
    """An agent, or a service, that is made anew for each trial, in the trial's world."""

    make: Callable[[], Any]


def fresh(make: Callable[[], Any]) -> Fresh:
    """Wraps `make` as an agent for `run` and `run_many`: `make()` makes a new agent for each trial, so no state is kept
    between trials. Example: `lab.run(lab.fresh(Shop), …, tools=[Shop.order])`. As one of `services=`, the application
    that it makes is made anew for each trial too, and whenever its process loses its state.

    Raises:
        TypeError: `make` cannot be called, or not without arguments.
    """
    if not callable(make):
        raise TypeError(f"fresh was given {a(type(make).__name__)}: it should be a function that makes the agent")
    if misfit_reason := explain_misfit(make):
        name = getattr(make, "__name__", type(make).__name__)
        raise TypeError(
            f"fresh was given {name} ({misfit_reason}): it should be a function without arguments that makes "
            f"the agent or the "
            "service, not the thing itself"
        )
    return Fresh(make)


def explain_misfit(function: Callable[..., Any], *arguments: Any) -> str:
    """The reason why a function cannot be called with these arguments; empty if it can, or does not tell."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        return str(error)
    except ValueError:  # not every function of C tells its arguments
        pass
    return ""


def name_of(function: Any) -> str:
    """The name of a function in plans and logs."""
    if isinstance(function, NamedTool):
        return function.name
    function = function.make if isinstance(function, Fresh) else function
    if inspect.isroutine(function) or (adapter := adapters.adapter_of_tool(function)) is None:
        # A partial may have been given a name of its own; without one it goes by that of the function inside.
        while isinstance(function, partial) and "__name__" not in vars(function):
            function = function.func
        return str(getattr(function, "__name__", type(function).__name__))
    return adapter.name(function)


def digest_of(agent: Any) -> str:
    """A digest of the file that an agent is written in; empty if there is none."""
    agent = agent.make if isinstance(agent, Fresh) else agent
    try:
        # Unwrapped: the file of the agent, and not that of a decorator around it.
        file = inspect.getsourcefile(inspect.unwrap(agent) if callable(agent) else type(agent))
        return hashlib.blake2b(files.read(Path(file or "")), digest_size=6).hexdigest()
    except (TypeError, OSError, ValueError):  # the last where it wraps itself, or the file cannot be read
        return ""


def make_stand_in(wrapping: Wrapping, function: Any, real: Callable[..., Any]) -> Callable[..., Any]:
    """The stand-in of a function. `real`: a callable that does what the function did before it was swapped."""
    return wrapping.stand_in(name_of(function), real, unasked_parameters(code_swap.find_innermost(function)))


def find_innermost(functions: Sequence[Any]) -> dict[int, Any]:
    """The objects whose code is swapped, by the ids of the functions that were given. Of two that decorate one
    function, each is swapped itself."""
    inner = {id(function): code_swap.find_innermost(function) for function in functions}

    def innermost_id(function: Any) -> int:
        # A bound method is another object each time that it is looked up; its function is one.
        return id(getattr(inner[id(function)], "__func__", inner[id(function)]))

    use_counts = Counter(map(innermost_id, functions))
    return {
        id(function): function if use_counts[innermost_id(function)] > 1 else inner[id(function)]
        for function in functions
    }
