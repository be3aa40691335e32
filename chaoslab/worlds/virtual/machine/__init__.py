"""The computer of a virtual world, which knows of no network.

From the bottom:

`context.py`: the world of the present thread, and the errors that end its trial.
`machine.py`, `_standstill.py`, `_thread_local.py`: the clock, a heap of what is due, threads as greenlets that take
turns; `Hung`; loops that take no time.
`_locks.py`: locks that the machine sees.
"""
