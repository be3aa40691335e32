"""The ideas of the lab, without I/O: exchange, pipe, plan, injection, events, what a service offers."""
