"""TLS of a virtual world: every client believes in it, and the bytes go in clear, since nobody listens on the way.

Handshakes succeed, and certificates are not checked: a service is whoever `services=` says it is. A pinned fingerprint
does not match. ALPN selects nothing, so clients speak HTTP/1.1.
"""

import socket as real
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chaoslab.worlds.virtual.network._context import world
from chaoslab.worlds.virtual.network._sockets import VirtualSocket
from chaoslab.worlds.virtual.network.network import Gate, NetworkEnd

# OpenSSL's number and words for a certificate that is too old.
EXPIRED = 10, "certificate has expired"
CIPHER = ("TLS_AES_256_GCM_SHA384", "TLSv1.3", 256)


class _Session:
    """The methods by which a program asks about its TLS. `server_hostname` is the name that the client asked for."""

    context: ssl.SSLContext
    server_side: bool
    server_hostname: str | None
    session: Any = None
    session_reused = False

    def _store_tls_arguments(self, context: Any, server_side: bool, server_hostname: Any) -> None:
        """Checks and keeps the arguments, like the real thing. Raises ValueError: they contradict each other."""
        if server_side and server_hostname:
            raise ValueError("server_hostname can only be specified in client mode")
        if context.check_hostname and not server_hostname:
            raise ValueError("check_hostname requires server_hostname")
        name = server_hostname.decode("ascii") if isinstance(server_hostname, bytes) else server_hostname
        self.context, self.server_side, self.server_hostname = context, server_side, name

    @property
    def _sslobj(self) -> Any:
        return self

    def do_handshake(self, block: bool = False) -> None:
        """Does nothing: the connection is all that is needed. Raises ssl.SSLCertVerificationError: a fault lets the
        certificate be wrong."""

    def getpeercert(self, binary_form: bool = False) -> Any:
        """The certificate, made for the name that was asked for. Its binary form is empty, and matches no
        fingerprint."""
        if binary_form:
            return None if self.server_side else b""
        if self.server_side or self.context.verify_mode == ssl.CERT_NONE:
            # A context that does not verify gets no certificate's content, as from OpenSSL.
            return None if self.server_side else {}
        name = self.server_hostname or ""
        return {
            "subject": ((("commonName", name),),),
            "issuer": ((("organizationName", "chaoslab"),),),
            "version": 3,
            "serialNumber": "01",
            "notBefore": "Jan  1 00:00:00 2000 GMT",
            "notAfter": "Dec 31 23:59:59 2099 GMT",
            "subjectAltName": (("IP Address" if _is_ip(name) else "DNS", name),),
        }

    def get_unverified_chain(self) -> list[Any]:
        return []

    get_verified_chain = get_unverified_chain

    def version(self) -> str:
        return CIPHER[1]

    def cipher(self) -> tuple[str, str, int]:
        return CIPHER

    def shared_ciphers(self) -> list[tuple[str, str, int]] | None:
        return [CIPHER] if self.server_side else None

    def compression(self) -> str | None:
        return None

    def selected_alpn_protocol(self) -> None:
        # None selected: a client that offers h2 speaks HTTP/1.1 then.
        return None

    selected_npn_protocol = selected_alpn_protocol

    def get_channel_binding(self, cb_type: str = "tls-unique") -> None:  # noqa: ARG002
        return None

    def verify_client_post_handshake(self) -> None:
        """Does nothing."""

    def pending(self) -> int:
        """Always 0: no byte waits beyond those that the socket itself has."""
        return 0


def _is_ip(name: str) -> bool:
    try:
        real.inet_pton(real.AF_INET6 if ":" in name else real.AF_INET, name)
    except OSError:
        return False
    return True


def perform_handshake(context: Any, gate: Gate | None) -> None:
    """Makes the handshake of a client with what is behind the gate.

    Raises:
        ssl.SSLCertVerificationError: a fault lets the certificate be wrong, and the context checks it.
    """
    checks = not isinstance(context, ssl.SSLContext) or context.verify_mode != ssl.CERT_NONE
    tell_client = gate("handshake") if gate is not None and checks else None
    if tell_client is None:
        return
    tell_client()
    message = f"certificate verify failed: {EXPIRED[1]}"
    # The line's number is of OpenSSL's binding and differs between versions; clients look for the words before it.
    error = ssl.SSLCertVerificationError(ssl.SSL_ERROR_SSL, f"[SSL: CERTIFICATE_VERIFY_FAILED] {message} (_ssl.c:1000)")
    error.library, error.reason = "SSL", "CERTIFICATE_VERIFY_FAILED"
    error.verify_code, error.verify_message = EXPIRED
    raise error


