"""Nothing of a world is left when it is over, however it ended; what runs beside it never knew of it."""

import asyncio
import contextlib
import functools
import inspect
import queue
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import compress
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy.random
import pytest
import time_machine

from chaoslab.seams.functions import references
from chaoslab.worlds.virtual import patches
from chaoslab.worlds.virtual.machine.context import Unsupported, here
from chaoslab.worlds.virtual.machine.context import within as in_world
from chaoslab.worlds.virtual.machine.machine import STARTS_S, Hung
from chaoslab.worlds.virtual.patches import Patch, Patches, clocks, computer, files, sockets, swap, threads
from tests.worlds.virtual.patch_parts import NOW, world

Place = tuple[str, ...]


KEEPERS = (FunctionType, functools.partial, defaultdict, staticmethod, classmethod)


class Kinds(dict[type, bool]):
    """Kind of value → True if others are looked for in it."""

    def __missing__(self, kind: type) -> bool:
        self[kind] = issubclass(kind, (*KEEPERS, type))
        return self[kind]


KINDS = Kinds()


def held(wanted: Set[int]) -> Iterator[tuple[Place, Any]]:
    """The places in which a module knows an object of these ids: by a name, in a class of its own, as a default, or in
    a partial call."""
    for module_name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or module_name.startswith("chaoslab.worlds.virtual"):
            continue
        classes: dict[str, type] = {}
        yield from named((module_name,), vars(module), wanted, classes)
        for name, value in classes.items():
            if getattr(value, "__module__", None) == module_name:
                yield from named((module_name, name), vars(value), wanted, {})


def named(
    place: Place, names: Mapping[str, Any], wanted: Set[int], classes: dict[str, type]
) -> Iterator[tuple[Place, Any]]:
    """The same among the values of these names, of which there are a million in all. `classes`: takes those among
    them."""
    values = list(names.values())
    if not wanted.isdisjoint(map(id, values)):
        yield from (((*place, name), value) for name, value in list(names.items()) if id(value) in wanted)
    for name, value in compress(list(names.items()), map(KINDS.__getitem__, map(type, values))):
        if issubclass(type(value), type):
            classes[name] = value
        else:
            yield from ((each, kept) for each, kept in within((*place, name), value) if id(kept) in wanted)


def within(place: Place, value: Any) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
        yield place, value
    if isinstance(value, defaultdict):
        yield (*place, "factory"), value.default_factory
    if isinstance(value, FunctionType):
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # empty yet
                yield (*place, "closure", name), cell.cell_contents
        for n, default in enumerate(value.__defaults__ or ()):
            yield (*place, "defaults", str(n)), default
        for name, default in (value.__kwdefaults__ or {}).items():
            yield (*place, "defaults", name), default
    if isinstance(value, functools.partial):
        for n, part in enumerate((value.func, *value.args, *value.keywords.values())):
            yield (*place, "partial", str(n)), part


def of_the_process() -> dict[str, Any]:
    """State of the process that belongs to no module."""
    policy: Any = asyncio.get_event_loop_policy()
    return {
        "loop": asyncio._get_running_loop(),
        "loop of the thread": dict(policy._local.__dict__),
        "policy": policy,
        "hooks": sys.get_asyncgen_hooks(),
        "signals": {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)},
        "world": here.world,
        "threads": threading.active_count(),
        "travellers": list(time_machine.traveller_stack),
        "uuid": {name: value for name, value in vars(uuid).items() if name.startswith("_")},
        "chance": random.getstate(),
        "numpy": numpy.random.get_state()[1].tobytes(),  # type: ignore[index]
        "finders": list(sys.meta_path),
        "socket timeout": socket.getdefaulttimeout(),
    }


