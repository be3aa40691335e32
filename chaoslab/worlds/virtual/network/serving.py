"""WSGI applications on the virtual network."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import h11

from chaoslab.base.boundary import reraise_unless_foreign
from chaoslab.base.phrases import get_status_phrase
from chaoslab.core.chain import run_synchronously
from chaoslab.core.exchange import Failure
from chaoslab.seams.services.app import Wsgi
from chaoslab.seams.services.seam import ServiceSeam
from chaoslab.seams.services.wire_bytes import WireBytes
from chaoslab.wire.http1 import BODILESS
from chaoslab.worlds.virtual.machine.machine import Waiter
from chaoslab.worlds.virtual.network._app_answers import (
    FAILED,
    OpenedAnswer,
    Started,
    build_closing_text_headers,
    log_app_error,
)
from chaoslab.worlds.virtual.network._client_side import HEAD_MAX, ClientSide, make_connection_gate
from chaoslab.worlds.virtual.network.network import Network, NetworkEnd

HTTPS = 443
OpenAnswer = Callable[[str, bytes, Iterable[tuple[bytes, bytes]], bytes], OpenedAnswer]
"""The function that begins an application's answer to a method, a target, headers and a body."""


def uses_tls(end: NetworkEnd) -> bool:
    """True if the client of a connection speaks TLS, as far as can be seen: some keep it to themselves."""
    # Some clients do TLS in memory (`wrap_bio`), which the network does not see; then the port tells.
    return end.peer.tls or end.address[1] == HTTPS


