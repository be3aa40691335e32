"""Questions for the two servers, by dice: stories of right requests, and of right ones with one byte spoiled."""

from collections.abc import Iterator

from chaoslab.base.dice import Dice
from tests.wire.parity_parts import Ask, delete, get, patch, post

TYPES = ("latency", "bandwidth", "slicer", "timeout", "reset_peer", "slow_close", "limit_data", "noop")
ATTRIBUTES = ("latency", "jitter", "rate", "timeout", "delay", "bytes", "average_size", "RATE", "none")
VALUES = str.split('0 1 -1 1000 1.5 1e3 "1" true null [] {} 9223372036854775807 -9223372036854775809')
STREAMS = ("upstream", "downstream", "Upstream", "DOWNSTREAM", "", "both")
SHARES = ("0", "1", "0.5", "0.1", "2", "-3", "1e-9", "1e30", "1e50", '"1"', "null")
NAMES = ("t0", "t1", "t2", "é", "a b")
SPOILERS = b'"{}[]:,\\\0\n\x7f\xc3\xff-+0179eEtfnux \t'  # no slash and no dot, so that each proxy can be deleted
ENABLED = ("true", "false")


def story(dice: Dice, *, length: int) -> Iterator[Ask]:
    for number in range(length):
        yield _ask(dice(number))
    yield get("/proxies")
    yield get("/proxies/p/toxics")


def _ask(dice: Dice) -> Ask:
    return dice.pick((_proxy, _parked, _change, _populate, _toxic, _toxic, _toxic_change, _toxic_change, _look))(dice)


def _proxy(dice: Dice) -> Ask:
    """One of few names, so that some are there already."""
    name, enabled = dice.pick(("g0", "g1", "g2")), dice.pick(ENABLED)
    if dice.hits(0.2):
        return delete(f"/proxies/{name}")
    return post("/proxies", f'{{"name":"{name}","upstream":"a:1","listen":"127.0.0.1:0","enabled":{enabled}}}')


def _parked(dice: Dice) -> Ask:
    """Spoiled, but twice told not to listen: without `listen` that would be on every interface."""
    body = f'{{"enabled":false,"name":"{dice.pick(("x0", "x1"))}","upstream":"a:1","ENABLED":false}}'
    listed = dice.hits(0.3)
    return post("/populate" if listed else "/proxies", _spoiled(f"[{body}]" if listed else body, dice))


def _change(dice: Dice) -> Ask:
    name = dice.pick(("p", "g0", "g1", "none"))
    field = dice.pick(('"listen":"127.0.0.1:0"', '"upstream":"b:1"', '"upstream":5', '"name":"other"', '"more":[{}]'))
    method = dice.pick(("PATCH", "POST"))
    return Ask(method, f"/proxies/{name}", f'{{{field},"enabled":{dice.pick((*ENABLED, "null", "0"))}}}')


def _populate(dice: Dice) -> Ask:
    some = [
        f'{{"name":"{name}","upstream":"{dice.pick(("a:1", "b:1", ""), [5, 2, 1])}",'
        '"listen":"127.0.0.1:0","enabled":false}'
        for name in ("g0", "g1", "g3")
        if dice.hits(0.6)
    ]
    return post("/populate", f"[{','.join(some)}]")


def _toxic(dice: Dice) -> Ask:
    parts = [f'"type":"{dice.pick(TYPES)}"']
    if dice.hits(0.5):
        parts.append(f'"name":"{dice.pick(NAMES)}"')
    if dice.hits(0.5):
        parts.append(f'"stream":"{dice.pick(STREAMS)}"')
    parts += _shared(dice)
    return post("/proxies/p/toxics", _spoiled(f"{{{','.join(parts)}}}", dice))


def _toxic_change(dice: Dice) -> Ask:
    name = dice.pick((*(f"{type_}_downstream" for type_ in TYPES), "t0", "t1", "%C3%A9", "a%20b"))
    path = f"/proxies/p/toxics/{name}"
    if dice.hits(0.15):
        return delete(path)
    return patch(path, _spoiled(f"{{{','.join(_shared(dice))}}}", dice))


def _shared(dice: Dice) -> list[str]:
    """The attributes that a toxic is made with and changed with."""
    parts = []
    if dice.hits(0.4):
        parts.append(f'"toxicity":{dice.pick(SHARES)}')
    given = [f'"{dice.pick(ATTRIBUTES)}":{dice.pick(VALUES)}' for _ in range(int(dice.between(0, 4)))]
    if given:
        parts.append(f'"attributes":{{{",".join(given)}}}')
    return parts


def _look(dice: Dice) -> Ask:
    return Ask(
        dice.pick(("GET", "HEAD", "PUT", "DELETE")),
        dice.pick(("/proxies", "/proxies/g1", "/proxies/p/toxics", "/proxies/p/toxics/t1", "/proxies//g1", "/version")),
    )


def _spoiled(body: str, dice: Dice) -> bytes:
    """Half of the bodies as they are, the others with a byte taken out, put in or replaced, or cut off."""
    data = body.encode()
    at = int(dice.between(0, len(data)))
    new = bytes([dice.pick(SPOILERS)])
    return dice.pick(
        (data, data[:at] + data[at + 1 :], data[:at] + new + data[at:], data[:at] + new + data[at + 1 :], data[:at]),
        [4, 1, 1, 1, 1],
    )
