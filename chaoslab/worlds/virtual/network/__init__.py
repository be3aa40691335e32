"""The network of a virtual world, on its machine.

From the bottom:

`network.py`, `_sockets.py`, `_tls.py`, `_transport.py`: listeners and connections, for any client, who believe in their
TLS; `_context.py`: the world as its network knows it.
`_loop.py`: asyncio's own loop but for where it waits.
`serving.py`, `_app_answers.py`, `asgi.py`: applications at addresses; `elsewhere.py`: hosts that are none;
`recorded_targets.py`: those of a log.
`_client_side.py` watches what a service's client takes, which witnesses its faults.
`lanes.py`: lanes as connections of the embedded proxy (`wire/server/proxy.py`) with its own toxics, on a loop of the
machine.
"""
