"""TLS in a world: a program finds what it would in life, and nothing is encrypted."""

import asyncio
import socket
import ssl
from typing import Any

import anyio
import pytest

from chaoslab.worlds.virtual.network.network import NetworkEnd
from chaoslab.worlds.virtual.network.serving import serve_application
from chaoslab.worlds.virtual.patches import Patches
from chaoslab.worlds.virtual.world import World
from tests.told import told_by
from tests.worlds.virtual.machine_parts import a_world, answers
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)

ASKED = b"GET / HTTP/1.1\r\nHost: tools\r\n\r\n"


def _world() -> World:
    world = a_world()
    serve_application(world.network, "tools", 443, answers)
    return world


in_a_world = told_by(lambda story: _world().run_program(story))


def _connected() -> ssl.SSLSocket:
    plain = socket.create_connection(("tools", 443), timeout=2)
    return ssl.create_default_context().wrap_socket(plain, server_hostname="tools")


@in_a_world
def test_a_socket_with_tls_tells_what_a_real_one_tells() -> None:
    plain = socket.create_connection(("tools", 443), timeout=2)
    number, context = plain.fileno(), ssl.create_default_context()
    with context.wrap_socket(plain, server_hostname="tools") as sock:
        assert plain.fileno() == -1, "the plain one is detached"
        plain.close()
        assert isinstance(sock, ssl.SSLSocket)
        assert isinstance(sock, socket.socket)
        assert (sock.fileno(), sock.gettimeout(), sock.context) == (number, 2, context)
        assert (sock.version(), sock.cipher()) == ("TLSv1.3", ("TLS_AES_256_GCM_SHA384", "TLSv1.3", 256))
        assert (sock.selected_alpn_protocol(), sock.compression(), sock.shared_ciphers()) == (None, None, None)
        assert (sock.server_hostname, sock.server_side, sock.pending()) == ("tools", False, 0)
        assert (sock.get_channel_binding(), sock.get_verified_chain()) == (None, [])  # type: ignore[attr-defined]
        told: Any = sock.getpeercert()
        assert (told["subjectAltName"], sock.getpeercert(True)) == ((("DNS", "tools"),), b"")
        sock.do_handshake()
        sock.write(ASKED)
        assert sock.read(8) == b"HTTP/1.1"
        bare = sock.unwrap()
        assert not isinstance(bare, ssl.SSLSocket)
        assert bare.recv(4) == b" 200"


def test_a_context_that_checks_nothing_sees_no_certificate() -> None:
    def story() -> Any:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(socket.create_connection(("tools", 443))).getpeercert()

    assert _world().run_program(story) == {}


@in_a_world
def test_the_errors_are_those_of_tls() -> None:
    sock = _connected()
    with pytest.raises(TimeoutError, match="The read operation timed out"):
        sock.recv(1)
    sock.setblocking(False)
    with pytest.raises(ssl.SSLWantReadError):
        sock.recv(1)
    with pytest.raises(ValueError, match="check_hostname requires server_hostname"):
        ssl.create_default_context().wrap_socket(socket.create_connection(("tools", 443)))
    with pytest.raises(ValueError, match="check_hostname requires server_hostname"):
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO())
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with pytest.raises(ValueError, match="server_hostname can only be specified in client mode"):
        server.wrap_socket(socket.create_connection(("tools", 443)), server_side=True, server_hostname="tools")
    with pytest.raises(NotImplementedError, match="only stream sockets are supported"):
        ssl.create_default_context().wrap_socket(sock, server_hostname="tools")
    with pytest.raises(ConnectionRefusedError):
        ssl.create_default_context().wrap_socket(socket.socket(), server_hostname="tools").connect(("tools", 8443))


