"""The embedded server and the real one, asked the same: status, headers and bodies are equal, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from parity_parts import Ask, Side, differing, fresh
from parity_stories import STORIES
from wire_parts import embedded, real


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[Side, Side]]:
    """The real server first, since it skips where it is not installed."""
    with real() as model, embedded() as own:
        pair = (Side(model), Side(own))
        yield pair
        for side in pair:
            side.close()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_both_answer_alike(sides: tuple[Side, Side], story: Callable[[], Iterator[Ask]]) -> None:
    for side in sides:
        fresh(side)
    found = differing(sides, story())
    if found:
        pytest.fail(f"{len(found)} answers differ:\n" + "\n".join(found[:20]), pytrace=False)
