# ruff: noqa: ARG001, E501
"""The functions of the domains, as their users would write them. They write to the ground truth, and know no chaoslab."""

from collections.abc import Callable
from typing import Any

from tests.planted.world import World

Tools = dict[str, Callable[..., Any]]


def _notify(world: World) -> Callable[..., Any]:
    def notify(whom: str, text: str) -> dict[str, Any]:
        world.do("notify", who=whom, text=text)
        return {"sent": True}

    return notify


def _last(world: World, effect: str) -> Any:
    found = [dict(arguments)["value"] for name, arguments in world.done if name == effect]
    return found[-1] if found else None


def refunds(world: World, table: dict[Any, Any], keyed: bool) -> Tools:
    """Refunds of orders."""

    def order_total(order: int) -> dict[str, Any]:
        return {"amount": table[order]}

    def refund(order: int, amount: float) -> dict[str, Any]:
        world.do("refund", who=order, value=amount)
        return {"status": "refunded", "order": order, "amount": amount}

    def refund_once(order: int, amount: float, idempotency_key: str) -> dict[str, Any]:
        world.do("refund", idempotency_key, who=order, value=amount)
        return {"status": "refunded", "order": order, "amount": amount}

    refund_once.__name__ = "refund"

    def refunds_of(order: int) -> int:
        return world.count("refund")

    def refund_receipt(order: int) -> Any:
        return _last(world, "refund")

    def cancel_refund(order: int) -> bool:
        world.undo("refund")
        return True

    return {
        "look": order_total, "act": refund_once if keyed else refund, "check": refunds_of, "receipt": refund_receipt,
        "undo": cancel_refund, "notify": _notify(world),
    }  # fmt: skip


def bookings(world: World, table: dict[Any, Any], keyed: bool) -> Tools:
    """Seats on flights."""

    def free_seat(flight: str) -> dict[str, Any]:
        return {"seat": table[flight]}

    def book(flight: str, seat: str) -> dict[str, Any]:
        world.do("book", who=flight, value=seat)
        return {"confirmed": True, "flight": flight, "seat": seat}

    def book_once(flight: str, seat: str, idempotency_key: str) -> dict[str, Any]:
        world.do("book", idempotency_key, who=flight, value=seat)
        return {"confirmed": True, "flight": flight, "seat": seat}

    book_once.__name__ = "book"

    def bookings_on(flight: str) -> int:
        return world.count("book")

    def boarding_pass(flight: str) -> Any:
        return _last(world, "book")

    def cancel_booking(flight: str) -> bool:
        world.undo("book")
        return True

    return {
        "look": free_seat, "act": book_once if keyed else book, "check": bookings_on, "receipt": boarding_pass,
        "undo": cancel_booking, "notify": _notify(world),
    }  # fmt: skip


def messages(world: World, table: dict[Any, Any], keyed: bool) -> Tools:
    """Invitations by mail."""

    def find_contact(name: str) -> dict[str, Any]:
        return {"address": table[name]}

    def send_invitation(name: str, address: str) -> dict[str, Any]:
        world.do("send_invitation", who=name, value=address)
        return {"queued": True, "to": address}

    def send_once(name: str, address: str, idempotency_key: str) -> dict[str, Any]:
        world.do("send_invitation", idempotency_key, who=name, value=address)
        return {"queued": True, "to": address}

    send_once.__name__ = "send_invitation"

    def sent_count(name: str) -> int:
        return world.count("send_invitation")

    def sent_to(name: str) -> Any:
        return _last(world, "send_invitation")

    def recall(name: str) -> bool:
        world.undo("send_invitation")
        return True

    return {
        "look": find_contact, "act": send_once if keyed else send_invitation, "check": sent_count, "receipt": sent_to,
        "undo": recall, "notify": _notify(world),
    }  # fmt: skip


def inventory(world: World, table: dict[Any, Any], keyed: bool) -> Tools:
    """Units of articles."""

    def shortage(article: str) -> dict[str, Any]:
        return {"quantity": table[article]}

    def reserve(article: str, quantity: int) -> dict[str, Any]:
        world.do("reserve", who=article, value=quantity)
        return {"reserved": quantity, "article": article}

    def reserve_once(article: str, quantity: int, idempotency_key: str) -> dict[str, Any]:
        world.do("reserve", idempotency_key, who=article, value=quantity)
        return {"reserved": quantity, "article": article}

    reserve_once.__name__ = "reserve"

    def reservations(article: str) -> int:
        return world.count("reserve")

    def reserved_quantity(article: str) -> Any:
        return _last(world, "reserve")

    def release(article: str) -> bool:
        world.undo("reserve")
        return True

    return {
        "look": shortage, "act": reserve_once if keyed else reserve, "check": reservations,
        "receipt": reserved_quantity, "undo": release, "notify": _notify(world),
    }  # fmt: skip


