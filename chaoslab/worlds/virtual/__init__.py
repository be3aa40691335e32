"""The virtual world: one process, a clock that jumps, a network without sockets. Programs run in it unmodified.

From the bottom:

`machine.py`, `_standstill.py`: the clock, a heap of what is due, threads as greenlets that take turns; `Hung`; loops
that take no time.
`_loop.py`, `_locks.py`: asyncio's own loop but for where it waits; locks that the machine sees.
`network.py`, `_transport.py`, `sockets.py`, `_tls.py`: listeners and connections, for any client, who believe in their
TLS.
`serving.py`, `_app_answers.py`, `asgi.py`: applications at addresses; `elsewhere.py`: hosts that are none.
`_client_side.py` watches what a service's client takes, which witnesses its faults; `in_process_transport.py` hands
whole requests over clean lanes.
`lanes.py`: lanes as connections of the embedded proxy (`wire/server/proxy.py`) with its own toxics, on a loop of the
machine.
`patches/`: stand-ins for clocks, chance, ids, threads, sockets, and refusals, put in place wherever a module knows the
real thing, and taken back.
`world.py`: machine, network and chance for one trial; `Unsupported` (in `context.py`) ends a trial that touched
something real, even if the program swallowed it.
`run_writer.py`: trials written down one after the other, each beginning where the one before it ended.
"""
