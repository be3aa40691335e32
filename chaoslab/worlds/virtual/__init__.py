"""The virtual world: one process, a clock that jumps, a network without sockets. Programs run in it unmodified."""