def transfers(world: World, table: dict[Any, Any], keyed: bool) -> Tools:
    """Transfers of money."""

    def amount_due(account: str) -> dict[str, Any]:
        return {"amount": table[account]}

    def transfer(account: str, amount: float) -> dict[str, Any]:
        world.do("transfer", who=account, value=amount)
        return {"state": "executed", "account": account}

    def transfer_once(account: str, amount: float, idempotency_key: str) -> dict[str, Any]:
        world.do("transfer", idempotency_key, who=account, value=amount)
        return {"state": "executed", "account": account}

    transfer_once.__name__ = "transfer"

    def transfers_to(account: str) -> int:
        return world.count("transfer")

    def statement(account: str) -> Any:
        return _last(world, "transfer")

    def revoke(account: str) -> bool:
        world.undo("transfer")
        return True

    return {
        "look": amount_due, "act": transfer_once if keyed else transfer, "check": transfers_to, "receipt": statement,
        "undo": revoke, "notify": _notify(world),
    }  # fmt: skip


def calendar(world: World, table: dict[Any, Any], keyed: bool) -> Tools:
    """Appointments."""

    def next_slot(title: str) -> dict[str, Any]:
        return {"slot": table[title]}

    def create_event(title: str, slot: str) -> dict[str, Any]:
        world.do("create_event", who=title, value=slot)
        return {"created": title, "slot": slot}

    def create_once(title: str, slot: str, idempotency_key: str) -> dict[str, Any]:
        world.do("create_event", idempotency_key, who=title, value=slot)
        return {"created": title, "slot": slot}

    create_once.__name__ = "create_event"

    def events_named(title: str) -> int:
        return world.count("create_event")

    def event_slot(title: str) -> Any:
        return _last(world, "create_event")

    def delete_event(title: str) -> bool:
        world.undo("create_event")
        return True

    return {
        "look": next_slot, "act": create_once if keyed else create_event, "check": events_named, "receipt": event_slot,
        "undo": delete_event, "notify": _notify(world),
    }  # fmt: skip


def weather(table: dict[str, Any]) -> Callable[..., Any]:
    """Temperatures of cities."""

    def current_weather(city: str) -> dict[str, Any]:
        return {"value": table[city]}

    return current_weather


def prices(table: dict[str, Any]) -> Callable[..., Any]:
    """Prices of shares."""

    def quote(symbol: str) -> dict[str, Any]:
        return {"value": table[symbol]}

    return quote


def rates(table: dict[str, Any]) -> Callable[..., Any]:
    """Rates of currencies."""

    def exchange_rate(pair: str) -> dict[str, Any]:
        return {"value": table[pair]}

    return exchange_rate


def deliveries(table: dict[str, Any]) -> Callable[..., Any]:
    """Dates of deliveries."""

    def track(parcel: str) -> dict[str, Any]:
        return {"value": table[parcel]}

    return track


def translations(table: dict[str, Any]) -> Callable[..., Any]:
    """Phrases in another language."""

    def translate(text: str) -> dict[str, Any]:
        return {"value": table[text]}

    return translate


def tickets(table: dict[str, Any]) -> Callable[..., Any]:
    """Counts of open tickets."""

    def backlog(team: str) -> dict[str, Any]:
        return {"value": table[team]}

    return backlog


def invoices(world: World, table: dict[Any, Any], keyed: bool) -> Tools:
    """Payments of invoices."""

    def open_amount(invoice: str) -> dict[str, Any]:
        return {"amount": table[invoice]}

    def pay(invoice: str, amount: float) -> dict[str, Any]:
        world.do("pay", who=invoice, value=amount)
        return {"paid": True, "invoice": invoice}

    def pay_once(invoice: str, amount: float, idempotency_key: str) -> dict[str, Any]:
        world.do("pay", idempotency_key, who=invoice, value=amount)
        return {"paid": True, "invoice": invoice}

    pay_once.__name__ = "pay"

    def payments_of(invoice: str) -> int:
        return world.count("pay")

    def payment_slip(invoice: str) -> Any:
        return _last(world, "pay")

    def reverse_payment(invoice: str) -> bool:
        world.undo("pay")
        return True

    return {
        "look": open_amount, "act": pay_once if keyed else pay, "check": payments_of, "receipt": payment_slip,
        "undo": reverse_payment, "notify": _notify(world),
    }  # fmt: skip


def populations(table: dict[str, Any]) -> Callable[..., Any]:
    """Inhabitants of cities."""

    def population(city: str) -> dict[str, Any]:
        return {"value": table[city]}

    return population


def distances(table: dict[str, Any]) -> Callable[..., Any]:
    """Distances to places."""

    def distance(place: str) -> dict[str, Any]:
        return {"value": table[place]}

    return distance
