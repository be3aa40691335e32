"""GraphQL over HTTP: a field of the operation is the tool. A query is a read, and a field of a mutation an effect."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaoslab.seams.protocols.message import Effects, Message, ToolAnswer

# The longest document that is read, in characters.
TEXT_MAX = 64 * 1024
# Also a document with comments before its first word; text of any other kind is no GraphQL.
_OPERATION = re.compile(r"\s*(?:#[^\r\n]*[\r\n]\s*)*(?:\{|(?:query|mutation|subscription|fragment)\b)")
_TOKEN = re.compile(
    # Commas are white space in GraphQL, as is a byte order mark.
    r'[\s,\ufeff]+|#[^\r\n]*|("""(?:\\"""|[\s\S])*?"""|"(?:\\.|[^"\\\r\n])*"|\.\.\.|-?\d[\w.+-]*|[A-Za-z_]\w*|[!$&()\[\]{}:=@|])'
)
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_WORDS = {"true": True, "false": False, "null": None}


@dataclass(frozen=True)
class Field:
    """A field at the root of an operation. `key`: its name in the answer."""

    name: str
    key: str
    arguments: Mapping[str, Any]


def read_message(value: Mapping[str, Any]) -> "GraphQL | None":
    """The message of a request's fields, be they of its body or its query; None if it is none."""
    # Sent by GET, the fields stand in the query, whose own field `query` is the document.
    fields = value["query"] if isinstance(value["query"], Mapping) else value
    text, variables = fields.get("query"), fields.get("variables")
    if not isinstance(text, str) or len(text) > TEXT_MAX or not _OPERATION.match(text):
        return None
    try:
        # By GET variables are a text of JSON.
        values = json.loads(variables) if isinstance(variables, str) else variables
        document = _DocumentParser(text, values if isinstance(values, Mapping) else {})
        operation = document.find_operation(fields.get("operationName"))
    except (ValueError, RecursionError):
        return None
    return None if operation is None else GraphQL(value, *operation)


class GraphQL(Message):
    """An operation. Of several fields, all names are the tool, and the arguments are by field."""

    def __init__(self, body: Mapping[str, Any], kind: str, fields: tuple[Field, ...]) -> None:
        self.body, self.kind, self.fields = body, kind, fields
        self.tool = ", ".join(field.name for field in fields)
        alone = len(fields) == 1
        self.arguments = fields[0].arguments if alone else {field.key: field.arguments for field in fields}

    def build_body_with_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002 - they stand in its text
        return self.body

    def list_effects(self, arguments: Mapping[str, Any], reply: Any) -> Effects:  # noqa: ARG002
        if self.kind != "mutation":
            return []
        data = reply.get("data") if isinstance(reply, Mapping) else None
        # With errors a field of null was not done; one with data was, whatever the errors say.
        none = isinstance(reply, Mapping) and bool(reply.get("errors"))
        undone = [f for f in self.fields if none and not (isinstance(data, Mapping) and data.get(f.key) is not None)]
        return [(field.name, field.arguments) for field in self.fields if field not in undone]

    def extract_tool_answer(self, reply: Any, schema: Any = None) -> ToolAnswer | None:  # noqa: ARG002
        if not isinstance(reply, Mapping) or not ("data" in reply or "errors" in reply):
            return None
        data, errors, keys = reply.get("data"), reply.get("errors"), [field.key for field in self.fields]
        # Other fields beside those of the operation stay as they are.
        around = data if isinstance(data, Mapping) else {}
        values = {key: around[key] for key in keys if key in around}
        first = errors[0] if isinstance(errors, list) and errors else None
        error_text = str(first.get("message", "")) if isinstance(first, Mapping) else ""
        # A partial answer is one: some field has a value.
        ok = not first or any(value is not None for value in values.values())
        if len(keys) == 1:
            return ToolAnswer(
                values.get(keys[0]), lambda now: {**reply, "data": {**around, keys[0]: now}}, ok, error_text
            )
        return ToolAnswer(values or None, lambda now: {**reply, "data": now}, ok, error_text)

    def build_result_reply(self, value: Any, schema: Any = None) -> Any:  # noqa: ARG002
        return {"data": {field.key: value for field in self.fields}}

    def build_error_reply(self, error_text: str) -> Any:
        errors = [{"message": error_text, "path": [field.key]} for field in self.fields]
        return {"data": {field.key: None for field in self.fields}, "errors": errors}


