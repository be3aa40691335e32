"""The state of a fake, and its replies to calls, whatever they come by."""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from chaoslab.base.files import read_json
from chaoslab.surfaces.schemas._operations import ONE, find_list_items
from chaoslab.surfaces.schemas._samples import make_next_id

KINDS = {"string": str, "integer": int, "number": int | float, "boolean": bool, "array": list, "object": dict}
SIZES, PAGES = ("limit", "per_page", "page_size", "pagesize", "max_results"), ("page", "offset", "skip")
CURSORS = ("cursor", "after", "page_token", "pagetoken", "starting_after")
"""Names of query parameters, in small letters, by what they say of a list."""
Sent = dict[str, Any]
Tools = Mapping[str, Callable[..., Any]]


class CallRefused(LookupError):
    """The fake's refusal of a call. `status`: as HTTP has it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status


class ServiceState:
    """The collections of a service, and what calls of its operations do to them."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data, self.operations, self.holds = data, data["operations"], data["holds"]
        self.reset_state()

    @classmethod
    def read(cls, path: Path) -> Self:
        """The fake of a file. Raises ValueError: it cannot be read, or is not as `from-openapi` and `from-mcp`
        write it."""
        try:
            return cls(read_json(path))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is not as chaoslab from-openapi writes it ({error})") from None

    def reset_state(self) -> None:
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
        return [{"name": name, "description": operation["says"], "parameters": operation["parameters"]}
                for name, operation in self.operations.items()]  # fmt: skip

    def call(self, function: str, arguments: Mapping[str, Any]) -> Any:
        """The reply to a call of a function. An argument that is None is one that was not given. Raises Refused: there
        is no such thing, or an argument is missing or of the wrong type."""
        return self.answer_request(function, split_arguments_by_place(self.operations[function], arguments))

    def answer_request(self, function: str, sent: Sent) -> Any:
        """The same for a call whose arguments stand where they stand in a request."""
        operation = self.operations[function]
        self._check_arguments(operation, sent)
        # A header has no case.
        key = next((str(value) for name, value in sent["header"].items() if name.lower() == "idempotency-key"), "")
        # By operation too: one key may come with two kinds of calls.
        if key and (function, key) in self._known:
            return deepcopy(self._known[function, key])
        reply = self._make_reply(operation, sent)
        if key:
            self._known[function, key] = reply
        return deepcopy(reply)

    def _check_arguments(self, operation: Mapping[str, Any], sent: Sent) -> None:
        schema = operation["parameters"]
        for name, (location, wire_name) in operation["places"].items():
            sent_part = sent[location] if isinstance(sent[location], dict) else {}
            is_given = (
                (wire_name in sent_part or (location == "header" and wire_name.lower() in sent_part))
                if wire_name
                else bool(sent[location])
            )
            if name in schema["required"] and not is_given:
                raise CallRefused(400, f"{wire_name or 'a body'} is missing")
            kind = KINDS.get(schema["properties"][name].get("type"), object)
            value = sent_part.get(wire_name)
            # To Python True is an int, to JSON it is not.
            wrong = not isinstance(value, kind) or (isinstance(value, bool) and kind not in (bool, object))
            if location == "body" and wire_name and value is not None and wrong:
                raise CallRefused(400, f"{wire_name} should be of type {schema['properties'][name]['type']}")

    def _make_reply(self, operation: Mapping[str, Any], sent: Sent) -> Any:
        path, sample, collection = operation["path"], operation["reply"], self.holds.get(operation["of"])
        body = sent["body"] if isinstance(sent["body"], dict) else {}
        parent = self._find_parent_item(path, sent["path"], own=operation["does"] in ONE and operation["of"] != path)
        if collection is None:
            sent_values = {**sent["path"], **sent["query"], **body}
            if isinstance(parent, dict) and isinstance(sample, dict) and sample.keys() == parent.keys():
                return parent  # as the reply of an action is, which gives the thing itself
            return (
                {name: sent_values.get(name, value) for name, value in sample.items()}
                if isinstance(sample, dict)
                else sample
            )
        collection_path, id_ = fill_path(operation["of"], sent["path"]), collection["id"]
        items = self._get_items(collection_path, collection["items"])
        if operation["does"] == "list":
            return _filter_and_page_list(sample, items, sent["query"])
        if operation["does"] == "create":
            path_fields = {name: value for name, value in sent["path"].items() if name in collection["new"]}
            # A collection that was emptied still numbers its items like the first ones.
            last = self._last.get(collection_path, (items or collection["items"])[-1][id_])
            self._last[collection_path] = make_next_id(last, len(self._made))
            item = {**deepcopy(collection["new"]), **path_fields, **body, id_: self._last[collection_path]}
            self._made.append(f"{collection_path}/{item[id_]}")
            items.append(item)
            return _build_item_reply(sample, item, id_)
        item = self._find_item(items, id_, sent["path"].get(path.rpartition("{")[2].rstrip("}")), path)
        if operation["does"] == "remove":
            items.remove(item)
        elif operation["does"] in ("replace", "update"):
            # A replacement begins with what a new item has; an update with what is there.
            base_item = {**collection["new"], id_: item[id_]} if operation["does"] == "replace" and id_ else item
            # Nobody can give an item another id.
            changed = {**base_item, **body, **({id_: item[id_]} if id_ else {})}
            item.clear()
            item.update(changed)
        return _build_item_reply(sample, item, id_)

    def _find_parent_item(self, path: str, path_values: Mapping[str, Any], *, own: bool) -> Any:
        """The last thing in whose path this one stands; None if none is known. `own`: the path is an item's, which is
        none above itself. Raises Refused: there is no such thing."""
        parent = None
        parts = path.split("/")
        for end in range(2, len(parts) + (0 if own else 1)):
            template, last = "/".join(parts[: end - 1]), parts[end - 1]
            collection = self.holds.get(template)
            if collection and collection["id"] and last.startswith("{"):
                items = self._get_items(fill_path(template, path_values), collection["items"])
                parent = self._find_item(items, collection["id"], path_values.get(last[1:-1]), template)
        return parent

    def _get_items(self, collection_path: str, first: list[Any]) -> list[Any]:
        """The items of a collection. In something that was made in this trial, it is empty at first."""
        if collection_path not in self._items:
            new = any(collection_path.startswith(f"{created_path}/") for created_path in self._made)
            self._first[collection_path] = [] if new else first
            self._items[collection_path] = deepcopy(self._first[collection_path])
        return self._items[collection_path]

    def _find_item(self, items: list[Any], id_: str, item_id: Any, path: str) -> Any:
        item = next((candidate for candidate in items if not id_ or str(candidate.get(id_)) == str(item_id)), None)
        if item is None:
            raise CallRefused(404, f"there is no {item_id!r:.80} in {path}")
        return item


