"""The order of calls that begin at the same moment: drawn by dice, or stated."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from chaoslab.base.dice import Dice
from chaoslab.worlds.virtual._loop import VirtualLoop, settle
from chaoslab.worlds.virtual.machine import Machine, Waiter


class Turns:
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

    def wait(self, name: str) -> None:
        """Waits for the turn of a call of this name, in a thread."""
        if self._machine.in_thread():
            waiter = Waiter(self._machine)
            self._hold(name, waiter.wake)
            waiter.park("its turn among calls that were made together")

    async def awaited(self, name: str) -> None:
        """Waits for the turn of a call of this name, in a task."""
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualLoop):
            turn = loop.create_future()
            self._hold(name, partial(loop.tell, settle, turn, None, None))
            await turn

    def _hold(self, name: str, begin: Callable[[], object]) -> None:
        if not self._held:
            self._machine.at(self._machine.now, self._let_go)
        self._held.append((name, begin))

    def _let_go(self) -> None:
        held, self._held = self._held, []
        if len(held) > 1:
            self._times += 1
            nth, drawn = Counter[str](), list[tuple[float, str, Callable[[], object]]]()
            for name, begin in held:
                nth[name] += 1
                told = f"{name} {nth[name]}" if sum(other == name for other, _ in held) > 1 else name
                place = self._place(told) if self._dice is None else self._dice(self._times, name, nth[name]).uniform()
                drawn.append((place, told, begin))
            drawn.sort(key=lambda each: each[0])
            held = [(told, begin) for _, told, begin in drawn]
            self._told([told for told, _ in held])
        for _, begin in held:
            begin()

    def _place(self, told: str) -> float:
        """The place of a call in the order that is stated for this moment; behind all others if it is not in it."""
        stated = [*self._stated.get(self._times, ())]
        return stated.index(told) if told in stated else len(stated)