class _DocumentParser:
    """A document, read as far as the root fields of its operations. ValueError: it is none."""

    def __init__(self, text: str, variables: Mapping[str, Any]) -> None:
        self._variables, self._tokens, self._at = variables, list[str](), 0
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ValueError("no token")
            if match[1]:
                self._tokens.append(match[1])
            position = match.end()

    def find_operation(self, operation_name: Any) -> tuple[str, tuple[Field, ...]] | None:
        """The kind and the root fields of the operation of this name, else of the first one."""
        operations: dict[str, tuple[str, tuple[Field, ...]]] = {}
        while self._at < len(self._tokens):
            kind, name = "query", ""
            if self._next_token != "{":
                kind = self._take_token()
                if kind not in ("query", "mutation", "subscription", "fragment"):
                    raise ValueError(kind)
                while self._next_token not in ("{", "(", "@"):
                    name = self._take_token(_NAME)
                self._skip_brackets("(", ")")
            self._skip_directives()
            fields = self._parse_fields()
            # A fragment's fields are no operation's.
            if kind != "fragment":
                operations[name] = kind, fields
        # By name if the request states one, as a document may hold several.
        chosen = operations.get(str(operation_name)) or next(iter(operations.values()), None)
        return chosen if chosen and chosen[1] else None

    @property
    def _next_token(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take_token(self, like: re.Pattern[str] | None = None) -> str:
        token = self._next_token
        if not token or (like is not None and not like.match(token)):
            raise ValueError(token)
        self._at += 1
        return token

    def _take_if_next(self, token: str) -> bool:
        """Takes the token if it is next."""
        if self._next_token == token:
            self._at += 1
            return True
        return False

    def _skip_brackets(self, begin: str, end: str) -> None:
        """Passes over what stands in brackets, if they are next."""
        depth = 0
        while self._next_token == begin or depth:
            token = self._take_token()
            depth += (token == begin) - (token == end)

    def _skip_directives(self) -> None:
        while self._take_if_next("@"):
            self._take_token(_NAME)
            self._skip_brackets("(", ")")

    def _parse_fields(self) -> tuple[Field, ...]:
        """The fields of a selection, those of an inline fragment too."""
        fields: list[Field] = []
        if self._take_token() != "{":
            raise ValueError("no selection")
        while not self._take_if_next("}"):
            if self._take_if_next("..."):
                if self._next_token == "on":
                    self._take_token()
                    self._take_token(_NAME)
                elif self._next_token not in ("{", "@"):
                    self._take_token(_NAME)
                    self._skip_directives()
                    # A named spread: its fields stand elsewhere in the document.
                    continue
                self._skip_directives()
                fields += self._parse_fields()
                continue
            key = name = self._take_token(_NAME)
            if self._take_if_next(":"):
                name = self._take_token(_NAME)
            arguments = {}
            if self._take_if_next("("):
                while not self._take_if_next(")"):
                    argument = self._take_token(_NAME)
                    self._require_colon()
                    arguments[argument] = self._parse_value()
            self._skip_directives()
            # What is selected below a root field tells nothing about the tool.
            self._skip_brackets("{", "}")
            fields.append(Field(name, key, arguments))
        return tuple(fields)

    def _require_colon(self) -> None:
        if not self._take_if_next(":"):
            raise ValueError(self._next_token)

    def _parse_value(self) -> Any:
        token = self._take_token()
        if token == "$":
            # A variable that was not sent is null.
            return self._variables.get(self._take_token(_NAME))
        if token == "[":
            listed = []
            while not self._take_if_next("]"):
                listed.append(self._parse_value())
            return listed
        if token == "{":
            entries = {}
            while not self._take_if_next("}"):
                name = self._take_token(_NAME)
                self._require_colon()
                entries[name] = self._parse_value()
            return entries
        if token.startswith('"""'):
            return token[3:-3]
        # Numbers and strings are spelled as in JSON, but for block strings.
        if token[0] in '"-0123456789':
            return json.loads(token)
        if not _NAME.match(token):
            raise ValueError(token)
        # Other words are values of an enumeration.
        return _WORDS.get(token, token)
