"""Shared by the tests of fakes: a world to run something in, and the fakes with one of them taken out."""

from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from chaoslab.worlds.virtual import patches
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.world import World

T = TypeVar("T")
NOW = datetime(2026, 6, 1, 9, 30, tzinfo=UTC)


def in_place() -> Iterator[None]:
    """The fakes. A module whose tests are not about putting them there has them there once, as a fixture: that
    takes longer than most stories.
    """
    with Patches():
        yield


def world(seed: int = 7) -> World:
    return World(seed, now=NOW)


def run(work: Callable[[], T]) -> T:
    """In a world of its own, the fakes in place."""
    return in_each(work, 7)[0]


def in_each(work: Callable[[], T], *seeds: int) -> list[T]:
    """The same in a world of each seed, one after the other."""
    with Patches():
        return [world(seed).run_program(work) for seed in seeds]


def take_out(monkeypatch: pytest.MonkeyPatch, *remedies: tuple[Any, str]) -> None:
    """From now on these names (holder, name) have no fakes; each must have had one."""
    whole = patches.iterate_patches
    gone = {(id(holder), name) for holder, name in remedies}
    assert gone <= {(id(patch.holder), patch.name) for patch in whole()}, f"no fakes for {remedies}"
    monkeypatch.setattr(
        patches, "iterate_patches", lambda: [patch for patch in whole() if (id(patch.holder), patch.name) not in gone]
    )


def named(cases: Collection[tuple[Any, ...]]) -> Any:
    """A parameter a case, called by the case's first item."""
    return [pytest.param(*case[1:], id=str(case[0])) for case in cases]
