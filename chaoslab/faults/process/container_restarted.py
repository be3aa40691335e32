"""A service's container is restarted: its process dies, and is started again at once."""

from dataclasses import dataclass

from chaoslab.faults.process.service_down import ServiceDown


@dataclass(frozen=True)
class ContainerRestarted(ServiceDown):
    """A `service_down` that is as short as a start: the process is killed when the request arrives and started again
    after `down_s`, so connections are refused for about the time that it needs to begin."""

    down_s: float = 0.2
    example = '"container_restarted", "crm.test", calls=[2]'
    source = "https://docs.docker.com/reference/cli/docker/container/restart/"
