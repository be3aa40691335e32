"""Tests that are stories, each told by what it is about: a loop, a machine, a lab."""

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any

Story = Callable[..., Any]


def told_by(teller: Callable[[Story], object]) -> Callable[[Story], Callable[..., None]]:
    """Makes a test of a story: it takes its fixtures by keyword only, and what the teller gives it by position."""

    def test_of(story: Story) -> Callable[..., None]:
        @functools.wraps(story)
        def test(**fixtures: Any) -> None:
            teller(functools.partial(story, **fixtures))

        fixtures = [one for one in inspect.signature(story).parameters.values() if one.kind is one.KEYWORD_ONLY]
        test.__signature__ = inspect.Signature(fixtures)  # type: ignore[attr-defined]
        return test

    return test_of


in_a_loop = told_by(lambda story: asyncio.run(story()))
