"""The operations of a service, whatever its schema is written in, and what their verbs say of its state."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chaoslab.surfaces.projects import is_parameter_name
from chaoslab.surfaces.schemas._samples import make_next_id, remove_examples

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

    def add_parameter(
        self, location: str, name: str, schema: Mapping[str, Any], sample: Any, *, required: bool
    ) -> None:
        """Adds a parameter, under a name that Python takes."""
        # In small letters, since headers have no case; ASCII, as Python's own words.
        parameter = (
            re.sub(r"\W", "_", name.lower() if location == "header" else name, flags=re.ASCII).strip("_") or "body"
        )
        parameter = (
            parameter
            if is_parameter_name(parameter)
            # A keyword of Python, such as from, stays readable with an underscore.
            else f"{parameter}_"
            if parameter.isidentifier()
            else f"{location}_{parameter}"
        )
        # A path and a query may have a parameter of one name.
        parameter = f"{location}_{parameter}" if parameter in self.places else parameter
        self.places[parameter] = location, name
        self.properties[parameter] = remove_examples(schema)
        self.arguments[parameter] = (name or "body") if required and sample is None else sample
        if required:
            self.required.append(parameter)

    @property
    def last_path_parameter(self) -> str:
        """The name in the path of the last parameter, which is an item's id if it does something to one."""
        return names[-1] if (names := re.findall(r"\{([^}]*)\}", self.path)) else ""

    @property
    def sample_body(self) -> dict[str, Any]:
        """A sample of the fields of its body."""
        samples = {
            name: self.arguments[parameter]
            for parameter, (location, name) in self.places.items()
            if location == "body" and name
        }
        return {name: value for name, value in samples.items() if value is not None}

    @property
    def fake_specification(self) -> dict[str, Any]:
        """The parts that the fake needs to know."""
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

    def add_collections(self) -> None:
        """Finds the collections that the operations keep, with their first items."""
        for path in dict.fromkeys(operation.of for operation in self.operations if operation.of):
            path_operations = [operation for operation in self.operations if operation.of == path]
            self.holds[path] = self._make_collection(path, path_operations)

    def _make_collection(self, path: str, path_operations: list[Operation]) -> dict[str, Any]:
        many = any(entry.does in ("create", "list") or entry.path != path for entry in path_operations)
        key = next(
            (entry.last_path_parameter for entry in path_operations if entry.does in ONE and entry.path != path), "id"
        )
        listed = [item for entry in path_operations if entry.does == "list" for item in find_list_items(entry.reply)]
        items = [item for item in listed if isinstance(item, dict)]
        order = ("read", "replace", "update", "create")
        replies = [
            entry.reply
            for does in order
            for entry in path_operations
            if entry.does == does and isinstance(entry.reply, dict)
        ]
        ids = [id_field for reply in [*items, *replies] if (id_field := _find_id_field(reply, key, path)) is not None]
        id_ = ids[0][0] if ids else "id"
        bodies = [entry.sample_body for entry in path_operations if entry.does in ("create", "replace", "update")]
        inner_items = [find_item_in_reply(entry, id_) for entry in replies]
        like = {k: v for entry in [*bodies, *reversed(items[:1]), *reversed(inner_items)] for k, v in entry.items()}
        if not many:
            return {"id": "", "new": like, "items": [like]}
        if not ids:
            self.lacking.append(f"{path}: no field of a reply is the id of an item: '{id_}' is added")
        created = next(
            (find_item_in_reply(entry.reply, id_) for entry in path_operations if entry.does == "create"), {}
        )
        id_samples = [
            entry.arguments[p] for entry in path_operations for p, (_, name) in entry.places.items() if name == key
        ]
        like[id_] = next((entry for entry in [like.get(id_), *id_samples] if isinstance(entry, str | int)), 1)
        first = {entry[id_]: {**like, **entry} for entry in items if isinstance(entry.get(id_), str | int)}
        first.setdefault(like[id_], like)
        if len(first) == 1:
            second_id = make_next_id(like[id_], 1)
            first[second_id] = {**like, id_: second_id}
        return {"id": id_, "new": {**like, **created}, "items": [*first.values()]}


def find_list_items(reply: Any) -> list[Any]:
    """The items of a list's reply, which may stand in a field of it."""
    if isinstance(reply, dict):
        return next((item for item in reply.values() if isinstance(item, list)), [])
    return reply if isinstance(reply, list) else []


def find_item_in_reply(reply: Any, id_: str) -> dict[str, Any]:
    """The item in a reply, which may stand in a field of it."""
    if not isinstance(reply, dict):
        return {}
    inner = (item for item in reply.values() if isinstance(item, dict) and id_ in item)
    return reply if id_ in reply else next(inner, reply)


def _normalize_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _find_id_field(reply: Mapping[str, Any], key: str, path: str) -> tuple[str, Any] | None:
    """The field of an item that is its id, as the parameter `key` of its path names it, with its value."""
    last = _normalize_name(path.rpartition("/")[2])
    for item in (reply, *(item_value for item_value in reply.values() if isinstance(item_value, dict))):
        fields = {_normalize_name(name): name for name, value in item.items() if isinstance(value, str | int)}
        # A letter alone is the end of too many names.
        ends = (name for name in fields if len(name) > 1 and _normalize_name(key).endswith(name))
        candidates = [_normalize_name(key), *ends, "id", f"{last}id", f"{last.removesuffix('s')}id"]
        if field_name := next((fields[name] for name in candidates if name in fields), None):
            return field_name, item[field_name]
    return None


def _is_list_reply(reply: Any) -> bool:
    """True if a reply is a list of things, or has one such list in it."""
    lists = [item for item in reply.values() if isinstance(item, list)] if isinstance(reply, dict) else [reply]
    # A list of texts or numbers is a field, and no collection.
    return len(lists) == 1 and isinstance(lists[0], list) and (not lists[0] or isinstance(lists[0][0], dict))


def classify_http_operations(operations: Iterable[Operation]) -> None:
    """Says of each operation over HTTP what it does to which collection: POST creates, and so on."""
    every = [*operations]
    method_paths = {(operation.method, operation.path) for operation in every}
    item_paths = {operation.path for operation in every if operation.path.endswith("}")}
    collection_paths = {operation.rpartition("/")[0] for operation in item_paths}
    lists = {
        operation.path for operation in every if operation.method == "GET" and _is_list_reply(operation.reply)
    } - item_paths
    verbs_of_one = {"GET": "read", "PUT": "replace", "PATCH": "update"}
    single_paths = {
        path for method, path in method_paths if method in ("PUT", "PATCH") and ("GET", path) in method_paths
    }
    """The paths of one thing, such as /me or /settings."""
    for operation in every:
        many = operation.path in collection_paths or (
            {("POST", operation.path), ("GET", operation.path)} <= method_paths and operation.path in lists
        )
        if operation.path in item_paths:
            verbs = {**verbs_of_one, "DELETE": "remove", "POST": "update"}
            operation.does, operation.of = verbs.get(operation.method, "do"), operation.path.rpartition("/")[0]
        elif many and (
            (operation.method == "POST" and operation.writes) or (operation.method == "GET" and operation.path in lists)
        ):
            operation.does, operation.of = {"POST": "create", "GET": "list"}[operation.method], operation.path
        elif (
            not many
            and operation.method in verbs_of_one
            and isinstance(operation.reply, dict)
            and operation.path in single_paths
        ):
            operation.does, operation.of = verbs_of_one[operation.method], operation.path