@dataclass
class Watched:
    """The patched values as they were before, to be compared with those afterwards."""

    stand_ins: list[Patch] = field(default_factory=list)
    attributes: dict[tuple[int, str], tuple[Any, Any]] = field(default_factory=dict)
    known: dict[Place, Any] = field(default_factory=dict)
    process: dict[str, Any] = field(default_factory=dict)

    def before(self) -> None:
        self.attributes = {
            (id(patch.holder), patch.name): (patch.holder, vars(patch.holder).get(patch.name, "absent"))
            for patch in patches.iterate_patches()
        }
        real = {id(getattr(holder, name)) for (_, name), (holder, _) in self.attributes.items()}
        if set(sys.modules) != _last.modules:  # else it is what the test before found again afterwards
            _last.known = dict(held(real))
        self.known = _last.known
        self.process = of_the_process()
        assert len(self.known) > len(self.attributes)

    def after(self) -> None:
        assert of_the_process() == self.process
        for (_, name), (holder, real) in self.attributes.items():
            assert vars(holder).get(name, "absent") is real, f"{holder}.{name}"
        gone = {id(patch.value): patch.name for patch in self.stand_ins}
        now = dict(held(gone.keys() | set(map(id, self.known.values()))))
        assert not [(place, gone[id(value)]) for place, value in now.items() if id(value) in gone]
        assert not [place for place, value in self.known.items() if now.get(place) is not value]
        _last.modules = set(sys.modules)


@dataclass
class Last:
    """The modules after a test that left all as it was, and what they held."""

    modules: set[str] = field(default_factory=set)
    known: dict[Place, Any] = field(default_factory=dict)


_last = Last()


def test_no_two_real_things_have_one_stand_in() -> None:
    """Or a module that names the one would name the other afterwards."""
    stand_ins: dict[int, Any] = {}
    made = [patch for patch in patches.iterate_patches() if patch.everywhere]
    for patch in made:
        real = getattr(patch.holder, patch.name)
        assert stand_ins.setdefault(id(patch.value), real) is real, patch.name


def test_a_function_is_replaced_in_each_module_that_has_it_by_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    of_modules = [patch for patch in patches.iterate_patches() if isinstance(patch.holder, ModuleType)]
    offered = {patch.name: getattr(patch.holder, patch.name) for patch in of_modules if not patch.name.startswith("_")}
    program = ModuleType("program")
    functions = {name: real for name, real in offered.items() if callable(real)}
    vars(program).update({f"own_{name}": real for name, real in functions.items()})
    monkeypatch.setitem(sys.modules, "program", program)
    with Patches():
        assert [name for name, real in functions.items() if getattr(program, f"own_{name}") is real] == []
    assert {name: getattr(program, f"own_{name}") for name in functions} == functions


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """Compares before and after the test, and remembers every fake that was made for it."""
    found, whole = Watched(), patches.iterate_patches

    def remembered() -> Iterator[Patch]:
        for patch in whole():
            found.stand_ins.append(patch)
            yield patch

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started pytest may have it ignored
    random.seed(11)
    uuid.uuid1(node=1)  # the process remembers when its last id was made
    asyncio.run(asyncio.sleep(0))  # and whether a loop was ever set, which a test may do that runs one
    found.before()
    monkeypatch.setattr(patches, "iterate_patches", remembered)
    yield found
    assert found.stand_ins
    found.after()
    signal.signal(signal.SIGINT, before)


class Clocked:
    """A class that knows a clock in each of the ways there are."""

    bare = time.monotonic
    static = staticmethod(time.monotonic)
    part = functools.partial(max, default=time.monotonic)

    def read(
        self, clock: Callable[[], float] = time.monotonic, *, other: Callable[[], float] = time.perf_counter
    ) -> None:
        """Its defaults are what matters."""


@dataclass
class Stamped:
    """The functions that its initializer calls are in a closure of it."""

    at: float = field(default_factory=time.monotonic)
    chance: float = field(default_factory=random.random)


STAMPS = defaultdict[str, float](time.monotonic)
CLOCK = functools.partial(time.monotonic)


