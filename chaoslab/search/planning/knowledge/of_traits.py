"""The chances that a fault's traits and its story say of it."""

from functools import cache
from typing import Any

from chaoslab.base.boundary import let_through
from chaoslab.base.dice import Dice
from chaoslab.core.chain import at_once, play
from chaoslab.core.events import Event
from chaoslab.core.exchange import Call, Failure, Reply, TrialContext
from chaoslab.core.fault import trait
from chaoslab.search.planning.cells import traits_of
from chaoslab.search.planning.evidence import HARM

LIKELY, ELSE = 0.3, 0.1
"""The chance of harm where a call is likely to be repeated in vain or a value to be believed, and anywhere else."""
PATIENCE_S = 60.0
"""The seconds that a caller waits."""


class OfTraits:
    """A fault in silence deceives; an error that nobody expects breaks; a short delay is survived.

    Harm is done where something is changed. So it is likely at a target that changes something, if that was done and
    its caller cannot tell, since it may ask again; and at one that is read, if another value comes in silence, since
    it may be acted on.
    """

    def prior(self, fault: str, *, how: str, changes: bool, what: str) -> tuple[float, float] | None:
        found = traits_of(fault)
        if found is None:
            return None
        silent, value = bool(trait(found, "corrupts")), trait(found, "leaves") == "value"
        slow = bool(trait(found, "delays") or trait(found, "dose"))
        if what == HARM:
            likely = trait(found, "corrupts") == "call" or _repeated(fault) if changes else silent
            return (LIKELY if likely else ELSE) * (0.5 if slow else 1.0), 2.0
        chance = 0.5 if silent or value else 0.15 if slow else 0.3
        return chance * (1.3 if how == "always" else 1.0), 2.0


@cache
def _repeated(fault: str) -> bool:
    """True if the target does what it is asked, and the caller gets no answer that says so, by the fault's story."""
    kind: Any = traits_of(fault)
    call, target = Call("it", "it", "t", 1, 1, value={}), _Target()
    target.reply = call.answered_with({"value": 1})
    try:
        story = kind().draw(Dice(0, fault)).flow(call, TrialContext())
        reply = at_once(play(story, target))
    except Failure:
        return target.done
    except BaseException as error:  # noqa: BLE001 - a package's own, which is told where it is run
        let_through(error)
        return False
    return target.done and (reply.status >= 400 or trait(kind, "leaves") in ("nothing", "garbage"))


class _Target:
    """Does at once what it is asked, for a caller of some patience."""

    done = False
    reply: Reply

    async def send(self, call: Call) -> Reply:  # noqa: ARG002
        self.done = True
        return self.reply

    async def wait(self, delay_s: float) -> None:
        if delay_s >= PATIENCE_S:
            raise Failure("timed_out")

    def ahead(self, by_s: float) -> str:  # noqa: ARG002
        return ""

    def note(self, event: Event) -> None:
        """It has no log."""