def fill_path(path: str, values: Mapping[str, Any]) -> str:
    return re.sub(r"\{(.*?)\}", lambda match: quote(str(values.get(match[1], "")), safe=""), path)


def _build_item_reply(sample: Any, item: dict[str, Any], id_: str) -> Any:
    """A reply like the sample, with the item's values: the sample itself, or a field of it, is the item."""
    if not isinstance(sample, dict) or not sample:
        return sample if sample is None else item
    inner = next(
        (name for name, field_value in sample.items() if isinstance(field_value, dict) and id_ in field_value), None
    )
    if id_ and id_ not in sample and inner:
        return {**sample, inner: _build_item_reply(sample[inner], item, id_)}
    return {name: item.get(name, value) for name, value in sample.items()}


def _filter_and_page_list(sample: Any, items: list[Any], query: Mapping[str, Any]) -> Any:
    """A list's reply with the items that the query asks for: those whose fields of these names have these values, and
    of them one page."""
    options = {name.lower(): value for name, value in query.items()}
    filters = {name: str(value).lower() for name, value in query.items()}
    matching = [
        item
        for item in items
        if all(_format_query_value(item[name]) in ("", filters[name]) for name in filters.keys() & item.keys())
    ]
    size = next((int(options[name]) for name in SIZES if str(options.get(name, "")).isdigit()), len(items))
    begin = next((int(options[name]) for name in PAGES if str(options.get(name, "")).isdigit()), 0)
    # A page counts from 1, an offset from 0.
    begin = max(begin - 1, 0) * max(size, 1) if "page" in options else begin
    page = [] if any(options.get(name) for name in CURSORS) else matching[begin : begin + size]
    form = find_list_items(sample)[:1]
    shaped = [_build_item_reply(form[0] if form else {}, item, "") for item in page]
    if not isinstance(sample, dict):
        return shaped
    field = next((name for name, item in sample.items() if isinstance(item, list)), "items")
    has_more = begin + size < len(matching)
    about = {
        name: has_more if isinstance(value, bool)
        else len(matching) if isinstance(value, int) and re.search(r"total|count", name.lower())
        else None if re.match(r"next", name.lower()) else value
        for name, value in sample.items()
    }  # fmt: skip
    return {**about, field: shaped}


def _format_query_value(value: Any) -> str:
    """A value as a query spells it; empty if it has several parts."""
    return str(value).lower() if isinstance(value, str | int | float) else ""


def split_arguments_by_place(operation: Mapping[str, Any], arguments: Mapping[str, Any]) -> Sent:
    """The arguments of a call where they stand in a request. One that is None was not given."""
    sent: Sent = {"path": {}, "query": {}, "header": {}, "body": {}}
    for name, value in arguments.items():
        # None is what a model gives for what it leaves out.
        if value is not None and name in operation["places"]:
            location, wire_name = operation["places"][name]
            if wire_name:
                sent[location][wire_name] = value
            else:
                sent["body"] = value
    return sent
