"""A stand-in for a service, made of its schema: it keeps what is created, and answers functions, HTTP and MCP alike.

Its file, `service.json`, holds all that it knows: the operations with a sample of each reply, and the first items of
each collection. Change them there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chaoslab.surfaces.schemas.serving import as_http, as_mcp
from chaoslab.surfaces.schemas.state import State, Tools
from chaoslab.surfaces.schemas.walking import over_http, walked


class Service(State):
    """The stand-in. `begin` and `fresh` bring it into its first state, so a trial finds nothing of the one before."""

    def begin(self, scenario: str, agent: Callable[[str], Any] | None, tools: Tools | None) -> Callable[[str], Any]:
        """Begins anew, and returns the agent, or if there is none, one that makes the scenario's calls. `tools`: the
        stand-ins by name; None: it asks over HTTP."""
        self.clear()
        asked = tools or over_http(self.data)
        return agent or (lambda _: walked(self.data, scenario, asked))

    def fresh(self) -> Callable[[Any], Any]:
        """Begins anew, and returns the service as an application for `services=`."""
        self.clear()
        return as_mcp(self) if self.data["protocol"] == "mcp" else as_http(self)
