"""The wire under an answer: its bytes, head and framing too, go through the toxics of the faults that act on bytes. A
lane has the same toxics, so such a fault is the same at every seam."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from math import inf

from chaoslab.base.dice import Dice
from chaoslab.core.attempt import Attempt
from chaoslab.core.chain import ActiveFault
from chaoslab.core.exchange import Failure
from chaoslab.core.fault import make_broken_fault_error
from chaoslab.core.limits import LimitGuard
from chaoslab.core.pipe import Pipeline, Signal, Timed
from chaoslab.core.stream import WatchedPipe
from chaoslab.wire import fault_lifecycle, toxics

Write = Callable[[bytes], Awaitable[object]]


class WireBytes:
    """The bytes of one attempt's answer on their way. `write` sends a piece to the client. `seed`: the plan's."""

    def __init__(
        self, attempt: Attempt, faults: Iterable[ActiveFault], write: Write, *, seed: int, guard: LimitGuard
    ) -> None:
        self._attempt, self._write, self._now = attempt, write, attempt.clock.monotonic
        self._seed, self._guard = seed, guard
        self._line, now = Pipeline(), self._now()
        self._left, self._ending = 0, False
        """The bytes taken in and not sent yet; the answer's own end was taken in."""
        for active in faults:
            pipe = WatchedPipe(self._make_toxic_pipeline(active, now))
            # Only what the pipe changed was a fault, as with streams.
            pipe.on_change = partial(self._note_injected_fault, active)
            pipe.blame = partial(make_broken_fault_error, active.fault_name, "toxics")
            self._line.add(active.injection, pipe, now)

    def _make_toxic_pipeline(self, active: ActiveFault, now: float) -> Pipeline:
        """A fault's toxics on the answer's direction."""
        call = self._attempt.call
        # By the attempt, so that one injection less moves no other draw.
        dice = Dice(self._seed, call.trial, active.injection, call.target, call.request, call.attempt)
        line = Pipeline()
        for info in fault_lifecycle.build_lane_toxics([active]):
            # A lane's upstream toxics act on the request; here only the answer has bytes.
            if info.stream == "downstream":
                try:
                    kind = toxics.load_toxic(info.type)
                except LookupError as error:  # a user's Toxiproxy may know it, the embedded one does not
                    raise make_broken_fault_error(active.fault_name, "toxics", error) from None
                line.add(info.name, kind(**info.attributes).pipe(dice("bytes", info.name), now), now)
        return line

    def _note_injected_fault(self, active: ActiveFault) -> None:
        if not active.injected:
            active.injected = True
            self._attempt.handle_injected_fault(active)

    async def send_through_faults(self, data: bytes) -> None:
        """Sends bytes piece by piece, each when it is due; until then nothing more is read from the service. Raises
        Failure: the connection ends in this way."""
        self._left += len(data)
        self._line.feed(Timed(self._now(), data))
        while self._left:
            await self._send_next_piece()

    async def end_connection(self) -> None:
        """Ends a connection whose end is that of the answer, when it is due. Raises Failure: as
        `send_through_faults`."""
        self._ending = True
        self._line.feed(Timed(self._now(), Signal.END))
        while not await self._send_next_piece():
            pass

    async def _send_next_piece(self) -> bool:
        """Lets out the next piece, or waits for it. True at the answer's own end."""
        due = self._line.poll(self._now(), 1)
        if not due:
            wake_s = self._line.find_next_due()
            await self._attempt.wait(inf if wake_s is None else max(0.0, wake_s - self._now()))
            # A lever or a lease may end all faults while bytes wait: they go on at once then.
            if self._guard.can_end_faults and self._guard.find_fault_end_reason():
                due = self._line.release_all_items(self._now())
        for _, item in due:
            if isinstance(item, bytes):
                self._left -= len(item)
                await self._write(item)
            # The answer's own end, with all its bytes sent; any other end is a toxic's.
            elif item is Signal.END and self._ending and not self._left:
                return True
            else:
                raise Failure("reset" if item is Signal.RESET else "closed")
        return False
