"""Mitigations that a search tries around an agent's functions, to tell which would have closed a failure. Each stands
for a change of the agent or of its service. `wrap_service_side` wraps the function itself, as its service would be
changed; `wrap_client_side` wraps the call that the agent makes, as its client would be."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.clock import system
from chaoslab.base.identity import canonical
from chaoslab.base.jsonable import to_jsonable
from chaoslab.seams.functions.wrapped import WrappedFunction

# The waits of `backoff`: the first, the factor to the next, and the longest, in seconds.
FIRST_S, FACTOR, WAIT_MAX_S = 1.0, 2.0, 60.0
Called = tuple[str, str]
"""A function's name and the canonical JSON of its arguments."""


class Mitigation:
    """One mitigation in one process. What it remembers is of one trial."""

    def __init__(self) -> None:
        self.done: dict[Called, Any] = {}
        """The results of writes that were done."""
        self.failed: dict[Called, BaseException] = {}
        """The errors by which calls failed for the agent."""
        self.tries: dict[str, int] = {}

    def forget_last_trial(self) -> None:
        """Forgets the last trial."""
        self.done.clear()
        self.failed.clear()
        self.tries.clear()

    def wrap_service_side(self, tool: WrappedFunction) -> WrappedFunction:
        """The function as its service would do it. Remembers what was done."""
        # A generator's items come later, so its call is never done when it returns.
        if not tool.effect or tool.generator_kind:
            return tool
        function = tool.function

        def call_once(*args: Any, **kwargs: Any) -> Any:
            key = _make_call_key(tool, args, kwargs)
            if self.honours and key in self.done:
                return self.done[key]
            self.done[key] = function(*args, **kwargs)
            return self.done[key]

        async def call_once_async(*args: Any, **kwargs: Any) -> Any:
            key = _make_call_key(tool, args, kwargs)
            if self.honours and key in self.done:
                return self.done[key]
            self.done[key] = await function(*args, **kwargs)
            return self.done[key]

        # Both forms are written out: a sync call led through a coroutine makes a RuntimeError of a StopIteration.
        function_once = wraps(function)(call_once_async if tool.is_coroutine else call_once)
        return replace(tool, function=function_once, keyed=self.honours)

    honours = False
    """The service knows a write by its arguments, as by an idempotency key, and does it once."""

    def get_wait_s_or_raise(self, tool: WrappedFunction, key: Called) -> float:  # noqa: ARG002 - most need none of it
        """The seconds to wait before a call. May raise the error that the agent gets in place of it."""
        return 0.0

    def is_result_known(self, tool: WrappedFunction, key: Called) -> bool:  # noqa: ARG002
        """Tells if the result of the call is `done[key]`, so that it is not made."""
        return False

    def wrap_client_side(self, tool: WrappedFunction, wrapper: Callable[..., Any]) -> Callable[..., Any]:
        """The call as the agent's client would make it."""
        if tool.generator_kind:
            return wrapper

        def call(*args: Any, **kwargs: Any) -> Any:
            key = _make_call_key(tool, args, kwargs)
            if (wait_s := self.get_wait_s_or_raise(tool, key)) > 0:
                system.sleep(wait_s)
            if self.is_result_known(tool, key):
                return self.done[key]
            try:
                result = wrapper(*args, **kwargs)
            except BaseException as error:
                self._note_failure(tool, key, error)
                raise
            self.tries.pop(tool.name, None)
            return result

        async def call_async(*args: Any, **kwargs: Any) -> Any:
            key = _make_call_key(tool, args, kwargs)
            if (wait_s := self.get_wait_s_or_raise(tool, key)) > 0:
                await system.sleep_async(wait_s)
            if self.is_result_known(tool, key):
                return self.done[key]
            try:
                result = await wrapper(*args, **kwargs)
            except BaseException as error:
                self._note_failure(tool, key, error)
                raise
            self.tries.pop(tool.name, None)
            return result

        return call_async if tool.is_coroutine else call

    def _note_failure(self, tool: WrappedFunction, key: Called, error: BaseException) -> None:
        # The lab's own ends are no failures of the call.
        reraise_unless_foreign(error)
        self.failed[key] = error
        self.tries[tool.name] = self.tries.get(tool.name, 0) + 1


class Key(Mitigation):
    """An idempotency key that the service honours: a write with the same arguments is done once."""

    honours = True


class NoRetry(Mitigation):
    """A write that failed is not tried again: the agent gets the same error."""

    def get_wait_s_or_raise(self, tool: WrappedFunction, key: Called) -> float:
        if tool.effect and key in self.failed:
            raise self.failed[key]
        return 0.0


class ReadFirst(Mitigation):
    """Before a write is tried again, the client looks if it was done; if so, it takes that for the result."""

    def is_result_known(self, tool: WrappedFunction, key: Called) -> bool:
        return tool.effect and key in self.failed and key in self.done


class Backoff(Mitigation):
    """A call after one that failed waits: 1 s, then twice as long each time."""

    def get_wait_s_or_raise(self, tool: WrappedFunction, key: Called) -> float:  # noqa: ARG002
        tries = self.tries.get(tool.name, 0)
        return min(WAIT_MAX_S, FIRST_S * FACTOR ** (tries - 1)) if tries else 0.0


KINDS: dict[str, type[Mitigation]] = {
    "key": Key,
    "no-retry": NoRetry,
    "read-first": ReadFirst,
    "backoff": Backoff,
}


def _make_call_key(tool: WrappedFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Called:
    # As JSON, so that equal arguments are one call whatever objects they are.
    return tool.name, canonical(to_jsonable([args, kwargs]))
