# ruff: noqa: E501
"""The domains: what an agent is asked, the functions or services it has, and the texts about it."""

import json
import random
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.planted.tools_of import effects, reading
from tests.planted.world import Entry, World, entry

Phrases = dict[str, str]


@dataclass
class Job:
    """One task in a domain. The callables of a job of effects and of a job of reading differ; each has what it needs."""

    domain: str
    world: World
    prompt: str
    asked: list[Entry]
    truth: str
    phrases: Callable[[str], Phrases]
    """The texts for a stated value or figure."""
    call: dict[str, Callable[..., Any]]
    tools: list[Callable[..., Any]] = field(default_factory=list)
    reads: list[Callable[..., Any]] = field(default_factory=list)
    services: dict[str, Callable[..., Any]] = field(default_factory=dict)
    target: dict[str, str] = field(default_factory=dict)
    """The name of the function or service behind each role, for a fault."""
    value: Any = None
    other: Any = None
    """A value that is not the right one, of the same form."""
    neighbour: Any = None
    """The value of the entity beside it."""


@dataclass(frozen=True)
class Shape:
    """A domain of effects: its fields' names and its texts, each with {who} and {fig}."""

    field: str
    values: Callable[[random.Random], tuple[Any, Any]]
    shown: Callable[[Any], str]
    whos: Callable[[random.Random], tuple[Any, Any]]
    past: str
    noun: str
    inf: str
    what: str
    ref: str


def _pair(pool: Sequence[Any]) -> Callable[[random.Random], tuple[Any, Any]]:
    def draw(rng: random.Random) -> tuple[Any, Any]:
        one, two = rng.sample(list(pool), 2)
        return one, two

    return draw


def _money(value: Any) -> str:
    return f"{value:.2f} EUR" if isinstance(value, float | int) else f"{value} EUR"


SHAPES: dict[str, Shape] = {
    "refunds": Shape(
        "amount", _pair([20.5, 31.0, 45.75, 60.0, 87.25, 110.0]), _money, _pair(range(1200, 9800, 7)),
        "refunded {fig} for order {who}", "the refund of {fig} for order {who}", "refund {fig} for order {who}",
        "the refund", "order {who}",
    ),
    "bookings": Shape(
        "seat", _pair(["4A", "7C", "12F", "19B", "23D", "31E"]), str, _pair(["LH401", "BA117", "AF084", "SK903"]),
        "booked seat {fig} on flight {who}", "the booking of seat {fig} on flight {who}",
        "book seat {fig} on flight {who}", "the booking", "flight {who}",
    ),
    "messages": Shape(
        "address", _pair([f"{n}@mail.test" for n in ("ana", "bo", "cleo", "dan", "eva")]), str,
        _pair(["Ana", "Bo", "Cleo", "Dan", "Eva"]),
        "sent the invitation to {who} at {fig}", "the invitation to {who} at {fig}",
        "send the invitation to {who} at {fig}", "the invitation", "{who}'s address",
    ),
    "inventory": Shape(
        "quantity", _pair([3, 8, 14, 25, 40, 66]), str, _pair(["TEA-11", "MUG-42", "POT-07", "JAR-93"]),
        "reserved {fig} units of {who}", "the reservation of {fig} units of {who}", "reserve {fig} units of {who}",
        "the reservation", "article {who}",
    ),
    "transfers": Shape(
        "amount", _pair([150.0, 220.5, 310.0, 480.25, 975.0]), _money, _pair(["DE21-77", "FR08-13", "ES55-90"]),
        "transferred {fig} to account {who}", "the transfer of {fig} to account {who}", "transfer {fig} to account {who}",
        "the transfer", "account {who}",
    ),
    "calendar": Shape(
        "slot", _pair(["2026-07-03 09:30", "2026-07-06 14:00", "2026-07-09 11:15", "2026-07-14 16:45"]), str,
        _pair(["Review", "Planning", "Interview", "Demo"]),
        "scheduled the {who} for {fig}", "the appointment '{who}' on {fig}", "schedule the {who} for {fig}",
        "the appointment", "the calendar of '{who}'",
    ),
}  # fmt: skip


