"""A service's offer as data: its tools, the HTTP request of each, and its error replies. Every service answers `GET
/tools` with this, so the agent learns the tools over HTTP and a new service is one file. The wire formats are the real
services' own: pointing a service at the real one changes only the address."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

TROUBLE = "X-Lab-Trouble"
"""The header of a reply with which one of the lab's services says that it is broken itself. Such a reply is no part of
an experiment."""

CONTEXT_LENGTH = 1400
"""The key of a model's reply to a conversation that is too long. That reply's own status, 400, has others too."""


@dataclass(frozen=True)
class ErrorReply:
    """A service's reply for one failure: status, headers and JSON body."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)

    def with_retry_after(self, seconds: float) -> "ErrorReply":
        """The same reply with this time to wait, in its header `Retry-After` and wherever its words name that time."""
        headers = {key: text for key, text in self.headers.items() if key.lower() != "retry-after"}
        seconds_text = next((text for key, text in self.headers.items() if key.lower() == "retry-after"), "")
        body = (
            _replace_in_texts(self.body, rf"\b{re.escape(seconds_text)}s\b", f"{seconds:g}s")
            if seconds_text
            else self.body
        )
        return ErrorReply(self.status, body, {**headers, "Retry-After": f"{seconds:g}"})


def _replace_in_texts(value: Any, old: str, new: str) -> Any:
    """The JSON with `old`, a pattern, replaced in each of its texts."""
    if isinstance(value, str):
        return re.sub(old, new, value)
    if isinstance(value, Mapping):
        return {key: _replace_in_texts(entry, old, new) for key, entry in value.items()}
    return [_replace_in_texts(entry, old, new) for entry in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class ToolSpec:
    """One tool: what the model sees (name, description, JSON schema) and what goes over the wire. In `path`, `query`
    and `body`, a string "$city" stands for the argument `city`; an argument that was not given leaves its key out.
    Strings without "$" are sent as they are. `effect` is the kind of effect that the tool has, if any."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    effect: str = ""

    @property
    def is_safe(self) -> bool:
        """True if a request has no effect (RFC 9110, section 9.2.1)."""
        return self.method == "GET"


@dataclass(frozen=True)
class ServiceSpec:
    """One service: its tools, its own replies for failures, the place of its key, and which 200s are failures.

    `errors` maps the statuses 401, 404, 429, 500 and 503 to the reply with which *this* service reports that condition.
    The reply's own HTTP status may differ: some services answer 200 with an error inside. `auth` is `{"in": "query" |
    "header" | "body", "name": …, "prefix": …}` or None. `failed_if` lists top-level fields whose value marks a 200 as a
    failure.
    """

    name: str
    tools: tuple[ToolSpec, ...]
    errors: Mapping[int, ErrorReply]
    auth: Mapping[str, str] | None = None
    failed_if: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ServiceSpec":
        return cls(
            name=data["name"],
            tools=tuple(ToolSpec(**tool) for tool in data["tools"]),
            errors={int(status): ErrorReply(**reply) for status, reply in data["errors"].items()},
            auth=data.get("auth"),
            failed_if=data.get("failed_if", {}),
        )


def fill_template(template: Any, arguments: Mapping[str, Any]) -> Any:
    """The template with each "$name" replaced by that argument. Keys whose argument is missing are left out."""
    if isinstance(template, str):
        # The argument itself, so that a number stays one.
        return arguments[template[1:]] if template.startswith("$") else template
    if isinstance(template, Mapping):
        return {
            key: fill_template(value, arguments)
            for key, value in template.items()
            if not _is_missing_argument(value, arguments)
        }
    return template


def _is_missing_argument(template: Any, arguments: Mapping[str, Any]) -> bool:
    return isinstance(template, str) and template.startswith("$") and arguments.get(template[1:]) is None
