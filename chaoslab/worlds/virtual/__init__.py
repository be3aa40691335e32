"""The virtual world: one process, a clock that jumps, a network without sockets. What runs in it is not edited and does not know."""
