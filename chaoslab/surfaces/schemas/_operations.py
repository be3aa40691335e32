"""The operations of a service, whatever its schema is written in, and what their verbs say of its state."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chaoslab.surfaces.projects import is_name
from chaoslab.surfaces.schemas._samples import next_id, without_examples

STATEFUL = ("create", "list", "read", "replace", "update", "remove")
MADE = "made by"
"""The key of an argument that is the id of what a call before made."""
ONE = ("read", "replace", "update", "remove")


@dataclass
class Operation:
    """One operation. `path`: its template; `places`: where each parameter goes, as (path, query, header or body, name);
    an empty name is the whole body. `properties`: the parameters' schemas; `arguments`: a sample of each. `returns`:
    the schema of its result, if it promises one. `does`: one of STATEFUL to `of`, a collection's path, or "do"."""

    tool: str
    says: str
    path: str
    method: str = ""
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    arguments: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    reply: Any = None
    returns: dict[str, Any] | None = None
    writes: bool = False
    idempotent: bool = False
    open: bool = True
    does: str = "do"
    of: str = ""

    def add(self, place: str, name: str, schema: Mapping[str, Any], sample: Any, *, required: bool) -> None:
        """Adds a parameter, under a name that Python takes."""
        own = re.sub(r"\W", "_", name.lower() if place == "header" else name, flags=re.ASCII).strip("_") or "body"
        own = own if is_name(own) else f"{own}_" if own.isidentifier() else f"{place}_{own}"
        own = f"{place}_{own}" if own in self.places else own
        self.places[own] = place, name
        self.properties[own] = without_examples(schema)
        self.arguments[own] = (name or "body") if required and sample is None else sample
        if required:
            self.required.append(own)

    @property
    def key(self) -> str:
        """The name in the path of the last parameter, which is an item's id if it does something to one."""
        return found[-1] if (found := re.findall(r"\{([^}]*)\}", self.path)) else ""

    @property
    def body(self) -> dict[str, Any]:
        """A sample of the fields of its body."""
        given = {name: self.arguments[own] for own, (place, name) in self.places.items() if place == "body" and name}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def said(self) -> dict[str, Any]:
        """The parts that the stand-in needs to know."""
        schema = {"type": "object", "properties": self.properties, "required": self.required}
        return {**{k: v for k, v in vars(self).items() if k not in ("properties", "required", "arguments")},
                "parameters": schema}  # fmt: skip


@dataclass
class Api:
    """A service. `base`: the path before all others; `auth`: where a credential may stand, as (place, name). `holds`:
    its collections by path, each with the name of its items' `id` ("" if it is one thing, not many), the fields of a
    `new` item, and the `items` that are there at first."""

    name: str
    host: str
    protocol: str
    base: str = ""
    scheme: str = "https"
    auth: list[tuple[str, str]] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    holds: dict[str, dict[str, Any]] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)

    def add_state(self) -> None:
        """Finds the collections that the operations keep, with their first items."""
        for path in dict.fromkeys(each.of for each in self.operations if each.of):
            its = [each for each in self.operations if each.of == path]
            self.holds[path] = self._held(path, its)

    def _held(self, path: str, its: list[Operation]) -> dict[str, Any]:
        many = any(each.does in ("create", "list") or each.path != path for each in its)
        key = next((each.key for each in its if each.does in ONE and each.path != path), "id")
        listed = [item for each in its if each.does == "list" for item in list_in(each.reply)]
        items = [item for item in listed if isinstance(item, dict)]
        order = ("read", "replace", "update", "create")
        replies = [each.reply for does in order for each in its if each.does == does and isinstance(each.reply, dict)]
        ids = [found for reply in [*items, *replies] if (found := _id_field(reply, key, path)) is not None]
        id_ = ids[0][0] if ids else "id"
        bodies = [each.body for each in its if each.does in ("create", "replace", "update")]
        whole = [inner_of(each, id_) for each in replies]
        like = {k: v for each in [*bodies, *reversed(items[:1]), *reversed(whole)] for k, v in each.items()}
        if not many:
            return {"id": "", "new": like, "items": [like]}
        if not ids:
            self.lacking.append(f"{path}: no field of a reply is the id of an item: '{id_}' is added")
        made = next((inner_of(each.reply, id_) for each in its if each.does == "create"), {})
        asked = [each.arguments[p] for each in its for p, (_, name) in each.places.items() if name == key]
        like[id_] = next((each for each in [like.get(id_), *asked] if isinstance(each, str | int)), 1)
        first = {each[id_]: {**like, **each} for each in items if isinstance(each.get(id_), str | int)}
        first.setdefault(like[id_], like)
        if len(first) == 1:
            other = next_id(like[id_], 1)
            first[other] = {**like, id_: other}
        return {"id": id_, "new": {**like, **made}, "items": [*first.values()]}


def list_in(reply: Any) -> list[Any]:
    """The items of a list's reply, which may stand in a field of it."""
    if isinstance(reply, dict):
        return next((each for each in reply.values() if isinstance(each, list)), [])
    return reply if isinstance(reply, list) else []


def inner_of(reply: Any, id_: str) -> dict[str, Any]:
    """The item in a reply, which may stand in a field of it."""
    if not isinstance(reply, dict):
        return {}
    inner = (each for each in reply.values() if isinstance(each, dict) and id_ in each)
    return reply if id_ in reply else next(inner, reply)


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _id_field(reply: Mapping[str, Any], key: str, path: str) -> tuple[str, Any] | None:
    """The field of an item that is its id, as the parameter `key` of its path names it, with its value."""
    last = _bare(path.rpartition("/")[2])
    for item in (reply, *(each for each in reply.values() if isinstance(each, dict))):
        fields = {_bare(name): name for name, value in item.items() if isinstance(value, str | int)}
        ends = (name for name in fields if len(name) > 1 and _bare(key).endswith(name))
        wanted = [_bare(key), *ends, "id", f"{last}id", f"{last.removesuffix('s')}id"]
        if found := next((fields[name] for name in wanted if name in fields), None):
            return found, item[found]
    return None


def _is_list(reply: Any) -> bool:
    """True if a reply is a list of things, or has one such list in it."""
    lists = [each for each in reply.values() if isinstance(each, list)] if isinstance(reply, dict) else [reply]
    return len(lists) == 1 and isinstance(lists[0], list) and (not lists[0] or isinstance(lists[0][0], dict))


def by_verbs(operations: Iterable[Operation]) -> None:
    """Says of each operation over HTTP what it does to which collection: POST creates, and so on."""
    every = [*operations]
    there = {(each.method, each.path) for each in every}
    ones = {each.path for each in every if each.path.endswith("}")}
    above = {each.rpartition("/")[0] for each in ones}
    lists = {each.path for each in every if each.method == "GET" and _is_list(each.reply)} - ones
    one = {"GET": "read", "PUT": "replace", "PATCH": "update"}
    alone = {path for method, path in there if method in ("PUT", "PATCH") and ("GET", path) in there}
    """The paths of one thing, such as /me or /settings."""
    for each in every:
        many = each.path in above or ({("POST", each.path), ("GET", each.path)} <= there and each.path in lists)
        if each.path in ones:
            verbs = {**one, "DELETE": "remove", "POST": "update"}
            each.does, each.of = verbs.get(each.method, "do"), each.path.rpartition("/")[0]
        elif many and ((each.method == "POST" and each.writes) or (each.method == "GET" and each.path in lists)):
            each.does, each.of = {"POST": "create", "GET": "list"}[each.method], each.path
        elif not many and each.method in one and isinstance(each.reply, dict) and each.path in alone:
            each.does, each.of = one[each.method], each.path