def touch_everything() -> None:
    time.sleep(1)
    random.seed(5)
    numpy.random.seed(5)
    uuid.uuid1()
    socket.setdefaulttimeout(2.0)
    assert datetime.now(UTC) > NOW


async def good() -> None:
    touch_everything()
    await asyncio.wait_for(asyncio.to_thread(time.sleep, 1), 2)


async def raised() -> None:
    touch_everything()
    raise LookupError("as planned")


async def cancelled() -> None:
    touch_everything()
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1)


async def hung() -> None:
    touch_everything()
    await asyncio.get_running_loop().create_future()


async def overdue() -> None:
    touch_everything()
    await asyncio.sleep(10**9)


async def uncovered() -> None:
    touch_everything()
    subprocess.run(["true"], check=True)


def ctrl_c() -> None:
    """The user's: it comes from outside of the world."""
    with in_world(None):
        signal.raise_signal(signal.SIGINT)


async def interrupted() -> None:
    touch_everything()
    ctrl_c()


async def interrupted_in_a_thread() -> None:
    touch_everything()
    await asyncio.to_thread(ctrl_c)


async def with_a_generator_left_open() -> None:
    async def numbers() -> Any:
        while True:
            yield 1
            await asyncio.sleep(1)

    async for _ in numbers():
        break
    touch_everything()


ENDINGS: list[tuple[Callable[[], Any], type[BaseException] | None]] = [
    (good, None),
    (with_a_generator_left_open, None),
    (raised, LookupError),
    (cancelled, asyncio.CancelledError),
    (hung, Hung),
    (overdue, Hung),
    (uncovered, Unsupported),
    (interrupted, KeyboardInterrupt),
    (interrupted_in_a_thread, KeyboardInterrupt),
]


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize(("work", "ending"), ENDINGS, ids=lambda it: getattr(it, "__name__", "returns"))
def test_the_process_is_as_it_was_however_the_world_ended(
    work: Callable[[], Any], ending: type[BaseException] | None
) -> None:
    if ending is None:
        with Patches():
            world().run_program_async(work)
    else:
        with pytest.raises(ending), Patches():
            world().run_program_async(work)


@pytest.mark.usefixtures("watched")
def test_what_was_imported_meanwhile_is_taken_back_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "imported_meanwhile.py").write_text(
        "import functools\n"
        "from time import monotonic, sleep\n"
        "from random import random as draw\n"
        "from uuid import uuid1\n"
        "from urllib.request import getproxies, getproxies_environment\n"
        "class Timed:\n"
        "    clock = staticmethod(monotonic)\n"
        "    def wait(self, how=sleep, *, draw=draw): ...\n"
        "later = functools.partial(sleep, 1)\n"
    )
    name = "imported_meanwhile"
    with Patches():
        late = world().run_program(lambda: __import__(name))
        assert late.monotonic is not clocks.real_monotonic
        assert world().run_program(lambda: late.monotonic()) == STARTS_S
    assert late.monotonic is late.Timed.__dict__["clock"].__func__ is time.monotonic
    assert late.Timed.wait.__defaults__ == (time.sleep,)
    assert late.Timed.wait.__kwdefaults__ == {"draw": random.random}
    assert late.later.func is time.sleep
    assert late.uuid1 is uuid.uuid1
    assert late.getproxies is urllib.request.getproxies is computer.real_getproxies
    assert late.getproxies_environment is urllib.request.getproxies_environment
    monkeypatch.delitem(sys.modules, name)


@pytest.mark.usefixtures("watched")
def test_what_dataclasses_default_dictionaries_and_partial_calls_made_before_keep_is_found() -> None:
    def drawn() -> tuple[Stamped, float, float]:
        STAMPS.clear()
        time.sleep(1)
        return Stamped(), STAMPS["now"], CLOCK()

    with Patches():
        first, again = (world().run_program(drawn) for _ in range(2))
        other = world(8).run_program(drawn)
    assert first == again == (Stamped(STARTS_S + 1, first[0].chance), STARTS_S + 1, STARTS_S + 1)
    assert other[0].chance != first[0].chance
    assert STAMPS.default_factory is CLOCK.func is time.monotonic is clocks.real_monotonic


