"""A user's functions: their names, their parameters and their fakes; and what is made anew for each trial."""

from __future__ import annotations

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from chaoslab.base import files
from chaoslab.base.jsonable import repr_one_line
from chaoslab.base.phrases import add_article
from chaoslab.seams import adapters
from chaoslab.seams.functions import code_swap
from chaoslab.seams.functions.inside import find_unpassed_parameters
from chaoslab.seams.functions.seam import Wrapping
from chaoslab.seams.services.app import detect_service_kind


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


class ProcessAgent(ABC):
    """An agent that works in processes of its own, which can be killed in real time. `digest`: of its program."""

    digest: str

    @abstractmethod
    def __call__(self, prompt: str) -> Any: ...

    @abstractmethod
    def begin_trial(self) -> None:
        """Begins a trial, in which it may be asked several times."""

    @abstractmethod
    def kill(self) -> None:
        """Kills its processes, at once. It may be called from any thread."""


def fresh(make: Callable[[], Any]) -> Fresh:
    """Wraps `make` as an agent for `run` and `run_many`: `make()` makes a new agent for each trial, so no state is kept
    between trials. Example: `lab.run(lab.fresh(Shop), …, tools=[Shop.order])`. As one of `services=`, the application
    that it makes is made anew for each trial too, and whenever its process loses its state.

    Raises:
        TypeError: `make` cannot be called, or not without arguments.
    """
    if not callable(make):
        raise TypeError(
            f"fresh was given {add_article(type(make).__name__)}: it should be a function that makes the agent"
        )
    if misfit_reason := explain_call_misfit(make):
        name = getattr(make, "__name__", type(make).__name__)
        raise TypeError(
            f"fresh was given {name} ({misfit_reason}): it should be a function without arguments that makes "
            f"the agent or the "
            "service, not the thing itself"
        )
    return Fresh(make)


def explain_call_misfit(function: Callable[..., Any], *arguments: Any) -> str:
    """The reason why a function cannot be called with these arguments; empty if it can, or does not tell."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        return str(error)
    except ValueError:  # not every function of C tells its arguments
        pass
    return ""


def check_agent(value: Any, where: str = "agent") -> None:
    """Checks that an agent can be asked: with the prompt alone, unless a framework calls it. Raises TypeError: it
    cannot."""
    if isinstance(value, Fresh) or adapters.find_agent_adapter(value) is not None:
        return
    if not callable(value):
        expected = adapters.describe_accepted_kinds(
            "a callable", (adapter.agents for adapter in adapters.load_adapters())
        )
        raise TypeError(f"{where} is {add_article(type(value).__name__)}: it should be {expected}")
    if isinstance(value, type) and not issubclass(value, str):
        raise TypeError(
            f"{where} is the class {value.__name__}: it should be an object of it, or lab.fresh(…) of a "
            "function that makes one"
        )
    if misfit_reason := explain_call_misfit(value, "the prompt"):
        hint = "" if explain_call_misfit(value) else "; what makes an agent is given as fresh"
        raise TypeError(
            f"{where} is {get_function_name(value)}, which cannot be called with the prompt alone "
            f"({misfit_reason}){hint}"
        )


def check_application(application: Any, name: str) -> None:
    """Checks that a service has one of the forms of an application. Raises TypeError: it has none."""
    try:
        detect_service_kind(application)
    except TypeError as error:
        subject = get_function_name(application) if inspect.isroutine(application) else repr_one_line(application)
        raise TypeError(f"services has {subject} as '{name}': {error}") from None


def get_function_name(function: Any) -> str:
    """The name of a function in plans and logs."""
    if isinstance(function, NamedTool):
        return function.name
    function = function.make if isinstance(function, Fresh) else function
    if inspect.isroutine(function) or (adapter := adapters.find_tool_adapter(function)) is None:
        # A partial may have been given a name of its own; without one it goes by that of the function inside.
        while isinstance(function, partial) and "__name__" not in vars(function):
            function = function.func
        return str(getattr(function, "__name__", type(function).__name__))
    return adapter.name(function)


def hash_agent_file(agent: Any) -> str:
    """A digest of the file that an agent is written in; empty if there is none."""
    agent = agent.make if isinstance(agent, Fresh) else agent
    if isinstance(agent, ProcessAgent):
        return agent.digest
    try:
        # Unwrapped: the file of the agent, and not that of a decorator around it.
        file = inspect.getsourcefile(inspect.unwrap(agent) if callable(agent) else type(agent))
        return hashlib.blake2b(files.load_bytes(Path(file or "")), digest_size=6).hexdigest()
    except (TypeError, OSError, ValueError):  # the last where it wraps itself, or the file cannot be read
        return ""


def make_fake_function(wrapping: Wrapping, function: Any, real: Callable[..., Any]) -> Callable[..., Any]:
    """The fake of a function. `real`: a callable that does what the function did before it was swapped."""
    return wrapping.make_fake_function(
        get_function_name(function), real, find_unpassed_parameters(code_swap.find_inner_function(function))
    )


def map_to_inner_functions(functions: Sequence[Any]) -> dict[int, Any]:
    """The objects whose code is swapped, by the ids of the functions that were given. Of two that decorate one
    function, each is swapped itself."""
    inner = {id(function): code_swap.find_inner_function(function) for function in functions}

    def get_inner_function_id(function: Any) -> int:
        # A bound method is another object each time that it is looked up; its function is one.
        return id(getattr(inner[id(function)], "__func__", inner[id(function)]))

    use_counts = Counter(map(get_inner_function_id, functions))
    return {
        id(function): function if use_counts[get_inner_function_id(function)] > 1 else inner[id(function)]
        for function in functions
    }