class ServerSide:
    """The server's side of one connection; requests are answered one after the other."""

    def __init__(self, open_answer: OpenAnswer, end: NetworkEnd, name: str, client: ClientSide | None) -> None:
        self._machine, self._open_answer, self._end, self._name = end.machine, open_answer, end, name
        self._client = client
        # h11's own bound of a head is 16 KB.
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_MAX)
        self._request: h11.Request | None = None
        self._body: list[bytes] = []
        self._at_work = False
        self._wire: WireBytes | None = None
        """The way of the answer's bytes, if a fault acts on them."""
        self._writing: Waiter | None = None
        self.left: list[Callable[[], None]] = []
        """Called when the client hangs up during its answer."""
        end.receiver = self

    def handle_arrival(self) -> None:
        end = self._end
        try:
            while data := end.receive_bytes():
                self._http.receive_data(data)
                # Read piece by piece, since a piece may end one request and begin the next.
                self._read_requests()
            if end.ended:
                # The client has ended its direction, and may still wait for an answer.
                self._http.receive_data(b"")
                self._call_hang_up_callbacks()
            self._read_requests()
        except h11.RemoteProtocolError as error:
            self._reject_request(error)
        except OSError:
            # A reset: nobody is left to answer.
            self._end.close()

    def handle_reset(self, error: OSError) -> None:  # noqa: ARG002 - there is no peer left
        self._end.close()
        self._call_hang_up_callbacks()
        self.handle_write_room()

    def _call_hang_up_callbacks(self) -> None:
        for hang_up in self.left:
            hang_up()

    def handle_write_room(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.wake()

    def _read_requests(self) -> None:
        http = self._http
        # One after the other: further requests wait in h11's buffer.
        while not self._at_work:
            event = http.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return
            if isinstance(event, h11.Request):
                self._request, self._body = event, []
                # Some clients send a body only after this word.
                if http.they_are_waiting_for_100_continue:
                    self._end.write(self._encode_event(h11.InformationalResponse(status_code=100, headers=[])))
            elif isinstance(event, h11.Data):
                self._body.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self._start_answer()
            elif isinstance(event, h11.ConnectionClosed):
                self._end.close()
                return

    def _start_answer(self) -> None:
        self._at_work = True
        self._machine.steps.count_request(self._name)
        # On a thread of its own, since an application may wait.
        self._machine.start_service_thread(self._answer_request, name=f"{self._name} at work")

    def _answer_request(self) -> None:
        assert self._request is not None
        request = self._request
        # Those of the answer before.
        self.left.clear()
        self._wire = None
        try:
            body, bodiless = b"".join(self._body), request.method == b"HEAD"
            attempt = self._client and self._client.build_attempt(request, body)
            if attempt and attempt.hit:
                played = attempt.produce_reply_sync()
                self._wire = attempt.make_fault_wire(self._write_piece)
                self._send_answer(*played, bodiless=bodiless)
            else:
                answer = self._open_answer(request.method.decode(), request.target, request.headers, body)
                started, parts = [(str(answer.status), answer.fields)], answer.generate_parts()
                try:
                    parts = attempt.yield_parts_and_record(started, parts) if attempt else parts
                    self._send_answer(started, parts, bodiless=bodiless)
                finally:
                    answer.close()
        except Failure as broken:
            if broken.kind == "reset":
                self._end.reset()
            elif broken.kind != "timed_out":  # which is silence
                if broken.kind == "garbled":
                    self._end.write(b"no HTTP\r\n\r\n")
                self._end.close()
            return
        except BaseException as error:  # noqa: BLE001 - the application's own
            reraise_unless_foreign(error)
            if self._end.closed or self._end.error is not None:  # the caller is gone
                self._end.close()
                return
            log_app_error(request.target, self._name)
            self._send_failure()
            return
        self._at_work = False
        # The answer closes the connection, or the client asked for it.
        if self._http.our_state is h11.MUST_CLOSE:
            self._end.close()
            return
        self._http.start_next_cycle()
        # A request that came meanwhile is in the buffer.
        self.handle_arrival()

    def _send_answer(self, started: list[Started], parts: Iterator[bytes], *, bodiless: bool) -> None:
        """Sends an answer part by part as they come, of unknown length in chunks, and closes the connection behind
        those, as waitress does."""
        # Before the head, which the seam may change with the first part.
        first = next(parts, b"")
        status, headers = started[0]
        code = int(status[:3])
        fields = [(name.lower(), value) for name, value in headers]
        # Statuses without a body have the length 0.
        size = next((int(value) for name, value in fields if name == "content-length"), 0 if code in BODILESS else None)
        reason = get_status_phrase(code, "")
        if size is None:
            fields.append(("connection", "close"))
        head = self._encode_event(h11.Response(status_code=code, headers=fields, reason=reason))
        sent = 0
        for piece in itertools.chain((first,), parts):
            # No more than was promised: the rest would be read as the next answer.
            data = b"" if bodiless else piece if size is None else piece[: size - sent]
            sent += len(data)
            self._write_bytes(head + self._encode_data(data))
            head = b""
            self._wait_for_write_room()
        if size is not None and sent < size and not bodiless:
            # A client that was promised more waits, or finds the connection closed: an error of the application's.
            raise EOFError(f"{size} bytes were promised, and {sent} came")
        self._write_bytes(self._encode_event(h11.EndOfMessage()))

    def _write_bytes(self, data: bytes) -> None:
        if self._wire is None:
            self._end.write(data)
        else:
            run_synchronously(self._wire.send_through_faults(data))

    async def _write_piece(self, piece: bytes) -> None:
        self._end.write(piece)

    def _wait_for_write_room(self) -> None:
        """Waits while the reader is slower than the application, as a write to a real socket does."""
        while self._end.is_full and self._end.error is None:
            self._machine.steps.count_request(self._name)  # or an application without an end would take for ever
            self._writing = Waiter(self._machine)
            self._writing.park(f"a slow reader of {self._name}")

    def _encode_event(self, event: h11.Event) -> bytes:
        return self._http.send(event) or b""

    def _encode_data(self, piece: bytes) -> bytes:
        return self._encode_event(h11.Data(data=piece)) if piece else b""

    def _send_failure(self) -> None:
        """Sends a 500 if nothing has been sent yet; otherwise the connection ends in the middle of the answer."""
        # h11 is past that once a head is out.
        if self._http.our_state is h11.SEND_RESPONSE:
            self._send_closing_text_answer(500, FAILED)
        self._end.close()

    def _send_closing_text_answer(self, status: int, body: bytes = b"") -> None:
        """Sends an answer of the server's own, the last one on the connection."""
        headers = build_closing_text_headers(body)
        head = self._encode_event(h11.Response(status_code=status, headers=headers, reason=get_status_phrase(status)))
        self._end.write(head + self._encode_data(body) + self._encode_event(h11.EndOfMessage()))

    def _reject_request(self, error: h11.RemoteProtocolError) -> None:
        # Only while no answer is under way.
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._send_closing_text_answer(int(error.error_status_hint))
        self._end.close()


def serve_application(
    network: Network, host: str, port: int, app: Wsgi, seam: ServiceSeam | None = None, *, name: str = ""
) -> None:
    """Serves the application at that address. `seam`: the requests are numbered there, and may meet faults. `name`: of
    the service, if it is not that of its host."""
    name = name or host
    address = network.listen(host, port, partial(_accept_connection, app, f"{host}:{port}", seam, name))
    if seam is not None:
        network.gates[address] = make_connection_gate(seam, name)


def _accept_connection(app: Wsgi, name: str, seam: ServiceSeam | None, host: str, end: NetworkEnd) -> None:
    opened = partial(_open_answer, end, app, name)
    # Only a watched service has somebody who is told what its client took.
    client = ClientSide(end, seam, host, opened) if seam is not None else None
    ServerSide(opened, end, name, client).handle_arrival()


def _open_answer(
    end: NetworkEnd,
    app: Wsgi,
    name: str,
    method: str,
    target: bytes,
    headers: Iterable[tuple[bytes, bytes]],
    body: bytes,
) -> OpenedAnswer:
    connection: Any = end.receiver

    def is_client_gone() -> bool:
        return end.closed or end.error is not None

    return OpenedAnswer(
        app,
        name,
        method,
        target,
        headers,
        body,
        https=uses_tls(end),
        left=connection.left,
        is_client_gone=is_client_gone,
    )
