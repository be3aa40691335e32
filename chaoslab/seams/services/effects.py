"""The effects of a request on a service, by its own words, or by the request's method and the status of the reply."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from chaoslab.base.identity import REPEATABLE, find_idempotency_key, is_idempotency_key
from chaoslab.base.jsonable import to_jsonable
from chaoslab.core.events import Effect
from chaoslab.seams.services.messages import HttpRequest

# The header of a reply in which a service says what it did: "none", a JSON object such as {"effect": "order_placed",
# "item": "tea"}, or a list of these. Without it, an unsafe request with a status of 2xx is one effect.
EFFECT = "X-Lab-Effect"
# The methods without effects (RFC 9110, section 9.2.1).
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


def parse_effects(header: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The effects that a service states. Raises ValueError: it cannot be read."""
    if header.strip().lower() == "none":
        return []
    value = json.loads(header)
    effects = list[tuple[str, Mapping[str, Any]]]()
    for entry in value if isinstance(value, list) else [value]:
        # One that is wrong makes the whole statement wrong: half of it would be a guess.
        if not isinstance(entry, dict) or not isinstance(entry.get("effect"), str):
            raise ValueError('it should be none, or JSON as in {"effect": "order_placed", "item": "tea"}')
        effects.append((entry["effect"], {key: value for key, value in entry.items() if key != "effect"}))
    return effects


def make_unfinished_task_effect(service: str, tool: str, arguments: Mapping[str, Any]) -> Effect:
    """The effect of a call that was accepted as a task of whose end nobody has heard: it may have done its work."""
    return Effect(
        target=service, tool=tool, request_id="", effect=tool, content=to_jsonable(arguments), reply={}, fingerprint=""
    )


class SharedEffectNames:
    """The names that equal effects share: that of their idempotency key, be it a header or an argument, or of the whole
    request if its method may be repeated. A request that comes again after another one to its address is no repeat: it
    takes that one back."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], tuple[str, int]] = {}

    def build_shared_effect_name(self, service: str, tool: str, request: HttpRequest, arguments: Any) -> str:
        """The name of the request's effects, which it just had; empty if no other request shares it. `arguments`: those
        of its tool."""
        header = next((value for name, value in request.decoded_headers if is_idempotency_key(name)), "")
        if key := header or find_idempotency_key(arguments):
            return f"{tool} {key}"
        # 8 bytes: names of one trial, and a body may be megabytes.
        fingerprint = f"{request.method} {request.target} {blake2b(request.body, digest_size=8).hexdigest()}"
        target_key = service, request.target
        latest, nth = self._latest.get(target_key, ("", 0))
        if fingerprint != latest:
            nth += 1
            self._latest[target_key] = fingerprint, nth
        # After the count above: an unsafe request in between makes a later PUT another one, too.
        if request.method not in REPEATABLE:
            return ""
        return f"{fingerprint} {nth}" if nth > 1 else fingerprint
