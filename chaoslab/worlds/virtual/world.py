"""The world of one trial: its own machine, network and chance, so that no earlier trial affects it.
`CallTurns` is the order of calls that begin at the same moment: drawn by dice, or stated."""

import asyncio
import gc
import socket
import sqlite3
import sys
from asyncio import _get_running_loop, _set_running_loop
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar, cast

from greenlet import getcurrent

from chaoslab.base.clock import skew
from chaoslab.base.dice import Dice
from chaoslab.seams.functions.seam import CALLS_MAX
from chaoslab.worlds.virtual.machine.context import ProcessEnded, Unsupported, within
from chaoslab.worlds.virtual.machine.machine import STARTS_S, Hung, Killed, Machine, Waiter
from chaoslab.worlds.virtual.network._loop import VirtualLoop, close_coroutine, settle_future
from chaoslab.worlds.virtual.network._loop import settle_future as resolve
from chaoslab.worlds.virtual.network._sockets import Sockets
from chaoslab.worlds.virtual.network.elsewhere import OutsideHosts
from chaoslab.worlds.virtual.network.network import TRIP_S, Address, Network
from chaoslab.worlds.virtual.patches import chance, kept_locks


class CallTurns:
    """Holds each call until nothing else happens at its moment, and lets all that have come by then begin in an order
    that is stated for this moment, or else drawn by named dice; without dice in that of asking. `told` is given the
    names of several calls in that order, those of one name with their number in the order of asking."""

    def __init__(
        self,
        machine: Machine,
        order: Dice | Mapping[int, Sequence[str]],
        told: Callable[[Sequence[str]], object],
    ) -> None:
        """`order`: dice, or the names in their order by the number of the moment, from 1, as `told` is given them."""
        self._machine, self._told = machine, told
        self._dice = order if isinstance(order, Dice) else None
        self._stated = {} if isinstance(order, Dice) else order
        self._held: list[tuple[str, Callable[[], object]]] = []
        self._times = 0

    def wait_for_turn(self, name: str) -> None:
        """Waits for the turn of a call of this name, in a thread."""
        if self._machine.is_in_virtual_thread():
            waiter = Waiter(self._machine)
            self._queue_call(name, waiter.wake)
            waiter.park("its turn among calls that were made together")

    async def await_turn(self, name: str) -> None:
        """Waits for the turn of a call of this name, in a task."""
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualLoop):
            turn = loop.create_future()
            self._queue_call(name, partial(loop.call_if_open, settle_future, turn, None, None))
            await turn

    def _queue_call(self, name: str, begin: Callable[[], object]) -> None:
        if not self._held:
            self._machine.schedule_at(self._machine.now, self._start_queued_calls)
        self._held.append((name, begin))

    def _start_queued_calls(self) -> None:
        waiting, self._held = self._held, []
        if len(waiting) > 1:
            self._times += 1
            nth, drawn = Counter[str](), list[tuple[float, str, Callable[[], object]]]()
            for name, begin in waiting:
                nth[name] += 1
                label = f"{name} {nth[name]}" if sum(other_name == name for other_name, _ in waiting) > 1 else name
                rank = (
                    self._find_stated_rank(label)
                    if self._dice is None
                    else self._dice(self._times, name, nth[name]).uniform()
                )
                drawn.append((rank, label, begin))
            # By rank alone: functions have no order to break a tie.
            drawn.sort(key=lambda entry: entry[0])
            waiting = [(label, begin) for _, label, begin in drawn]
            self._told([label for label, _ in waiting])
        for _, begin in waiting:
            begin()

    def _find_stated_rank(self, label: str) -> float:
        """The place of a call in the order that is stated for this moment; behind all others if it is not in it."""
        order = [*self._stated.get(self._times, ())]
        return order.index(label) if label in order else len(order)


T = TypeVar("T")
Again = Callable[[], Callable[[], Any] | None]
DEADLINE_S = 3600.0
FIRST = "the agent"
"""The name of the first thread."""
_1970 = datetime(1970, 1, 1, tzinfo=UTC)


