"""The check that faults arrive: each is fired through each seam in virtual time, and those that met their caller are
counted. Nothing here is mocked: a caller calls a function, a client asks a service over HTTP, a client asks a model, an
agent touches files and runs commands. One trial of many calls is one cell of the check: a fault, a seam and a
chance."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from chaoslab.analysis.measures.delivery import DeliveryCell, DeliveryCounts
from chaoslab.base.registry import list_plugins
from chaoslab.core.events import CallFinished, Event, FaultEvent, FaultInjected, FaultScheduled, FaultWitnessed
from chaoslab.core.fault import GROUP, get_trait, load_fault
from chaoslab.core.inject import check_injections, inject
from chaoslab.core.plan import Injection
from chaoslab.execution import _arrival as arrival
from chaoslab.execution._delivery_calls import get_fault_seams

CALLS = 20_000
"""The calls of each fault through each seam, shared among the chances."""
SLOW_CALLS = 400
"""The calls of a fault that kills the agent, of which each death takes milliseconds, or that has it asked again, and
those that touch files or run commands, in real time."""
SHARES = {0.02: 0.45, 0.2: 0.45, 1.0: 0.1}
"""Chance → its share of the calls. Where each call is hit, one that is not is proof enough."""
CHANCES = tuple(SHARES)
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "budget": {"calls_max": 10.0},
    "flapping": {"up_s": 0.15, "down_s": 0.15},
    "oversized": {"bytes": 2_000},
    "overflow_context": {"tokens": 200},
}
"""The parameters of a fault that does nothing without them, or whose size only makes the check slower."""


def plan_delivery_cells(faults: Sequence[str] = (), *, calls: int = CALLS, seed: int = 1) -> list[DeliveryCell]:
    """The cells of these faults, of all by default. Raises LookupError: no fault of that name."""
    for fault in faults:
        load_fault(fault)
    if repeated_fault := next((fault for fault in faults if faults.count(fault) > 1), None):
        raise LookupError(f"{repeated_fault} is named twice: name it once")
    return [
        # At least one, since a tenth of a few calls rounds to none.
        DeliveryCell(fault, seam, chance, max(1, round(share * _get_call_limit(fault, seam, calls))), seed)
        for fault in faults or list_plugins(GROUP)
        for seam in get_fault_seams(fault)
        for chance, share in SHARES.items()
    ]  # fmt: skip


def _get_call_limit(fault: str, seam: str, calls: int) -> int:
    is_slow = seam == "machine" or get_trait(load_fault(fault), "of_agent") or get_trait(load_fault(fault), "of_user")
    return min(calls, SLOW_CALLS) if is_slow else calls


@dataclass(frozen=True)
class DeliveryCheck:
    """The check as work for an executor: `DeliveryCell` → `DeliveryCounts`."""

    def get_work_item_name(self, cell: DeliveryCell) -> str:
        return f"{cell.fault} through the seam {cell.seam}"

    @contextmanager
    def open_runner(self) -> Iterator[Callable[[DeliveryCell], DeliveryCounts]]:
        """A context in which the check can be done."""
        yield count_deliveries


def count_deliveries(cell: DeliveryCell) -> DeliveryCounts:
    """Fires the fault of a cell."""
    if refusal_text := find_refusal_reason(cell):
        return DeliveryCounts(cell, refusal=refusal_text)
    seam, targets = get_fault_seams(cell.fault)[cell.seam]
    trial = seam(cell, _make_injection(cell, targets))
    if trial.error is not None:
        raise RuntimeError(f"{cell}: {trial.error!r}") from trial.error
    eligible, stages = 0, Counter[type[Event]]()
    # The events alone: to make records of so many calls would only take time.
    for event in trial._iterate_events():
        if isinstance(event, CallFinished):
            eligible += len(event.rolled)
        elif isinstance(event, FaultEvent):
            stages[type(event)] += 1
    pieces = (
        # Once a fault, where every call is hit, and at the seam that sends bytes.
        arrival.describe_piece_mismatch(cell.fault, cell.seed) if (cell.seam, cell.chance) == ("service", 1.0) else None
    )
    scheduled, injected, witnessed = stages[FaultScheduled], stages[FaultInjected], stages[FaultWitnessed]
    return DeliveryCounts(cell, eligible, scheduled, injected, witnessed, unlike=pieces)


def _make_injection(cell: DeliveryCell, targets: Sequence[str]) -> Injection:
    return inject(cell.fault, targets, chance=cell.chance, **ARGUMENTS.get(cell.fault, {}))


def find_refusal_reason(cell: DeliveryCell) -> str:
    """The line by which the cell's seam does not take its fault; empty if it does."""
    _, targets = get_fault_seams(cell.fault)[cell.seam]
    models = targets if cell.seam == "model" else ()
    functions = targets if cell.seam in ("function", "machine") else ()
    try:
        injection = _make_injection(cell, targets)
        check_injections(
            [injection], targets, turns=2, models=models, functions=functions, mortal=True, user=[cell.fault]
        )
    except ValueError as error:
        return str(error)
    return ""


def list_example_stories_by_seam(fault: str) -> list[tuple[str, list[str]]]:
    """A call that meets the fault at each seam that takes it: the seam, and lines of the trial's story."""
    examples = []
    for seam, (call_seam, targets) in get_fault_seams(fault).items():
        cell = DeliveryCell(fault, seam, 1.0, SHOWN_CALLS)
        if find_refusal_reason(cell):
            continue
        trial = call_seam(cell, _make_injection(cell, targets))
        injected_event = next((event for _, event in trial.history.find_events(FaultInjected)), None)
        if injected_event is not None:
            label = f" {injected_event.target} {injected_event.request}.{injected_event.attempt} "
            examples.append((seam, [line for line in trial.story().splitlines() if label in line]))
    return examples


SHOWN_CALLS = 30
"""The calls among which the first one is shown that meets a fault."""