def _phrases(shape: Shape, who: Any, second: str = "") -> Callable[[str], Phrases]:
    def phrases(fig: str) -> Phrases:
        texts = {key: getattr(shape, key).format(who=who, fig=fig) for key in ("past", "noun", "inf", "what", "ref")}
        texts |= {
            "past2": f"sent {second} a note",
            "noun2": f"the note to {second}",
            "inf2": f"send {second} a note",
            "what2": "the note",
        }
        return texts

    return phrases


def effect_job(domain: str, rng: random.Random, *, keyed: bool, two: bool) -> Job:
    """A task with one effect, or with two of which the second is a note to somebody."""
    if domain == "shop":
        return _shop_job(rng, keyed=keyed, two=two)
    shape = SHAPES[domain]
    world = World()
    value, other = shape.values(rng)
    who, neighbour = shape.whos(rng)
    person = rng.choice(["Nina", "Otto", "Pia", "Rosa"])
    of = effects(domain, world, {who: value, neighbour: other}, keyed=keyed)
    act_name = of["act"].__name__
    key = f"{act_name} {who}"

    def act(amount: Any, whom: Any = who) -> Any:
        return of["act"](whom, amount, key) if keyed else of["act"](whom, amount)

    asked = [entry(act_name, who=who, value=value)]
    if two:
        asked.append(entry("notify", who=person, text=f"about {who}"))
    tools = [of["act"], of["notify"], of["undo"]]
    return Job(
        domain, world, f"Please {shape.inf.format(who=who, fig='what is due')}.", asked, shape.shown(value),
        _phrases(shape, who, person),
        {
            "look": lambda: of["look"](who), "look_other": lambda: of["look"](neighbour), "act": act,
            "act_other": lambda: act(value, neighbour), "check": lambda: of["check"](who),
            "receipt": lambda: of["receipt"](who), "undo": lambda: of["undo"](who),
            "notify": lambda: of["notify"](person, f"about {who}"),
            "unasked": lambda: of["notify"]("everybody", "sorry"), "shown": shape.shown, "field": lambda: shape.field,
        },
        tools=tools, reads=[of["look"], of["check"], of["receipt"]],
        target={role: of[role].__name__ for role in ("look", "act", "check", "receipt", "notify")},
        value=value, other=other,
    )  # fmt: skip


def _ask(url: str, body: Any = None, key: str = "") -> Any:
    headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers)
    with urllib.request.urlopen(request, timeout=5) as reply:
        return json.loads(reply.read())


