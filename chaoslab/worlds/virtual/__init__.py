"""The virtual world: one process, a clock that jumps, a network without sockets. Programs run in it unmodified.

Its rooms, from the bottom, each of which knows only of those below: `machine/` (clock, threads, locks), `network/`
(sockets, TLS, HTTP, services, lanes), and `patches/`: fakes for clocks, chance, ids, threads, sockets and refusals,
put in place wherever a module knows the real thing, and taken back. Above them:

`world.py`: machine, network and chance for one trial; `Unsupported` (in `machine/context.py`) ends a trial that touched
something real, even if the program swallowed it.
`run_writer.py`: trials written down one after the other, each beginning where the one before it ended.
"""
