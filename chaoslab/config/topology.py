"""The one table of services and ports. A service listens on BASE_PORT + its offset, its Toxiproxy proxy on BASE_PORT +
1000 + its offset. To add a service, write its file in flask_tools/ and add its line here."""

from dataclasses import dataclass

SERVICES: dict[str, int] = {
    "search": 0,
    "weather": 1,
    "movies": 2,
    "calendar": 3,
    "calculator": 4,
    "messaging": 5,
    "translator": 6,
}
WRITERS = ("info", "agent", "manager", *SERVICES)
"""The parts of the lab that have a log in each run."""
MODEL = "model"
MODEL_OFFSET = 7  # behind the services, which have 0 to 6
REFUSED_OFFSET = 99
"""The port of a permanent disabled proxy, to which a call with the fault "refused" is sent."""

PROXIES = 1000
MANAGER = 3000
TOXIPROXY = 3474
BASE_PORT = 5000


@dataclass(frozen=True)
class Ports:
    """All ports of a lab, moved together by its base."""

    base: int = BASE_PORT

    def get_service_port(self, target: str) -> int:
        return self.base + (MODEL_OFFSET if target == MODEL else SERVICES[target])

    def get_proxy_port(self, target: str) -> int:
        return self.get_service_port(target) + PROXIES

    @property
    def refused_port(self) -> int:
        return self.base + PROXIES + REFUSED_OFFSET

    @property
    def manager_port(self) -> int:
        return self.base + MANAGER

    @property
    def toxiproxy_port(self) -> int:
        return self.base + TOXIPROXY

    def list_all_ports(self) -> dict[str, int]:
        """Every port that the lab listens on, by its listener."""
        targets = [*SERVICES, MODEL]
        return (
            {target: self.get_service_port(target) for target in targets}
            | {f"{target}'s proxy": self.get_proxy_port(target) for target in targets}
            | {"refused": self.refused_port, "proxy manager": self.manager_port, "toxiproxy": self.toxiproxy_port}
        )
