"""Proxies and toxics as they are asked of a Toxiproxy, and the errors of asking: values, without a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TOXICITY_ERROR_MAX = 1e-6  # the real server keeps a float32


class ToxiproxyError(Exception):
    """The server refused, or holds something else than asked. `status` is the HTTP status, None without an answer."""

    def __init__(self, message: str, *, status: int | None) -> None:
        super().__init__(message if status is None else f"{message} (HTTP {status})")
        self.status = status


class ToxiproxyDown(ToxiproxyError):
    """The server does not answer, or not in time."""

    def __init__(self, message: str) -> None:
        super().__init__(message, status=None)


@dataclass(frozen=True)
class ToxicInfo:
    """A toxic to add. Attributes have Toxiproxy's names and units."""

    name: str
    type: str
    stream: str = "downstream"
    toxicity: float = 1.0
    attributes: Mapping[str, int] = field(default_factory=dict)

    def make_api_arguments(self) -> dict[str, Any]:
        """The arguments of `Proxy.add_toxic`. Raises ValueError: an empty name, a toxicity outside of 0–1, an attribute
        that is no integer; the package would send them."""
        check_toxiproxy_name("toxic", self.name)
        if not 0 <= self.toxicity <= 1:
            raise ValueError(f"toxicity {self.toxicity} of '{self.name}' is not between 0 and 1")
        for key, value in self.attributes.items():
            # `type` and not isinstance, since True is an int to Python, and no number in the API.
            if type(value) is not int:
                raise ValueError(f"attribute {key}={value!r} is not an integer")
        return {**vars(self), "attributes": dict(self.attributes)}

    def differs_from(self, served: Any) -> bool:
        """Tells if a server that holds `served`, a toxic of the package, does not hold this one."""
        return (
            (self.type, self.stream) != (served.type, served.stream)
            or abs(self.toxicity - served.toxicity) > TOXICITY_ERROR_MAX
            # Only what was asked for: the server adds its defaults for the other attributes.
            or any(served.attributes.get(key) != value for key, value in self.attributes.items())
        )


@dataclass(frozen=True)
class WantedProxy:
    """A proxy that should stand."""

    name: str
    listen: str
    upstream: str
    enabled: bool = True


def check_toxiproxy_name(kind: str, name: str) -> None:
    """Raises ValueError for a name that cannot stand in a path of the API, where the package puts it as it is."""
    # urllib3 takes `.` and `..` out of a path, so the request would go to another route.
    if not name or "/" in name or name in (".", ".."):
        raise ValueError(f"'{name}' cannot be a {kind}'s name")