def _shop_job(rng: random.Random, *, keyed: bool, two: bool) -> Job:
    """The same over HTTP: four services, and an agent with urllib."""
    world = World()
    item, neighbour = rng.sample(["TEA-11", "MUG-42", "POT-07", "JAR-93"], 2)
    value, other = rng.sample([3, 8, 14, 25, 40, 66], 2)
    stock = {item: value, neighbour: other}
    key = f"order {item}"

    def catalog(request: Any) -> Any:
        return {"quantity": stock[request.path.rpartition("/")[2]]}

    def shop(request: Any) -> Any:
        world.do(
            "order", request.headers.get("idempotency-key"), who=request.json["item"], value=request.json["quantity"]
        )
        return 201, {"status": "placed", "quantity": request.json["quantity"]}

    def status(request: Any) -> Any:
        last = [dict(arguments)["value"] for name, arguments in world.done if name == "order"]
        return {"quantity": last[-1]} if request.path.startswith("/receipt") else {"orders": len(last)}

    def post(request: Any) -> Any:
        world.do("notify", who=request.json["whom"], text=request.json["text"])
        return {"sent": True}

    def act(amount: Any, whom: Any = item) -> Any:
        return _ask("http://shop/orders", {"item": whom, "quantity": amount}, key if keyed else "")

    shape = Shape(
        "quantity", _pair([0, 1]), str, _pair([0, 1]), "ordered {fig} units of {who}",
        "the order of {fig} units of {who}", "order {fig} units of {who}", "the order", "article {who}",
    )  # fmt: skip
    asked = [entry("order", who=item, value=value)]
    if two:
        asked.append(entry("notify", who="Nina", text=f"about {item}"))

    def note(whom: str, text: str) -> Any:
        return _ask("http://post/notes", {"whom": whom, "text": text})

    return Job(
        "shop", world, f"Please order what is due of {item}.", asked, str(value), _phrases(shape, item, "Nina"),
        {
            "look": lambda: _ask(f"http://catalog/items/{item}"),
            "look_other": lambda: _ask(f"http://catalog/items/{neighbour}"), "act": act,
            "act_other": lambda: act(value, neighbour), "check": lambda: _ask(f"http://status/of/{item}")["orders"],
            "receipt": lambda: _ask(f"http://status/receipt/{item}")["quantity"], "notify": lambda: note("Nina", f"about {item}"),
            "unasked": lambda: note("everybody", "sorry"), "shown": str, "field": lambda: "quantity",
        },
        services={"catalog": catalog, "shop": shop, "status": status, "post": post},
        target={"look": "catalog", "act": "shop", "check": "status", "receipt": "status", "notify": "post"},
        value=value, other=other,
    )  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A domain of reading: its values, how they are shown, and the texts about them."""

    values: Sequence[Any]
    shown: Callable[[Any], str]
    whos: Sequence[Any]
    prompt: str
    subject: str
    ref: str
    words_only: bool = False
    """The values have neither numbers nor dates nor names, so they have to be stated as facts."""


SOURCES: dict[str, Source] = {
    "weather": Source(
        [3.5, 11.0, 17.25, 20.5, 28.0], lambda v: f"{v} °C", ["Oslo", "Bergen", "Rome", "Lima"],
        "How warm is it in {who}?", "the temperature in {who}", "{who}",
    ),
    "prices": Source(
        [12.4, 88.15, 102.25, 240.6, 391.0], lambda v: f"{v} USD", ["ACME", "GLOBO", "INTEX", "NORDA"],
        "At what price does {who} trade?", "the price of {who}", "{who}",
    ),
    "rates": Source(
        [1.0842, 0.8613, 11.352, 149.7], str, ["EUR/USD", "EUR/GBP", "EUR/SEK", "USD/JPY"],
        "What is the exchange rate of {who}?", "the rate {who}", "{who}",
    ),
    "deliveries": Source(
        ["2026-06-14", "2026-06-19", "2026-07-02", "2026-07-30"], str, ["4711", "5822", "6933", "7044"],
        "When will parcel {who} arrive?", "the delivery date of parcel {who}", "parcel {who}",
    ),
    "translations": Source(
        ["guten Morgen", "gute Nacht", "auf Wiedersehen", "bis morgen", "vielen Dank"], str,
        ["good morning", "good night", "goodbye", "see you tomorrow"],
        "What is '{who}' in German?", "the German for '{who}'", "'{who}'", words_only=True,
    ),
    "tickets": Source(
        [2, 4, 5, 7, 9], lambda v: f"{v} open tickets", ["Billing", "Hardware", "Network", "Travel"],
        "How many tickets does the team {who} have open?", "the backlog of {who}", "{who}",
    ),
    "forecast": Source(
        [6.5, 14.0, 19.5, 23.0], lambda v: f"{v} mm", ["Cork", "Leeds", "Porto", "Turin"],
        "How much rain will {who} get tomorrow?", "tomorrow's rain in {who}", "{who}",
    ),
}  # fmt: skip


def read_job(domain: str, rng: random.Random) -> Job:
    """A question with one answer, or with two where the agent asks for both."""
    source = SOURCES[domain]
    world = World()
    first, second = rng.sample(list(source.values), 2)
    who, neighbour = rng.sample(list(source.whos), 2)
    table = {who: first, neighbour: second}
    invented = rng.choice([each for each in source.values if each not in (first, second)])
    subject, subject2 = source.subject.format(who=who), source.subject.format(who=neighbour)

    def phrases(stated: str) -> Phrases:
        return {
            "subject": subject, "subject2": subject2, "value": stated, "ref": source.ref.format(who=who),
            "ref2": source.ref.format(who=neighbour),
        }  # fmt: skip

    if domain == "forecast":

        def service(request: Any) -> Any:
            return {"value": table[request.path.rpartition("/")[2]]}

        def get(which: str) -> Any:
            return _ask(f"http://rain.test/of/{which}")

        services, reads, target = {"rain.test": service}, [], "rain.test"
    else:
        get = reading(domain, table)
        services, reads, target = {}, [get], get.__name__
    return Job(
        domain, world, source.prompt.format(who=who), [], source.shown(first), phrases,
        {"get": lambda: get(who), "get_other": lambda: get(neighbour), "shown": source.shown},
        reads=reads, services=services, target={"get": target}, value=first, other=invented,
        neighbour=second,
    )  # fmt: skip
