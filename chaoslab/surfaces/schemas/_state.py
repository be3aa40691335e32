"""The state of a stand-in, and its replies to calls, whatever they come by."""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from chaoslab.base.files import json_of
from chaoslab.surfaces.schemas._operations import ONE, list_in
from chaoslab.surfaces.schemas._samples import next_id

KINDS = {"string": str, "integer": int, "number": int | float, "boolean": bool, "array": list, "object": dict}
SIZES, PAGES = ("limit", "per_page", "page_size", "pagesize", "max_results"), ("page", "offset", "skip")
CURSORS = ("cursor", "after", "page_token", "pagetoken", "starting_after")
"""Names of query parameters, in small letters, by what they say of a list."""
Sent = dict[str, Any]
Tools = Mapping[str, Callable[..., Any]]


class CallRefused(LookupError):
    """The stand-in's refusal of a call. `status`: as HTTP has it."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(f"{status} {why}")
        self.status = status


class ServiceState:
    """The collections of a service, and what calls of its operations do to them."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data, self.operations, self.holds = data, data["operations"], data["holds"]
        self.clear()

    @classmethod
    def read(cls, path: Path) -> Self:
        """The stand-in of a file. Raises ValueError: it cannot be read, or is not as `from-openapi` and `from-mcp`
        write it."""
        try:
            return cls(json_of(path))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is not as chaoslab from-openapi writes it ({error})") from None

    def clear(self) -> None:
        """Brings it into its first state."""
        self._items: dict[str, list[Any]] = {}
        self._first: dict[str, list[Any]] = {}
        self._made: list[str] = []
        self._last: dict[str, Any] = {}
        self._known: dict[tuple[str, str], Any] = {}

    def state(self) -> dict[str, Any]:
        """The collections that have changed since the beginning, by their paths."""
        return deepcopy({path: now for path, now in sorted(self._items.items()) if now != self._first[path]})

    def tools(self) -> list[dict[str, Any]]:
        """The tools, each with name, description, and its parameters as a JSON schema."""
        return [{"name": name, "description": of["says"], "parameters": of["parameters"]}
                for name, of in self.operations.items()]  # fmt: skip

    def call(self, function: str, arguments: Mapping[str, Any]) -> Any:
        """The reply to a call of a function. An argument that is None is one that was not given. Raises Refused: there
        is no such thing, or an argument is missing or of the wrong type."""
        return self.done(function, sent_of(self.operations[function], arguments))

    def done(self, function: str, sent: Sent) -> Any:
        """The same for a call whose arguments stand where they stand in a request."""
        of = self.operations[function]
        self._check(of, sent)
        key = next((str(value) for name, value in sent["header"].items() if name.lower() == "idempotency-key"), "")
        if key and (function, key) in self._known:
            return deepcopy(self._known[function, key])
        reply = self._reply(of, sent)
        if key:
            self._known[function, key] = reply
        return deepcopy(reply)

    def _check(self, of: Mapping[str, Any], sent: Sent) -> None:
        schema = of["parameters"]
        for name, (place, own) in of["places"].items():
            there = sent[place] if isinstance(sent[place], dict) else {}
            given = (own in there or (place == "header" and own.lower() in there)) if own else bool(sent[place])
            if name in schema["required"] and not given:
                raise CallRefused(400, f"{own or 'a body'} is missing")
            kind = KINDS.get(schema["properties"][name].get("type"), object)
            value = there.get(own)
            wrong = not isinstance(value, kind) or (isinstance(value, bool) and kind not in (bool, object))
            if place == "body" and own and value is not None and wrong:
                raise CallRefused(400, f"{own} should be of type {schema['properties'][name]['type']}")

    def _reply(self, of: Mapping[str, Any], sent: Sent) -> Any:
        path, like, held = of["path"], of["reply"], self.holds.get(of["of"])
        body = sent["body"] if isinstance(sent["body"], dict) else {}
        above = self._above(path, sent["path"], own=of["does"] in ONE and of["of"] != path)
        if held is None:
            given = {**sent["path"], **sent["query"], **body}
            if isinstance(above, dict) and isinstance(like, dict) and like.keys() == above.keys():
                return above  # as the reply of an action is, which gives the thing itself
            return {name: given.get(name, value) for name, value in like.items()} if isinstance(like, dict) else like
        place, id_ = filled(of["of"], sent["path"]), held["id"]
        items = self._of(place, held["items"])
        if of["does"] == "list":
            return _listed(like, items, sent["query"])
        if of["does"] == "create":
            own = {name: value for name, value in sent["path"].items() if name in held["new"]}
            last = self._last.get(place, (items or held["items"])[-1][id_])
            self._last[place] = next_id(last, len(self._made))
            item = {**deepcopy(held["new"]), **own, **body, id_: self._last[place]}
            self._made.append(f"{place}/{item[id_]}")
            items.append(item)
            return _shaped(like, item, id_)
        item = self._item(items, id_, sent["path"].get(path.rpartition("{")[2].rstrip("}")), path)
        if of["does"] == "remove":
            items.remove(item)
        elif of["does"] in ("replace", "update"):
            kept = {**held["new"], id_: item[id_]} if of["does"] == "replace" and id_ else item
            changed = {**kept, **body, **({id_: item[id_]} if id_ else {})}
            item.clear()
            item.update(changed)
        return _shaped(like, item, id_)

    def _above(self, path: str, given: Mapping[str, Any], *, own: bool) -> Any:
        """The last thing in whose path this one stands; None if none is known. `own`: the path is an item's, which is
        none above itself. Raises Refused: there is no such thing."""
        found = None
        parts = path.split("/")
        for end in range(2, len(parts) + (0 if own else 1)):
            template, last = "/".join(parts[: end - 1]), parts[end - 1]
            held = self.holds.get(template)
            if held and held["id"] and last.startswith("{"):
                items = self._of(filled(template, given), held["items"])
                found = self._item(items, held["id"], given.get(last[1:-1]), template)
        return found

    def _of(self, place: str, first: list[Any]) -> list[Any]:
        """The items of a collection. In something that was made in this trial, it is empty at first."""
        if place not in self._items:
            new = any(place.startswith(f"{made}/") for made in self._made)
            self._first[place] = [] if new else first
            self._items[place] = deepcopy(self._first[place])
        return self._items[place]

    def _item(self, items: list[Any], id_: str, wanted: Any, path: str) -> Any:
        found = next((each for each in items if not id_ or str(each.get(id_)) == str(wanted)), None)
        if found is None:
            raise CallRefused(404, f"there is no {wanted!r:.80} in {path}")
        return found


