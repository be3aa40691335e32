"""The lab's concepts, without I/O: exchange, pipe, plan, injection, events, services."""
