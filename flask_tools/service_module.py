"""A service's view of one request, and its possible answers: no web framework, no clock, no disk.

A service is a module with `SERVICE` (its tools as data) and `routes()` (its handlers). It may have
`make_error_body(status, message)` for its own form of errors. A handler is a function from a `ServiceRequest` to an
`Answer`. Anything that must outlive the call is the answer's effect. The state is the day's seed plus the trial's past
effects, nothing else, so a service that was killed recovers its state from its ledger.
"""

import hashlib
import importlib
import json
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chaoslab.base.registry import suggest_name
from chaoslab.config.topology import SERVICES
from chaoslab.core.service_spec import ServiceSpec

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Done:
    """An effect: its kind (`event_created`, …) and the object as the service keeps it."""

    effect: str
    content: dict[str, Any]


@dataclass(frozen=True)
class ServiceRequest:
    """One request. `now`: the run's time. `past`: this trial's effects at this service, oldest first."""

    request_id: str
    now: datetime
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    path: Mapping[str, str] = field(default_factory=dict)
    past: tuple[Done, ...] = ()

    def derive_hex_digits(self, *, digits: int = 12) -> str:
        """Hexadecimal digits that depend on the request's id alone."""
        return hashlib.blake2b(self.request_id.encode(), digest_size=32).hexdigest()[:digits]


@dataclass(frozen=True)
class Answer:
    """The reply: JSON `body` (None: no body at all), and the effect that it reports, if any."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    effect: Done | None = None


class Refusal(Exception):
    """A refusal by the service in its own format; nothing was done."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"{status}: {body}")
        self.answer = Answer(body, status)


@dataclass(frozen=True)
class Route:
    """A path (with `<name>` parts) and its handler. `tool`: its name in the ledger."""

    method: str
    path: str
    tool: str
    work: Callable[[ServiceRequest], Answer]


def parse_moment(text: str) -> datetime:
    """An ISO 8601 date or date-time in UTC; one without an offset counts as UTC. Raises ValueError: it is neither."""
    try:
        # `fromisoformat` reads all of ISO 8601 from Python 3.11 on.
        read = datetime.fromisoformat(text)
        return (read.replace(tzinfo=UTC) if read.tzinfo is None else read).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"not a date-time: {text[:60]!r}") from None


def format_rfc3339(when: datetime) -> str:
    """UTC to the second, e.g. `2026-06-01T09:00:00Z`."""
    return when.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def fold_text(text: str) -> str:
    """The text in lower case without accents, as people type names."""
    # NFKD takes accents off, but these letters have none to take off.
    special = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe"})
    plain = unicodedata.normalize("NFKD", text.casefold().translate(special))
    return " ".join("".join(c for c in plain if not unicodedata.combining(c)).split())


def load_bundled_json(name: str) -> Any:
    """The JSON of a file that comes with the services."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def _make_plain_error_body(status: int, message: str) -> Any:  # noqa: ARG001 - the signature of all wordings
    return {"error": message}


@dataclass(frozen=True)
class ServiceModule:
    """A service's module, loaded by its name in the table of services."""

    service: ServiceSpec
    routes: tuple[Route, ...]
    make_error_body: Callable[[int, str], Any]
    warnings: tuple[str, ...]

    @classmethod
    def load(cls, name: str) -> "ServiceModule":
        """Loads a module. Raises LookupError with a hint for an unknown name."""
        if name not in SERVICES:
            raise LookupError(f"no service is called '{name}': {suggest_name(name, SERVICES)}")
        module = importlib.import_module(f"chaoslab.flask_tools.{name}")
        warnings = tuple(module.warnings()) if hasattr(module, "warnings") else ()
        return cls(
            module.SERVICE, tuple(module.routes()), getattr(module, "make_error_body", _make_plain_error_body), warnings
        )
