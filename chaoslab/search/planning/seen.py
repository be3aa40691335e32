"""The kind of what the caller sees of a fault, before it was ever tried: its story is played once before a target that
does at once what it is asked."""

from functools import cache
from typing import Any, NamedTuple

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.dice import Dice
from chaoslab.core.chain import run_flow, run_synchronously
from chaoslab.core.events import Event
from chaoslab.core.exchange import Call, Failure, Reply, TrialContext, UserActs
from chaoslab.core.fault import get_trait
from chaoslab.search.planning.cells import Cell, load_fault_class

ERROR, UNUSABLE, WRONG, ALTERED = "an error", "nothing usable", "a wrong value", "an altered answer"
LATE, DUPLICATE = "a late answer", "a duplicate"
PATIENCE_S = 60.0
"""The seconds that a caller waits."""
ANSWER = {"id": "A-17", "name": "Ann", "value": 12, "list": [1, 2, 3]}


class Seen(NamedTuple):
    """`what`: what the caller sees. `changes`: the target changes something. `doubt`: that was done, and the caller
    cannot tell, or it was done twice."""

    what: str
    changes: bool = False
    doubt: bool = False


def classify_what_caller_sees(cell: Cell, *, changes: bool) -> Seen:
    """The kind of what the caller of the cell's target sees. `changes`: the target has effects."""
    kind, is_done = _simulate_fault(cell.fault, cell.params, cell.dose)
    return Seen(kind, changes, changes and is_done and kind in (ERROR, UNUSABLE, DUPLICATE))


@cache
def _simulate_fault(fault: str, params: tuple[tuple[str, Any], ...], dose: float | None) -> tuple[str, bool]:
    """The kind of end that the caller sees, and if the target did what it was asked. A fault that is not installed here
    is an error."""
    kind = load_fault_class(fault)
    if kind is None:
        return ERROR, False
    call, target = Call("it", "it", "t", 1, 1, value={}), _Target()
    target.reply = call.answered_with(ANSWER)
    try:
        instance = kind(**Cell("it", fault, params=params, dose=dose).parameters_for_inject)
        reply = run_synchronously(run_flow(instance.draw(Dice(0, fault)).flow(call, TrialContext()), target))
    except Failure:
        return ERROR, target.times > 0
    except BaseException as error:  # noqa: BLE001 - a package's own, which is told where it is run
        reraise_unless_foreign(error)
        return ERROR, target.times > 0
    return _classify_seen_reply(kind, reply, target), target.times > 0


def _classify_seen_reply(kind: Any, reply: Reply, target: "_Target") -> str:
    if reply.status >= 400:
        return ERROR
    if get_trait(kind, "redelivers") or target.times > 1:
        return DUPLICATE
    if get_trait(kind, "leaves") in ("nothing", "garbage"):
        return UNUSABLE
    if target.waited_s or get_trait(kind, "delays") or get_trait(kind, "dose"):
        return LATE
    value = reply.value
    if isinstance(value, dict) and value != ANSWER and _map_value_types(value) == _map_value_types(ANSWER):
        return WRONG
    return ALTERED


def _map_value_types(value: dict[str, Any]) -> dict[str, type]:
    return {key: type(field_value) for key, field_value in value.items()}


class _Target:
    """Does at once what it is asked, for a caller of some patience."""

    times, waited_s = 0, 0.0
    reply: Reply

    async def send(self, call: Call) -> Reply:  # noqa: ARG002
        self.times += 1
        return self.reply

    async def wait(self, delay_s: float) -> None:
        self.waited_s += delay_s
        if self.waited_s >= PATIENCE_S:
            raise Failure("timed_out")

    def advance_clock(self, by_s: float) -> str:  # noqa: ARG002
        return ""

    def perform_user_act(self, step: UserActs) -> bool:  # noqa: ARG002
        return False

    def log_flow_event(self, event: Event) -> None:
        """It has no log."""
