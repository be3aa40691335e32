"""WSGI applications on the virtual network."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from chaoslab.seams.services.app import Wsgi as Wsgi
from chaoslab.seams.services.seam import ServiceSeam
from chaoslab.worlds.virtual._app_answers import OpenedAnswer
from chaoslab.worlds.virtual._client_side import ClientSide, gate
from chaoslab.worlds.virtual._server_side import ServerSide, by_https
from chaoslab.worlds.virtual.network import Network, NetworkEnd


def serve(
    network: Network, host: str, port: int, app: Wsgi, seam: ServiceSeam | None = None, *, name: str = "",
    waits: bool = True,
) -> None:  # fmt: skip
    """Serves the application at that address. `seam`: the requests are numbered there, and may meet faults. `name`: of
    the service, if it is not that of its host. `waits`: it may wait or send its answer in parts, so it needs threads.
    """
    name = name or host
    address = network.listen(host, port, partial(_accept, app, f"{host}:{port}", seam, name))
    network.apps[address] = app
    if not waits:
        network.prompt.add(address)
    if seam is not None:
        network.gates[address] = gate(seam, name)


def _accept(app: Wsgi, name: str, seam: ServiceSeam | None, host: str, end: NetworkEnd) -> None:
    opened = partial(_opened, end, app, name)
    client = ClientSide(end, seam, host, opened) if seam is not None else None
    ServerSide(app, end, name, client).arrived()


def _opened(
    end: NetworkEnd,
    app: Wsgi,
    name: str,
    method: str,
    target: bytes,
    headers: Iterable[tuple[bytes, bytes]],
    body: bytes,
) -> OpenedAnswer:
    connection: Any = end.receiver
    return OpenedAnswer(app, name, method, target, headers, body, https=by_https(end), left=connection.left)