class World:
    """The world of one trial. `now` is its wall clock's time at the start."""

    def __init__(
        self,
        *names: object,
        now: datetime,
        deadline_s: float = DEADLINE_S,
        calls_max: int = CALLS_MAX,
        elsewhere: OutsideHosts | None = None,
    ) -> None:
        """`names`: the names for its chance, a run's seed first, then the trial. `elsewhere`: what becomes of other
        hosts; None: they are refused."""
        self.machine = Machine(deadline_s=deadline_s, calls_max=calls_max)
        self.network = Network(self.machine)
        self.sockets = Sockets()
        self.loops: dict[int, VirtualLoop] = {}
        """The event loops that are open, by id."""
        self.left_tasks: list[asyncio.Task[Any]] = []
        """The tasks that were pending when their loop was closed. Held, since a coroutine that is freed runs on to its
        end, at any moment."""
        self.machine.endings += [self.sockets.end_all_connections, self._close_loops, self._release_locks]
        self.closings: list[Callable[[], object]] = []
        """Called in a thread of the world when the work is over and `over` was called: services shut down."""
        self.elsewhere = elsewhere or OutsideHosts("refuse", ())
        self.ended_by: Unsupported | ProcessEnded | None = None
        """The first thing that the program did and no trial goes on after."""
        self._unheard: dict[Address, Unsupported | None] | None = None if elsewhere is None else {}
        """The addresses of this computer that were asked for, and at which nobody had listened, with what is raised if
        nobody will; None if it may be unreachable. None if all of them may be."""
        self._settling = FIRST
        """The beginning of the line about the wait for quiet."""
        self.default_timeout_s: float | None = None
        self._seed = names[0]
        self.dice = Dice(*names)
        self.labels = Dice(names[0], "labels")
        """Those of ids that decide nothing, equal in all trials of a run."""
        self.kept: dict[str, Any] = {}  # state of the fakes, for this world alone
        # Whole microseconds: a datetime has no more.
        self._epoch_ns = (now - _1970) // timedelta(microseconds=1) * 1000 - round(STARTS_S * 1e9)

    def time_ns(self) -> int:
        """The wall clock, in nanoseconds since 1970; a wrong one where a fault has moved it."""
        right_ns, wrong = self._epoch_ns + round(self.machine.read_clock() * 1e9), skew.get()
        return right_ns if wrong is None else wrong.shift_time(right_ns)

    def time(self) -> float:
        """The wall clock, in seconds since 1970."""
        return self.time_ns() / 1e9

    def create_loop(self) -> VirtualLoop:
        return VirtualLoop(self)

    def _close_loops(self) -> None:
        for loop in self.loops.values():
            self.left_tasks += loop.list_pending_tasks()
        if self.left_tasks:
            # In a thread each, which the machine can end: a coroutine may call the lab's functions again and again.
            close = partial(close_coroutine, loop=self.create_loop())
            for task in self.left_tasks:
                self.machine.run_last_thread(partial(close, task), name="the end of a task")
        self.left_tasks.clear()
        for loop in list(self.loops.values()):
            loop.close_with_trial()

    def _release_locks(self) -> None:
        if self.machine.left_behind:
            kept_locks.free_kept_locks(self.machine)

    def resolve_host(self, host: Any, port: Any) -> list[tuple[Any, ...]]:
        """See `socket.getaddrinfo`. Raises Unsupported: this network has no such name, and it is refused. OSError: it
        is unreachable."""
        name = host.decode() if isinstance(host, bytes) else str(host)
        try:
            addresses = self.network.resolve_host(host, port)
        except LookupError as unknown:
            error = self.elsewhere.build_name_error(str(unknown.args[0]))
        else:
            if (report := self.elsewhere.build_telemetry_error(name)) is not None:
                self._pass_trip_time(name)
                raise report
            address = addresses[0][4]
            # A gate is of a name that is looked up; an address needs no lookup.
            gate = self.network.gates.get(address) if name != address[0] else None
            tell_client = gate("lookup") if gate is not None else None
            if tell_client is None:
                return addresses
            error = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            tell_client()
        self._pass_trip_time(name)
        raise error

    def _pass_trip_time(self, host: str) -> None:
        """Lets the time of a question pass that nobody answers, so that the deadline bounds a loop of them."""
        self.machine.steps.count_request(host)
        if self.machine.is_in_virtual_thread():
            # In a thread only: the machine itself cannot wait.
            self.machine.sleep(TRIP_S)

    def normalize_address(self, address: Any) -> Address:
        """The address in its canonical form, if there is a possible listener. Raises Unsupported: it leads out of this
        network, and that is refused. OSError: it is unreachable."""
        host, port = str(address[0]), int(address[1])
        if self.network.find_address(host) not in (None, host):
            host = str(self.resolve_host(host, port)[0][4][0])
        host_address = self.network.find_address(host)
        if host_address is None or not (
            # All of loopback is this computer, whether or not somebody listens.
            host_address.startswith("127.") or host_address == "::1" or self.network.is_known_host(host)
        ):
            error = self.elsewhere.build_address_error(host, port)
            self._pass_trip_time(host)
            raise error
        if self._unheard is not None and (host_address, port) not in (*self.network.heard, *self._unheard):
            before = self.ended_by
            self._unheard[host_address, port] = self.elsewhere.build_no_listener_error(host, port)
            self.ended_by = before  # somebody may listen there yet
        return host_address, port

    @property
    def warnings(self) -> list[str]:
        """Warnings about what the program asked of this world."""
        return self.elsewhere.warnings

    @property
    def has_program_drawn_chance(self) -> bool:
        """True if a program has drawn chance of its own."""
        return chance.has_world_drawn_chance(self)

    def build_call_turns_if_virtual(
        self, order: Dice | Mapping[int, Sequence[str]], told: Callable[[Sequence[str]], object]
    ) -> CallTurns:
        """The turns of calls that begin at the same moment; see `CallTurns`."""
        return CallTurns(self.machine, order, told)

    def check_limits_and_grant_calls(self, function: str) -> int:
        """The number of calls that the running thread may make until it must ask again, this one included."""
        return self.machine.steps.calls.grant_steps(f"calls {function}", "calls")

    def end_runaway_trial(self, reason: str) -> None:
        """Ends an endless trial from a thread that answers it."""
        self.machine.end_run_soon(reason, but=getcurrent())

    def enter_world(self) -> AbstractContextManager[None]:
        """A context in which this thread of the process is in the world, and uses its clocks and its chance."""
        return within(self)

    def suspend_world(self) -> AbstractContextManager[None]:
        """A context in which this thread is in no world, while the clock of this one stands still."""
        return within(None)

    @contextmanager
    def isolate_import(self, module: str) -> Iterator[None]:
        """A context in which chance belongs to the module. So the module gets the same values in whichever trial it is
        imported first, and takes none from that trial."""
        before = self.dice, self.labels, self.kept
        self.dice, self.labels, self.kept = Dice(self._seed, "import", module), Dice(self._seed, "labels", module), {}
        try:
            yield
        finally:
            self.dice, self.labels, self.kept = before

    def kill_program(self) -> None:
        """Kills the program's process, and with it the calling thread, if that is the program's."""
        self.machine.kill_program()

    def interrupt_program_if_possible(self) -> None:
        """Ends the wait of the first thread with a CancelledError, if it waits."""
        self.machine.interrupt_program(asyncio.CancelledError())

    def run_program(
        self, work: Callable[[], T], *, over: Callable[[], object] = lambda: None, again: Again = lambda: None
    ) -> T:
        """Runs `work` as the first thread of this world and returns its result; then calls `over` and ends the
        remaining threads. `again`: asked for the work of a fresh process when the program's was killed; None if it
        stays dead, and the result is None.

        Raises:
            Hung: it would never return.
            Unsupported: something real was touched, even if the program swallowed the error.
            ProcessEnded: the program ended its process, likewise.
        """
        outcome: list[T] = []
        failed: list[BaseException] = []

        def record_outcome(work: Callable[[], Any]) -> None:
            try:
                outcome.append(work())
            except BaseException as error:  # noqa: BLE001 - it is raised again in the caller
                # A dead process raises no errors of its own: it is told to end only now.
                if not self.machine.is_caller_dead():
                    failed.append(error)

        def run_processes() -> None:
            process: Callable[[], Any] | None = work
            while process is not None:
                try:
                    self.machine.run(partial(record_outcome, process), name=FIRST)
                    return
                except Killed:
                    self._clean_up_killed_process()
                    process = again()

        try:
            with self.enter_world(), _hide_running_loop():
                # Services shut down before the machine stops, which would end them at their place.
                try:
                    try:
                        run_processes()
                    finally:
                        over()
                    self._shut_down_services()
                finally:
                    self.machine.stop()
        except Exception as error:
            self._raise_trial_end_cause(error)  # for example a hang of threads that wait for a refused thing
            raise
        self._raise_trial_end_cause(None)
        if failed:
            raise failed[0]
        return outcome[0] if outcome else cast(T, None)

    def _clean_up_killed_process(self) -> None:
        """Takes out of the world what ends with a process that was killed: its threads, its locks, and the transactions
        that it has not committed. Its connections are their services' matter (`ServiceSeam.hang_up`)."""
        self.machine.remove_killed_threads()
        kept_locks.free_kept_locks(self.machine)
        kinds = _collect_subclasses(sqlite3.Connection)
        # A connection refers to its class. To list all objects, 100,000 of them, takes twice as long.
        for referrer in gc.get_referrers(*kinds):
            if type(referrer) in kinds:
                with suppress(sqlite3.Error):  # closed, or of another thread of the process
                    referrer.rollback()

    def wait_until_quiet(self, within_s: float, busy: Callable[[], Sequence[str]]) -> None:  # noqa: ARG002 - the machine knows
        """Lets everything else go on until nothing is due any more, or for so long; for the first thread."""
        machine = self.machine
        if not machine.has_nothing_due():
            waiter = Waiter(machine)
            machine.notify_when_quiet(waiter.wake, within_s=within_s)
            waiter.park(self._settling)

    async def await_quiet(self, within_s: float, busy: Callable[[], Sequence[str]]) -> None:  # noqa: ARG002
        """The same for the first thread's own loop, whose tasks go on too."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        task = asyncio.current_task()
        # A loop that has nothing else to do is as quiet as its machine.
        if task is not None and not (self.machine.has_nothing_due() and loop.has_single_task()):
            self._settling, settled = f"{FIRST}: {task.get_name()} ", loop.create_future()
            self.machine.notify_when_quiet(partial(loop.call_if_open, resolve, settled, None, None), within_s=within_s)
            await settled

    def list_pending_waits(self, busy: Callable[[], Sequence[str]]) -> list[str]:
        waiting = self.machine.pending
        if waiting and not busy():
            waiting = waiting[: self.machine.pending_since]
        # Its own wait for quiet is no work.
        return [line for line in waiting if not line.startswith(self._settling)]

    def run_without_trial_time(self, work: Callable[[], None]) -> None:
        """Runs the work on a thread of its own until it ends, or would never end. It takes none of the trial's time."""
        now = self.machine.now
        with suppress(Hung):
            self.machine.run_until_thread_ends(self.machine.start_thread(work, name="the state"))
        self.machine.now = now

    def _shut_down_services(self) -> None:
        """Lets services shut down, for as long as the deadline allows. That takes none of the trial's time."""
        ended_at = self.machine.now
        for closing in self.closings:
            with suppress(Hung):
                self.machine.run_until_thread_ends(self.machine.start_thread(closing, name="the shutdown of a service"))
        self.machine.now = ended_at

    def _raise_trial_end_cause(self, cause: Exception | None) -> None:
        """Raises what ended the trial, even if the program swallowed it: such as an address of this computer at which
        nobody has listened in this world, so that the program's own backend was meant."""
        # The program's own end says most, then that of another thread, then what nobody has answered.
        unheard_items = (self._unheard or {}).items()
        unheard = (error for address, error in unheard_items if error is not None and address not in self.network.heard)
        if ending := self.ended_by or self.machine.foreign or next(unheard, None):
            raise ending from cause

    def run_program_async(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        over: Callable[[], object] = lambda: None,
        again: Again = lambda: None,
    ) -> T:
        """Runs a coroutine in the same way, on its own event loop."""

        def run_on_loop() -> T:
            loop = self.create_loop()
            try:
                asyncio.set_event_loop(loop)
                return loop.run_until_complete(work())
            finally:
                try:
                    loop.end_tasks()
                finally:
                    asyncio.set_event_loop(None)
                    loop.close()

        return self.run_program(run_on_loop, over=over, again=again)


def _collect_subclasses(kind: type) -> set[type]:
    """A class and those derived from it."""
    return {kind}.union(*map(_collect_subclasses, kind.__subclasses__()))


@contextmanager
def _hide_running_loop() -> Iterator[None]:
    """A context that hides a loop which already runs in this thread, such as a notebook's, and restores it."""
    running, hooks = _get_running_loop(), sys.get_asyncgen_hooks()
    # asyncio keeps a thread's loop here; it has no function that takes it away without a warning.
    of_thread = asyncio.get_event_loop_policy()._local.__dict__  # type: ignore[attr-defined]
    before = dict(of_thread)
    _set_running_loop(None)
    try:
        yield
    finally:
        of_thread.clear()
        of_thread.update(before)
        sys.set_asyncgen_hooks(*hooks)
        _set_running_loop(running)
