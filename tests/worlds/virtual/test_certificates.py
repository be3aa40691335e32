"""Certificates of authorities are loaded when somebody asks for them, and then for real."""

import ssl
from pathlib import Path
from typing import Any

import certifi
import pytest
import trustme

from chaoslab.worlds.virtual.patches import Patches
from tests.worlds.virtual.machine_parts import a_world
from tests.worlds.virtual.patch_parts import in_place

stand_ins = pytest.fixture(scope="module", autouse=True)(in_place)


@pytest.fixture
def authority(tmp_path: Path) -> tuple[trustme.CA, str]:
    made, file = trustme.CA(), tmp_path / "ca.pem"
    made.cert_pem.write_to_path(str(file))
    return made, str(file)


def _shakes_hands(context: ssl.SSLContext, authority: trustme.CA) -> bool:
    """True if the client's context accepts a server with a certificate of that authority."""
    of_server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("shop").configure_cert(of_server)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(down, up, server_hostname="shop")
    server = of_server.wrap_bio(up, down, server_side=True)
    for _ in range(3):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLCertVerificationError:
                return False
    return client.version() == "TLSv1.3"


def test_a_context_of_a_world_checks_certificates_for_real_outside_of_it(authority: tuple[trustme.CA, str]) -> None:
    made, file = authority

    def story() -> list[ssl.SSLContext]:
        return [ssl.create_default_context(cafile=file) for _ in range(2)]

    contexts = a_world().run_program(story)
    for context in (*contexts, *a_world().run_program(story)):
        assert isinstance(context, ssl.SSLContext)
        assert not _shakes_hands(context, trustme.CA()), "a stranger"
        assert _shakes_hands(context, made)
        assert type(context) is ssl.SSLContext


def test_it_does_so_after_the_stand_ins_have_gone(authority: tuple[trustme.CA, str]) -> None:
    made, file = authority
    with Patches():
        contexts = a_world().run_program(lambda: [ssl.create_default_context(cafile=file) for _ in range(2)])
    assert [_shakes_hands(context, made) for context in contexts] == [True, True]


def test_who_asks_for_the_certificates_gets_them() -> None:
    def story() -> list[int]:
        seen = []
        for file in (None, certifi.where()):
            one, other = (ssl.create_default_context(cafile=file) for _ in range(2))
            seen += [len(one.get_ca_certs()), other.cert_store_stats()["x509_ca"]]
        return seen

    real = story()
    assert all(real)
    assert a_world().run_program(lambda: [story(), story()]) == [real, real]


WRONG: dict[str, dict[str, Any]] = {"missing": {"cafile": "/no/such.pem"}, "garbled": {"cadata": "none"}, "nothing": {}}


@pytest.mark.parametrize("given", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_file_is_told_at_once(given: dict[str, Any]) -> None:
    def story() -> tuple[type, str]:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(**given)
        except Exception as error:  # noqa: BLE001 - which one it is, is the point
            return type(error), str(error)
        return type(None), ""

    expected = story()
    assert issubclass(expected[0], Exception)
    assert a_world().run_program(lambda: [story(), story()]) == [expected, expected]


def test_a_file_that_has_changed_is_looked_at_again(authority: tuple[trustme.CA, str]) -> None:
    _, file = authority

    def story() -> None:
        ssl.create_default_context(cafile=file)
        ssl.create_default_context(cafile=file)
        Path(file).write_text("no certificate")
        with pytest.raises(ssl.SSLError):
            ssl.create_default_context(cafile=file)

    a_world().run_program(story)
