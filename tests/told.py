"""Tests that are stories, each told by what it is about: a loop, a machine, a lab."""

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any

Story = Callable[..., Any]


def told_by(teller: Callable[..., object]) -> Callable[[Story], Callable[..., None]]:
    """Makes a test of a story; both take their fixtures by keyword only, and the story what the teller gives it."""

    def test_of(story: Story) -> Callable[..., None]:
        its, tellers = _fixtures(story), _fixtures(teller)

        @functools.wraps(story)
        def test(**given: Any) -> None:
            told = functools.partial(story, **{name: given[name] for name in its})
            teller(told, **{name: given[name] for name in tellers})

        test.__signature__ = inspect.Signature([*(its | tellers).values()])  # type: ignore[attr-defined]
        return test

    return test_of


def _fixtures(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function).parameters.items()
    return {name: one for name, one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty}


in_a_loop = told_by(lambda story: asyncio.run(story()))