def test_a_socket_may_be_wrapped_before_it_connects_even_while_it_does() -> None:
    def tell_scheme(environ: dict[str, Any], start: Any) -> list[bytes]:
        start("200 OK", [("content-length", "5")])
        return [environ["wsgi.url_scheme"].encode()]

    def story() -> list[bytes]:
        context, seen = ssl.create_default_context(), []
        early = context.wrap_socket(socket.socket(), server_hostname="tools")
        early.connect(("tools", 8443))
        dialling = socket.socket()
        dialling.setblocking(False)
        assert dialling.connect_ex(("tools", 8443)) != 0
        late = context.wrap_socket(dialling, server_hostname="tools", do_handshake_on_connect=False)
        late.settimeout(5)
        late.connect(("tools", 8443))
        for sock in (early, late):
            sock.sendall(ASKED)
            seen.append(sock.recv(999)[-5:])
        return seen

    world = _world()
    serve_application(world.network, "tools", 8443, tell_scheme)
    assert world.run_program(story) == [b"https"] * 2


@in_a_world
def test_in_memory_what_is_written_comes_out_as_it_is() -> None:
    coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(coming, going, server_hostname="10.0.0.1")
    assert isinstance(tls, ssl.SSLObject)
    tls.do_handshake()
    told: Any = tls.getpeercert()
    assert told["subjectAltName"] == (("IP Address", "10.0.0.1"),)
    with pytest.raises(ssl.SSLWantReadError):
        tls.read()
    coming.write(b"hello")
    buffer = bytearray(3)
    told = tls.read(3, buffer)
    assert (told, bytes(buffer), tls.read()) == (3, b"hel", b"lo")
    coming.write_eof()
    assert tls.read() == b""
    assert (tls.write(b"bye"), going.read()) == (3, b"bye")


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(ASKED)
    found = await reader.readexactly(8)
    writer.close()
    await writer.wait_closed()
    return found


def test_asyncio_connects_with_tls_and_upgrades_to_it() -> None:
    async def story() -> list[bytes]:
        reader, writer = await asyncio.open_connection("tools", 443, ssl=True)
        assert isinstance(writer.get_extra_info("ssl_object"), ssl.SSLObject)
        assert writer.get_extra_info("cipher")[1] == "TLSv1.3"
        assert isinstance(writer.get_extra_info("sslcontext"), ssl.SSLContext)
        assert not writer.can_write_eof()
        with pytest.raises(NotImplementedError):
            writer.write_eof()
        seen = [await _read(reader, writer)]
        reader, writer = await asyncio.open_connection("tools", 443)
        assert writer.get_extra_info("peercert") is None
        assert writer.can_write_eof()
        await writer.start_tls(ssl.create_default_context(), server_hostname="tools")
        assert writer.get_extra_info("peercert")["subject"] == ((("commonName", "tools"),),)
        seen.append(await _read(reader, writer))
        async with await anyio.connect_tcp("tools", 443, tls=True, tls_standard_compatible=False) as stream:
            await stream.send(ASKED)
            seen.append((await stream.receive())[:8])
        with pytest.raises(ValueError, match="server_hostname is only meaningful with ssl"):
            await asyncio.open_connection("tools", 443, server_hostname="tools")
        with pytest.raises(ValueError, match="You must set server_hostname when using ssl without a host"):
            await asyncio.open_connection("", 443, ssl=True)
        return seen

    assert _world().run_program_async(story) == [b"HTTP/1.1"] * 3


def test_a_server_of_the_programs_own_may_have_tls() -> None:
    async def story() -> bytes:
        async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            assert writer.get_extra_info("ssl_object").server_side
            writer.write((await reader.readline()).upper())
            writer.close()

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        async with await asyncio.start_server(shout, "127.0.0.1", 8443, ssl=context):
            reader, writer = await asyncio.open_connection("127.0.0.1", 8443, ssl=True)
            writer.write(b"hello\n")
            return await reader.read()

    assert _world().run_program_async(story) == b"HELLO\n"


def test_a_reset_is_one_under_tls_too() -> None:
    world = a_world()

    def accept(end: NetworkEnd) -> None:
        end.machine.schedule_after(1, end.reset)

    world.network.listen("tools", 443, accept)

    def story() -> None:
        with pytest.raises(ConnectionResetError):
            _connected().recv(1)

    world.run_program(story)


def test_outside_of_a_world_tls_is_real() -> None:
    with Patches(), pytest.raises(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="x").do_handshake()
