"""The parts of a gateway that all its connections share."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

from chaoslab.base.clock import system
from chaoslab.base.terminal import clean_text
from chaoslab.seams.gateway.controls import Controls
from chaoslab.seams.gateway.routes import GatewayRoute
from chaoslab.seams.services.aside import make_service_attempt, make_unknown_host_attempt
from chaoslab.seams.services.line import ClientEnd, Line
from chaoslab.seams.services.messages import HttpRequest
from chaoslab.seams.services.seam import ServiceAttempt, ServiceSeam

if TYPE_CHECKING:
    from chaoslab.seams.gateway.trust import Trust


# The field with the marks of the gateways that a request has passed, where it may go round in a loop.
HOP = "Chaoslab-Hop"
# The most lines about hosts in one run.
SAID_MAX = 200
# The types of bodies that are read before they are passed on, since they tell how their answers are to be read; some
# clients call JSON a form.
READ_FIRST = ("application/json", "application/x-www-form-urlencoded")
LOOK_S = 0.02
"""The time between two looks at what is under way, in seconds."""


@dataclass
class Gateway:
    """The parts that all connections share: routes by name, and the seam. `lock` is held where attempts are numbered
    and noted. `timeout_s` bounds each silence of a service."""

    routes: Mapping[str, GatewayRoute]
    seam: ServiceSeam
    lock: Lock
    timeout_s: float
    address: str = ""
    """The address of all routes, as in "http://127.0.0.1:8888"."""
    addresses: dict[str, str] = field(default_factory=dict)
    """The addresses of routes that have a port of their own."""
    under_way: set[ServiceAttempt] = field(default_factory=set)
    """The attempts whose exchanges are not over."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The variables that name the proxies over which services are asked."""
    warn: Callable[[str], object] = lambda _: None
    """Writes a warning down."""
    controls: Controls | None = None
    proxy: str = ""
    """The address of the proxy for programs, if there is one."""
    trust: "Trust | None" = None
    """The proxy's authority."""
    hasty: set[str] = field(default_factory=set)
    """The routes whose services close their connections without saying so."""
    # 64 random bits: two gateways on one way must differ, wherever they run.
    mark: str = field(default_factory=lambda: os.urandom(8).hex())
    """The gateway's own mark in the field `HOP`."""
    asked_s: float = field(default_factory=system.monotonic)
    """The moment of the last answer, or of the last bytes that passed unread."""
    told: set[str] = field(default_factory=set)
    """The warnings that `warn_once` has written down."""

    @cached_property
    def route_addresses(self) -> dict[str, str]:
        """The address of each route's paths, by route."""
        return {name: f"{self.address}/{name}" for name in self.routes}

    def warn_once(self, message: str, *, aloud: bool = False) -> None:
        """Writes a warning down, once; `aloud`: on standard error too."""
        with self.lock:
            # Outside of a trial there is no log to write it in.
            if message in self.told or len(self.told) == SAID_MAX or self.seam.book is None:
                return
            self.told.add(message)
            self.warn(message)
        if aloud:
            print(f"warning: {clean_text(message)}", file=sys.stderr, flush=True)

    def build_hop_header(self, hops: str) -> tuple[str, str]:
        """The field with this gateway's mark behind those of the gateways on the way here."""
        # Others' marks stay in it: any of the gateways on the way may be the one that comes again.
        return HOP, f"{hops} {self.mark}".strip()

    def warn_of_routing_loop(self, path: str) -> str:
        """Tells of a request that has come back. Returns the words for it."""
        message = f"{path} leads back to this gateway: a loop"
        self.warn_once(message, aloud=True)
        return message

    def wait_until_idle(self, grace_s: float) -> None:
        """Waits until all exchanges are over, or the time is."""
        until_s = system.monotonic() + grace_s
        # Not by an event: the loop's thread would have to wake this one at the end of each exchange.
        while self.under_way and system.monotonic() < until_s:
            system.sleep(LOOK_S)

    def list_pending_requests(self) -> list[str]:
        """The requests that may have an effect yet: their services have not answered, whether their clients wait or
        not. As in "crm 1.1 POST /refunds"."""
        # A copy: the loop's thread changes the set meanwhile.
        return [f"{a.name} {a.call.request}.{a.call.attempt} {a.tool}" for a in [*self.under_way] if a.may_still_act]

    @property
    def idle_s(self) -> float:
        """The time for which nobody has asked or waits for an answer, in seconds."""
        return 0.0 if self.under_way else system.monotonic() - self.asked_s

    def end_trial(self) -> None:
        """Ends the trial."""
        with self.lock:
            self.seam.end_trial()

    def should_stream_body(self, name: str, kind: str) -> bool:
        """True if the body of a request to a service is passed on as it comes, since no fault may hit it. `kind`:
        its type."""
        seam = self.seam
        read = kind.lower().startswith(READ_FIRST) or name in seam.models
        return not read and seam.book is not None and not seam.plan.find_candidates(name)

    def open_attempt(self, name: str, request: HttpRequest, line: Line) -> ServiceAttempt | None:
        """The attempt that a request is; None outside of a trial. One to a service that is no route is not noted."""
        with self.lock:
            if name not in self.routes:
                return make_unknown_host_attempt(self.seam, name, request)
            return make_service_attempt(self.seam, name, request, line)

    def handle_exchange_end(self, attempt: ServiceAttempt, client_end: ClientEnd) -> None:
        """Takes the end of an exchange on its client's side."""
        self.asked_s = system.monotonic()
        with self.lock:
            # The trial's end may have ended it meanwhile.
            if not attempt.over:
                attempt.handle_client_end(client_end)
                if self.controls is not None and attempt.name in self.routes:
                    self.controls.record_request_end(client_end)