@pytest.mark.usefixtures("watched")
def test_stand_ins_may_be_asked_for_within_each_other() -> None:
    with Patches():
        with Patches():
            pass
        assert world().run_program(lambda: time.monotonic()) == STARTS_S


@pytest.mark.usefixtures("watched")
def test_half_of_them_are_taken_back_when_the_other_half_cannot_be_put_in_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = patches.iterate_patches

    def until_it_fails() -> Iterator[Patch]:
        yield from list(whole())[:20]
        raise LookupError("no such name")

    with monkeypatch.context() as broken:
        broken.setattr(patches, "iterate_patches", until_it_fails)
        with pytest.raises(LookupError), Patches():
            pass
    with Patches():
        assert world().run_program(lambda: time.monotonic()) == STARTS_S


@pytest.mark.usefixtures("watched")
def test_an_interrupt_while_they_are_taken_back_leaves_none_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    from chaoslab.worlds.virtual.patches import swap

    undo, times = swap.Swap.restore_everywhere, []

    def interrupted_once(self: swap.Swap) -> None:
        times.append(1)
        if len(times) == 1:
            raise KeyboardInterrupt
        undo(self)

    monkeypatch.setattr(swap.Swap, "restore_everywhere", interrupted_once)
    with pytest.raises(KeyboardInterrupt), Patches():
        pass
    assert len(times) == 2


@pytest.mark.usefixtures("watched")
def test_a_world_in_a_running_loop_works_and_leaves_that_loop_running() -> None:
    async def inner() -> float:
        await asyncio.sleep(3600 - 1)
        return asyncio.get_running_loop().time()

    async def numbers() -> Any:
        yield 1
        with Patches():
            assert world().run_program_async(inner) == STARTS_S + 3599
        yield 2

    async def notebook() -> None:
        loop, hooks = asyncio.get_running_loop(), sys.get_asyncgen_hooks()
        with Patches():
            assert world().run_program_async(inner) == STARTS_S + 3599
            assert world().run_program(lambda: asyncio._get_running_loop()) is None
            assert asyncio.get_running_loop() is loop
        assert asyncio.get_running_loop() is asyncio.get_event_loop() is loop
        assert sys.get_asyncgen_hooks() == hooks
        assert [n async for n in numbers()] == [1, 2]
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "still turning"), 60) == "still turning"

    asyncio.run(notebook())


@pytest.mark.usefixtures("watched")
def test_a_real_thread_beside_a_world_keeps_real_time_and_real_sockets() -> None:
    begin: queue.SimpleQueue[bool] = queue.SimpleQueue()
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def beside() -> None:
        begin.get(timeout=60)
        try:
            with (
                socket.create_server(("127.0.0.1", 0)) as server,
                socket.create_connection(server.getsockname()) as one,
            ):
                other, _ = server.accept()
                with other:
                    one.sendall(b"echo")
                    other.sendall(other.recv(4).upper())
                    heard = one.recv(4)
            began_s = time.monotonic()
            time.sleep(0.001)
            found.put((heard, began_s, time.monotonic(), datetime.now(UTC)))
        except BaseException as error:  # noqa: BLE001 - the test says what it was
            found.put(error)

    def work() -> tuple[Any, float]:
        time.sleep(5)
        begin.put(True)
        return found.get(timeout=60), time.monotonic()

    with Patches():
        real = threading.Thread(target=beside)
        real.start()
        before_s, today = time.monotonic(), datetime.now(UTC)
        outcome, in_world = world().run_program(work)
        after_s = time.monotonic()
        real.join()
    heard, began_s, ended_s, day = outcome
    assert heard == b"ECHO"
    assert before_s <= began_s < ended_s <= after_s
    assert 0 <= (day - today).total_seconds() < 600
    assert in_world == STARTS_S + 5


