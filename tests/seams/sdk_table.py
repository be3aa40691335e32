"""The table of what the real SDKs do with each fault: what they raise, and how often they ask. `python -m
tests.seams.sdk_table` prints the page of the documentation that holds it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SDKS = ("groq", "openai", "anthropic")
KINDS = ("whole", "streamed")
SAID = "It is done, all of it."
ANSWER, PART, NOTHING = "the answer", "a part of it", "an empty answer"
"""The outcomes without an exception."""
Cell = tuple[str, int]
"""The exception's class, or one of the outcomes, and the number of requests."""


@dataclass(frozen=True)
class Row:
    """A fault and its outcome for each SDK: alike for all if it is one cell. `streamed`: that of streamed answers; that
    of whole ones if it is left out."""

    fault: str
    whole: Cell | Mapping[str, Cell]
    streamed: Cell | Mapping[str, Cell] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The arguments of `inject` without the target."""
        return ", ".join([f'"{self.fault}"', *(f"{key}={_spelt(value)}" for key, value in self.params.items())])

    def cell(self, sdk: str, kind: str) -> Cell:
        """The outcome for an SDK that asks for a whole or for a streamed answer."""
        found = self.whole if kind == "whole" or self.streamed is None else self.streamed
        return found if isinstance(found, tuple) else found[sdk]


def _spelt(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


def _each(groq: str, openai: str, anthropic: str, requests: int) -> dict[str, Cell]:
    return {"groq": (groq, requests), "openai": (openai, requests), "anthropic": (anthropic, requests)}


_FAILED, _LOST, _LATE = ("InternalServerError", 3), ("APIConnectionError", 3), ("APITimeoutError", 3)
_NO_JSON = ("json.JSONDecodeError", 1)
_AS_EVER = (ANSWER, 1)
TABLE = (
    Row("rate_limit", ("RateLimitError", 3), params={"retry_after_s": 2.0}),
    Row("server_error", _FAILED, params={"status": 500}),
    Row("server_error", _FAILED, params={"status": 502}),
    Row("server_error", _each(_FAILED[0], _FAILED[0], "ServiceUnavailableError", 3), params={"status": 503}),
    Row("server_error", _each(_FAILED[0], _FAILED[0], "OverloadedError", 3), params={"status": 529}),
    Row("auth_error", ("AuthenticationError", 1), params={"status": 401}),
    Row("auth_error", ("PermissionDeniedError", 1), params={"status": 403}),
    Row("context_length", ("BadRequestError", 1)),
    Row("error_in_answer", ("TypeError", 1), (NOTHING, 1), params={"status": 503}),
    Row("timeout_before_effect", _LATE),
    Row("lost_reply", _LATE),
    Row("refused", _LOST),
    Row("reset_peer", _LOST),
    Row("malformed_json", _NO_JSON, _AS_EVER),
    Row("html_instead_of_json", ("AttributeError", 1), (NOTHING, 1)),
    Row("empty_response", _NO_JSON, (NOTHING, 1)),
    Row("cut", _AS_EVER, (PART, 1), params={"after_events": 5}),
    Row("cut", _AS_EVER, (PART, 1), params={"after_events": 5, "ending": "done"}),
    Row("early_stop", _AS_EVER, (PART, 1)),
    Row("corrupt_chunk", _AS_EVER, _NO_JSON, params={"after_events": 5}),
    Row(
        "disconnect", _AS_EVER, _each("httpx.ReadError", "APIConnectionError", "httpx2.ReadError", 1),
        params={"after_events": 5},
    ),
    Row(
        "stall", _AS_EVER, _each("httpx.ReadTimeout", "APITimeoutError", "httpx2.ReadTimeout", 1),
        params={"after_events": 5},
    ),
)  # fmt: skip
"""The faults, each at every request."""


def page() -> str:
    """The page of the documentation."""
    return f"""# What the SDKs do with each fault

Each fault hits every request to the model. A cell is the exception that the caller gets, or the outcome if there is
none, and the number of requests that the model's API saw: each SDK tries three times at most. Synchronous and
asynchronous clients do the same. The clients have a timeout of 20 s, and are otherwise as they come.

A test runs each cell against groq 0.37, openai 3.54 and anthropic 2.12 in virtual time, and compares it with
this page.

{_table("whole")}
With `stream=True` errors up to the first event are the same. After it no SDK retries, and the exception is raised where
the stream is read:

{_table("streamed")}
- A client's `timeout` limits each wait, so a slow stream that keeps coming never exceeds it.
- `timeout_before_effect` is a model that never answers. After `lost_reply` the model has done its work, and its tokens
  are paid for.
- `AttributeError` is raised in the caller's code: the SDK returns the HTML page as text.
- HTML or nothing in place of a stream gives an empty answer and no exception.
- `cut` and `early_stop` raise nothing. A `cut` shows in the missing `finish_reason` or `stop_reason`; `early_stop` has
  the usual one.
"""


def _table(kind: str) -> str:
    shown = [row for row in TABLE if kind == "whole" or row.streamed is not None]
    shown = [row for row in shown if {row.cell(sdk, kind) for sdk in SDKS} != {_AS_EVER}]
    lines = ["| inject | groq | openai | anthropic |", "| --- | --- | --- | --- |"]
    for row in shown:
        lines.append(f"| `{row.name}` | {' | '.join(_told(row.cell(sdk, kind)) for sdk in SDKS)} |")
    return "\n".join(lines) + "\n"


def _told(cell: Cell) -> str:
    what, requests = cell
    return f"{what if what in (PART, NOTHING) else f'`{what}`'}, {requests}"


if __name__ == "__main__":
    print(page(), end="")
