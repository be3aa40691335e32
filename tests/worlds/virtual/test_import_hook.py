"""A module that the first trial imports is patched in that trial, and no trace of the patching is left."""

import json
import os
import random
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import process
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import chaoslab as lab
from chaoslab.worlds.virtual.machine.context import Unsupported, here
from chaoslab.worlds.virtual.machine.machine import STARTS_S
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.patches.import_hook import ImportHook
from tests.worlds.virtual.patch_parts import world

IMPORTING = """
import json, random, sys, uuid
import chaoslab as lab

def agent(prompt):
    import numpy
    from anyio._backends._asyncio import CancelScope
    from langgraph.checkpoint.base.id import uuid6
    from numpy.random import random as draw
    return [numpy.random.random(), draw(), str(uuid6()), str(uuid.uuid4()), random.random(), hash(CancelScope())]

before = list(sys.meta_path)
trials = lab.run_many(agent, "go", effects=[], trials=3)
assert not {"anyio", "langgraph", "numpy", "pytest", "uvloop"} & sys.modules.keys()
answers = [trial.answer for trial in trials]
found = [trial.answer for trial in lab.run_many(agent, "go", effects=[], trials=3)]
names = ("numpy.random.mtrand", "langgraph.checkpoint.base.id")
loaders = [
    type(loader).__module__
    for name in names
    for m in [sys.modules[name]]
    for loader in (m.__loader__, m.__spec__.loader)
]
import numpy
real = numpy.random.random.__self__ is numpy.random.mtrand._rand and numpy.random.mtrand.random is numpy.random.random
print(json.dumps([answers, found, before == sys.meta_path, real, loaders]))
"""


def test_a_trial_that_imports_is_equal_to_those_that_find_it_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    answers, imported, as_before, real, loaders = json.loads(done.stdout)
    assert answers == imported
    assert len({str(answer) for answer in answers}) == 3
    assert answers[0][-1] < 1000, "an address, not a number of the world"
    assert (as_before, real, set(loaders)) == (True, True, {"_frozen_importlib_external"})


DRAWING = """
import random, uuid
POINT, OWN, NAME = random.random(), random.Random().random(), str(uuid.uuid4())
"""


def test_what_a_module_draws_while_it_is_imported_is_missing_in_no_trial_and_the_same_whichever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "drawing.py").write_text(DRAWING)
    monkeypatch.syspath_prepend(tmp_path)

    def answers(first: int) -> list[Any]:
        begun: list[str] = []

        def agent(prompt: str) -> list[Any]:
            begun.append(prompt)
            found: Any = import_module("drawing") if len(begun) >= first else None
            drawn = [found.POINT, found.OWN, found.NAME] if found else "none as yet"
            return [drawn, random.random(), random.Random().random(), str(uuid.uuid4())]

        told = [trial.answer for trial in lab.run_many(agent, "go", effects=[], trials=3)]
        loader = vars(sys.modules.pop("drawing"))["__loader__"]
        assert type(loader).__module__ == "_frozen_importlib_external"
        return told

    at_once, later = answers(1), answers(3)
    (drawn,) = {str(answer[0]) for answer in at_once}  # the module's, in whichever trial
    assert (str(later[2][0]), later[0][0], later[1][0]) == (drawn, "none as yet", "none as yet")
    assert [answer[1:] for answer in at_once] == [answer[1:] for answer in later]


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that has a refusal, not imported yet; afterwards it is the one that it was."""
    name = process.__name__
    monkeypatch.setattr(import_module("concurrent.futures"), "process", process)
    monkeypatch.delitem(sys.modules, name)
    return name


def test_what_is_imported_in_a_world_is_refused_in_it(unloaded: str) -> None:
    def pool() -> None:
        found: Any = import_module(unloaded)
        found.ProcessPoolExecutor()

    with Patches(), pytest.raises(Unsupported, match="a pool of processes"):
        world().run_program(pool)


def test_what_another_thread_imports_is_patched_too(unloaded: str) -> None:
    found: list[Any] = []
    with Patches():
        other = threading.Thread(target=lambda: found.append(import_module(unloaded)))
        other.start()
        other.join()
        with pytest.raises(Unsupported, match="a pool of processes"):
            world().run_program(lambda: found[0].ProcessPoolExecutor())


def test_a_module_that_cannot_load_says_so_and_the_world_goes_on(
    unloaded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "multiprocessing.connection", None)

    def imports() -> float:
        with pytest.raises(ImportError):
            import_module(unloaded)
        time.sleep(1)
        return time.monotonic()

    with Patches():
        assert world().run_program(imports) == STARTS_S + 1


def test_what_nobody_imported_is_not_watched_afterwards(unloaded: str) -> None:
    before = list(sys.meta_path)
    with Patches():
        assert len(sys.meta_path) == len(before) + 1
    assert sys.meta_path == before
    import_module(unloaded).ProcessPoolExecutor(1).shutdown()


def test_a_module_that_arrives_after_the_hook_has_gone_is_left_as_it_is() -> None:
    arrived: list[int] = []
    hook = ImportHook(set(), lambda: arrived.append(len(arrived)))
    hook.install_finder()
    try:
        hook.patch_new_module()
    finally:
        hook.remove_finder()
    hook.patch_new_module()
    assert arrived == [0]


def test_a_module_to_be_patched_loads_outside_of_the_world_and_any_other_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("loads_outside", "loads_within"):
        (tmp_path / f"{name}.py").write_text(
            "from chaoslab.worlds.virtual.machine.context import here\n"
            "FOUND = here.world, here.world and here.world.dice\n"
        )
    arrived: list[object] = []
    hook, own = ImportHook({"loads_outside"}, lambda: arrived.append(here.world)), world()
    hook.install_finder()
    try:
        outside, (within, dice) = own.run_program(
            lambda: [import_module(name).FOUND for name in ("loads_outside", "loads_within")]
        )
    finally:
        hook.remove_finder()
        for name in ("loads_outside", "loads_within"):
            sys.modules.pop(name, None)
    assert (outside, within, arrived) == ((None, None), own, [None])
    assert dice is not own.dice