def filled(path: str, given: Mapping[str, Any]) -> str:
    return re.sub(r"\{(.*?)\}", lambda found: quote(str(given.get(found[1], "")), safe=""), path)


def _shaped(like: Any, item: dict[str, Any], id_: str) -> Any:
    """A reply like the sample, with the item's values: the sample itself, or a field of it, is the item."""
    if not isinstance(like, dict) or not like:
        return like if like is None else item
    inner = next((name for name, each in like.items() if isinstance(each, dict) and id_ in each), None)
    if id_ and id_ not in like and inner:
        return {**like, inner: _shaped(like[inner], item, id_)}
    return {name: item.get(name, value) for name, value in like.items()}


def _listed(like: Any, items: list[Any], query: Mapping[str, Any]) -> Any:
    """A list's reply with the items that the query asks for: those whose fields of these names have these values, and
    of them one page."""
    asked = {name.lower(): value for name, value in query.items()}
    by = {name: str(value).lower() for name, value in query.items()}
    kept = [each for each in items if all(_plain(each[name]) in ("", by[name]) for name in by.keys() & each.keys())]
    size = next((int(asked[name]) for name in SIZES if str(asked.get(name, "")).isdigit()), len(items))
    begin = next((int(asked[name]) for name in PAGES if str(asked.get(name, "")).isdigit()), 0)
    begin = max(begin - 1, 0) * max(size, 1) if "page" in asked else begin
    page = [] if any(asked.get(name) for name in CURSORS) else kept[begin : begin + size]
    form = list_in(like)[:1]
    shaped = [_shaped(form[0] if form else {}, each, "") for each in page]
    if not isinstance(like, dict):
        return shaped
    field = next((name for name, each in like.items() if isinstance(each, list)), "items")
    more = begin + size < len(kept)
    about = {
        name: more if isinstance(value, bool)
        else len(kept) if isinstance(value, int) and re.search(r"total|count", name.lower())
        else None if re.match(r"next", name.lower()) else value
        for name, value in like.items()
    }  # fmt: skip
    return {**about, field: shaped}


def _plain(value: Any) -> str:
    """A value as a query spells it; empty if it has several parts."""
    return str(value).lower() if isinstance(value, str | int | float) else ""


def sent_of(of: Mapping[str, Any], given: Mapping[str, Any]) -> Sent:
    """The arguments of a call where they stand in a request. One that is None was not given."""
    sent: Sent = {"path": {}, "query": {}, "header": {}, "body": {}}
    for name, value in given.items():
        if value is not None and name in of["places"]:
            place, own = of["places"][name]
            if own:
                sent[place][own] = value
            else:
                sent["body"] = value
    return sent
