"""A request as its protocol reads it, and the tool's own part of the answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Part = Literal["work", "listing", "session"]
"""A request's part in its protocol: it asks a tool to work, it asks for the list of tools, or it keeps up the session
(a handshake, a ping, a notification), which is neither a target of faults nor an effect."""
Effects = Sequence[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class ToolAnswer:
    """The tool's own part of an answer. `value` is None if it gave none. `ok`: the tool did not fail; `words`: its own
    about a failure. `put` gives the whole message with another value. `done`: the tool has ended its work; it has not
    if it asks its client first, or works on as a task."""

    value: Any
    put: Callable[[Any], Any] = field(repr=False)
    ok: bool = True
    words: str = ""
    done: bool = True


class Message:
    """A request. `tool`: the tool that it is for; `arguments`: those of the tool, by name. `protocol`: its name, if
    logs tell it."""

    protocol: str | None = None
    tool: str
    arguments: Mapping[str, Any]
    part: Part = "work"

    def build_body_with_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The whole request with other arguments."""
        raise NotImplementedError

    def list_effects(self, arguments: Mapping[str, Any], reply: Any) -> Effects:
        """The effects of the request with these arguments. `reply`: the whole answer, or None if it is not known."""
        raise NotImplementedError

    def extract_tool_answer(self, reply: Any, schema: Any = None) -> ToolAnswer | None:
        """Reads a whole message; None if it does not answer this request. `schema`: the JSON schema of the tool's
        results, if it is known."""
        raise NotImplementedError

    def build_result_reply(self, value: Any, schema: Any = None) -> Any:
        """The whole message that answers with a value of the lab's own."""
        raise NotImplementedError

    def build_error_reply(self, error_text: str) -> Any:
        """The whole message that says that the tool failed."""
        raise NotImplementedError

    def fit_value(self, value: Any, was: Any, schema: Any = None) -> Any:  # noqa: ARG002 - most promise no form
        """The value in the form that the protocol promises for the tool's results. `was`: the true one."""
        return value
