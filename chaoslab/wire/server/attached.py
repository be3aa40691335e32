"""A toxic on a proxy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from chaoslab.wire.toxics import Toxic


@dataclass
class Attached:
    """A toxic on a proxy. `stream` keeps the spelling of the request."""

    name: str
    type: str
    stream: str
    toxicity: float
    toxic: Toxic

    @property
    def direction(self) -> str:
        return self.stream.lower()

    def to_json(self) -> dict[str, Any]:
        return {
            "attributes": asdict(self.toxic),
            "name": self.name,
            "type": self.type,
            "stream": self.stream,
            "toxicity": self.toxicity,
        }
