"""The functions of the domains, with the names that their users would give them.

They write to the ground truth, and know no chaoslab.
"""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

from tests.planted.world import World

Tools = dict[str, Callable[..., Any]]


@dataclass(frozen=True)
class Domain:
    """The names of a domain's functions and of their parameters, and what the one with an effect returns."""

    who: str
    value: str
    look: str
    act: str
    check: str
    receipt: str
    undo: str
    done: Callable[[Any, Any], dict[str, Any]]


DOMAINS = {
    "refunds": Domain(
        "order", "amount", "order_total", "refund", "refunds_of", "refund_receipt", "cancel_refund",
        lambda order, amount: {"status": "refunded", "order": order, "amount": amount},
    ),
    "bookings": Domain(
        "flight", "seat", "free_seat", "book", "bookings_on", "boarding_pass", "cancel_booking",
        lambda flight, seat: {"confirmed": True, "flight": flight, "seat": seat},
    ),
    "messages": Domain(
        "name", "address", "find_contact", "send_invitation", "sent_count", "sent_to", "recall",
        lambda _, address: {"queued": True, "to": address},
    ),
    "inventory": Domain(
        "article", "quantity", "shortage", "reserve", "reservations", "reserved_quantity", "release",
        lambda article, quantity: {"reserved": quantity, "article": article},
    ),
    "transfers": Domain(
        "account", "amount", "amount_due", "transfer", "transfers_to", "statement", "revoke",
        lambda account, _: {"state": "executed", "account": account},
    ),
    "calendar": Domain(
        "title", "slot", "next_slot", "create_event", "events_named", "event_slot", "delete_event",
        lambda title, slot: {"created": title, "slot": slot},
    ),
}  # fmt: skip

READINGS = {
    "weather": ("current_weather", "city"), "prices": ("quote", "symbol"), "rates": ("exchange_rate", "pair"),
    "deliveries": ("track", "parcel"), "translations": ("translate", "text"), "tickets": ("backlog", "team"),
}  # fmt: skip
"""The function of each domain of reading, and its parameter."""


def _called(function: Callable[..., Any], name: str, *parameters: str, returns: Any = dict[str, Any]) -> Any:
    """The function, under this name and with these parameters."""
    given: Any = function
    given.__name__ = given.__qualname__ = name
    given.__annotations__ = {"return": returns}
    found = [Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in parameters]
    given.__signature__ = Signature(found, return_annotation=returns)
    return given


def effects(domain: str, world: World, table: dict[Any, Any], *, keyed: bool) -> Tools:
    """The functions of a domain of effects, by role."""
    of = DOMAINS[domain]

    def look(who: Any) -> Any:
        return {of.value: table[who]}

    def act(who: Any, value: Any, key: str | None = None) -> Any:
        world.do(of.act, key, who=who, value=value)
        return of.done(who, value)

    def check(_: Any) -> Any:
        return world.count(of.act)

    def receipt(_: Any) -> Any:
        found = [dict(arguments)["value"] for name, arguments in world.done if name == of.act]
        return found[-1] if found else None

    def undo(_: Any) -> Any:
        world.undo(of.act)
        return True

    def notify(whom: str, text: str) -> dict[str, Any]:
        world.do("notify", who=whom, text=text)
        return {"sent": True}

    return {
        "look": _called(look, of.look, of.who),
        "act": _called(act, of.act, of.who, of.value, *["idempotency_key"] * keyed),
        "check": _called(check, of.check, of.who, returns=int),
        "receipt": _called(receipt, of.receipt, of.who, returns=Any),
        "undo": _called(undo, of.undo, of.who, returns=bool),
        "notify": notify,
    }


def reading(domain: str, table: dict[Any, Any]) -> Callable[..., Any]:
    """The function of a domain of reading."""

    def look(who: Any) -> Any:
        return {"value": table[who]}

    name, who = READINGS[domain]
    found: Callable[..., Any] = _called(look, name, who)
    return found