def test_an_installed_module_that_binds_a_clock_later_is_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that holds none is passed over, until it has more names or is another module."""
    late = ModuleType("late_package")
    monkeypatch.setitem(sys.modules, "late_package", late)
    monkeypatch.setattr(
        swap, "is_library_module", lambda name: name == "late_package" or references.is_library_module(name)
    )
    real = time.sleep
    for _ in range(2):
        with Patches():
            assert time.sleep is not real
    vars(late)["sleep"] = real
    with Patches():
        assert vars(late)["sleep"] is time.sleep is not real
    assert vars(late)["sleep"] is real
    other = ModuleType("late_package")
    vars(other)["pause"] = real
    monkeypatch.setitem(sys.modules, "late_package", other)
    with Patches():
        assert vars(other)["pause"] is time.sleep
    assert vars(other)["pause"] is real


def test_an_installed_module_that_holds_a_clock_is_given_the_stand_in_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the first search only the places that held one are searched."""
    real = time.sleep
    package = ModuleType("sleepy_package")
    exec(  # noqa: S102 - a module of its own, as an import makes it
        "import collections, functools, time\n"
        "from time import sleep\n"
        "class Waits:\n"
        "    wait = staticmethod(time.sleep)\n"
        "def pause(seconds, by=time.sleep): return by\n"
        "later = functools.partial(pause, 1, time.sleep)\n"
        "made = collections.defaultdict(time.sleep)\n"
        "def keyed(*, by=time.sleep): return by\n"
        "def closing(by): return lambda: by\n"
        "closed = closing(time.sleep)\n"
        "class Keeps:\n"
        "    def wait(self, by=time.sleep): return by\n"
        "class Closes:\n"
        "    wait = staticmethod(closing(time.sleep))\n"
        "class Makes:\n"
        "    made = collections.defaultdict(time.sleep)\n",
        vars(package),
    )
    monkeypatch.setitem(sys.modules, "sleepy_package", package)
    monkeypatch.setattr(
        swap, "is_library_module", lambda name: name == "sleepy_package" or references.is_library_module(name)
    )

    def held() -> list[Any]:
        found: Any = package
        plain = [found.sleep, found.Waits.wait, found.pause(1), found.later(), found.made.default_factory]
        return [
            *plain,
            found.keyed(),
            found.closed(),
            found.Keeps().wait(),
            found.Closes.wait(),
            found.Makes.made.default_factory,
        ]

    for _ in range(3):
        with Patches():
            assert time.sleep is not real
            assert held() == [time.sleep] * 10
        assert held() == [real] * 10


REAL = {
    (module, name): f"real_{name.rstrip('_')}"
    for module in (computer, files, sockets, threads)
    for name, value in vars(module).items()
    if isinstance(value, FunctionType | type) and f"real_{name.rstrip('_')}" in vars(module)
}


@pytest.mark.parametrize(
    ("module", "name"), [each for each in REAL if each[1] != "make_invoke_excepthook"], ids=lambda each: str(each)[-22:]
)
def test_outside_of_a_world_each_stand_in_passes_all_on_to_the_real_thing(
    module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def real(*args: Any, **kwargs: Any) -> int:
        asked.append((args, kwargs))
        return 7

    monkeypatch.setattr(module, REAL[module, name], real)
    parameters = inspect.signature(getattr(module, name)).parameters.values()
    given = tuple(each.name for each in parameters if each.kind is not each.VAR_KEYWORD)
    more = {"more": 1} if any(each.kind is each.VAR_KEYWORD for each in parameters) else {}
    assert getattr(module, name)(*given, **more) in (7, None)
    assert asked == [(given, more)]