class SslSocket(_Session, VirtualSocket):
    """A virtual socket as an `ssl.SSLSocket`, made by `wrap_socket`. It takes the place of the socket it is given."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """`ssl.SSLSocket`: some clients ask isinstance."""
        return ssl.SSLSocket

    @classmethod
    def take_over_socket(
        cls, sock: VirtualSocket, context: Any, server_side: bool, server_hostname: Any
    ) -> "SslSocket":
        self = cls.__new__(cls)
        # Before the hand-over: wrong arguments leave the socket as it was.
        self._store_tls_arguments(context, server_side, server_hostname)
        sock.hand_over_connection(self)
        if self.end is not None:
            self.end.tls = True
            if not server_side:
                try:
                    perform_handshake(context, self._world.network.gates.get(self.end.peer_address))
                except ssl.SSLCertVerificationError:
                    # As `wrap_socket` closes it.
                    self.close()
                    raise
        return self

    def adopt_connection(self, end: NetworkEnd) -> None:
        end.tls = True
        super().adopt_connection(end)

    def recv(self, size: int = 1024, flags: int = 0) -> bytes:
        with _translate_ssl_errors("read"):
            return super().recv(size, flags)

    def send(self, data: Any, flags: int = 0) -> int:
        with _translate_ssl_errors("write"):
            return super().send(data, flags)

    def read(self, len: int = 1024, buffer: Any = None) -> Any:  # noqa: A002 - the name that callers know
        return self.recv(len) if buffer is None else self.recv_into(buffer, len)

    def write(self, data: Any) -> int:
        return self.send(data)

    def unwrap(self) -> VirtualSocket:
        """Goes on without TLS, on a plain socket."""
        # Past `__init__`, which would take a number and world of its own.
        plain = VirtualSocket.__new__(VirtualSocket)
        self.hand_over_connection(plain)
        return plain


@contextmanager
def _translate_ssl_errors(doing: str) -> Iterator[None]:
    """A context in which errors are those of an SSL socket. `doing`: read or write."""
    try:
        yield
    # Clients of asyncio's kind wait for these errors of TLS and not for EAGAIN.
    except BlockingIOError:
        kind, code = (
            (ssl.SSLWantReadError, ssl.SSL_ERROR_WANT_READ)
            if doing == "read"
            else (ssl.SSLWantWriteError, ssl.SSL_ERROR_WANT_WRITE)
        )
        raise kind(code, f"The operation did not complete ({doing})") from None
    except TimeoutError as error:
        if error.errno is None:
            raise TimeoutError(f"The {doing} operation timed out") from None
        raise


class SslObject(_Session):
    """An `ssl.SSLObject`, made by `wrap_bio`: what is written comes out as it is."""

    def __init__(self, context: Any, incoming: Any, outgoing: Any, server_side: bool, server_hostname: Any) -> None:
        self._store_tls_arguments(context, server_side, server_hostname)
        self._incoming, self._outgoing = incoming, outgoing

    def do_handshake(self, block: bool = False) -> None:  # noqa: ARG002
        if not self.server_side and self.server_hostname:
            # By name, since a BIO is not tied to any connection.
            perform_handshake(self.context, world().network.find_connection_gate(self.server_hostname))

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return ssl.SSLObject

    def read(self, len: int = 1024, buffer: Any = None) -> Any:  # noqa: A002 - the name that callers know
        data = self._incoming.read(len)
        # An empty read means the end to TLS, so "not yet" has to be an error.
        if not data and not self._incoming.eof:
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "The operation did not complete (read)")
        if buffer is None:
            return data
        memoryview(buffer).cast("B")[: data.__len__()] = data
        return data.__len__()

    def write(self, data: Any) -> int:
        return int(self._outgoing.write(data))

    def unwrap(self) -> None:
        """Ends the TLS; the other side is not waited for."""


def wrap_socket(context: Any, sock: Any, server_side: bool, server_hostname: Any) -> Any:
    """A socket of the world, with TLS: `SSLContext.wrap_socket`."""
    if type(sock) is SslSocket:
        raise NotImplementedError("only stream sockets are supported: this one has TLS already")
    return SslSocket.take_over_socket(sock, context, server_side, server_hostname)


def build_transport_info(context: Any, server_side: bool, server_hostname: Any) -> dict[str, Any]:
    """The facts of a transport with TLS, for `get_extra_info`. `context`: True for a default one."""
    # asyncio takes True for a default context.
    if not isinstance(context, ssl.SSLContext):
        context = ssl.create_default_context()
    ssl_object = SslObject(context, None, None, server_side, None if server_side else server_hostname)
    return {
        "ssl_object": ssl_object,
        "sslcontext": context,
        "peercert": ssl_object.getpeercert(),
        "cipher": ssl_object.cipher(),
        "compression": None,
    }


def choose_server_name(ssl_argument: Any, server_hostname: Any, host: Any) -> Any:
    """The name that a connection of an event loop asks for. Raises ValueError: as in asyncio."""
    if server_hostname is not None and not ssl_argument:
        raise ValueError("server_hostname is only meaningful with ssl")
    if ssl_argument and server_hostname is None:
        if not host:
            raise ValueError("You must set server_hostname when using ssl without a host")
        return host
    return server_hostname
