"""A service's container runs out of memory, and the kernel kills its process."""

from dataclasses import dataclass

from chaoslab.core.fault import Outage
from chaoslab.faults.process.service_down import ServiceDown


@dataclass(frozen=True)
class ContainerOutOfMemory(ServiceDown):
    """Lowers the container's limit of memory to what it uses and fills the rest when the request arrives, so the kernel
    kills its process. The limit is restored and the process started again after `down_s`."""

    of_container = True
    example = '"container_out_of_memory", "weather", calls=[1]'
    source = "https://kubernetes.io/docs/tasks/configure-pod-container/assign-memory-resource/"

    def outage(self) -> Outage:
        return Outage(self.down_s, deed="out of memory")
