"""Messages as the gateway's loop takes them out of what it has read, and the last head of each connection."""

from __future__ import annotations

import pytest

from chaoslab.seams.gateway.whole import SIZE_MAX, NotForLoop, answer_head, request_head

ASKED = b"POST /crm/orders HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer sesame-17\r\nContent-Length: 3\r\n\r\n"
SAID = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nConnection: keep-alive\r\nX-Id: 7\r\n\r\n"


def test_a_head_that_comes_again_is_not_read_again_and_any_other_is() -> None:
    assert request_head(ASKED[:-2], "", None) is None
    first = request_head(ASKED + b"abc", "", None)
    assert first is not None
    assert request_head(ASKED + b"xyzGET ", "", first) is first
    assert (first.name, first.secrets, first.size) == ("crm", {"sesame-17"}, len(ASKED) + 3)
    assert [first.request(body)[0].body for body in (b"abc", b"xyz")] == [b"abc", b"xyz"]
    other = request_head(ASKED.replace(b"orders", b"people") + b"abc", "", first)
    assert other is not None
    assert (other.request(b"")[0].target, first.request(b"")[0].target) == ("/people", "/orders")


def test_a_head_leads_elsewhere_at_the_port_of_a_route() -> None:
    found = [request_head(ASKED + b"abc", only, None) for only in ("", "shop", "crm")]
    assert [(each.name, each.request(b"")[0].target) for each in found if each] == [
        ("crm", "/orders"), ("shop", "/crm/orders"), ("crm", "/crm/orders")
    ]  # fmt: skip


def test_an_answers_head_goes_on_without_what_concerns_one_connection() -> None:
    assert answer_head(SAID[:-1], None) is None
    head = answer_head(SAID + b"ok", None)
    assert head is not None
    assert answer_head(SAID + b"no", head) is head
    assert (head.status, head.size, head.closes) == (201, len(SAID) + 2, False)
    assert head.sent == b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nX-Id: 7\r\n\r\n"


@pytest.mark.parametrize(
    "change",
    [
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b"Content-Length: 3", b"Transfer-Encoding: chunked"),
        (b"Content-Length: 3", b"Content-Length: 3\r\nTransfer-Encoding: chunked"),
        (b"Content-Length: 3", b"Content-Length: 3\r\ncontent-length: 4"),
        (b"Content-Length: 3", b"Content-Length: +3"),
        (b"Content-Length: 3", b"Content-Length: " + b"9" * 5000),
        (b"Content-Length: 3", b"Content-Length: %d" % SIZE_MAX),
        (b"Content-Length: 3", b"Expect: 100-continue"),
        (b"Content-Length: 3", b"Connection: close"),
        (b"Content-Length: 3", b"Upgrade: websocket"),
        (b"Content-Length: 3", b"Origin: http://page.test"),
        (b"127.0.0.1", b"page.test"),
        (b"Authorization: ", b"Authorization : "),
    ],
)
def test_what_is_not_plain_is_for_a_thread(change: tuple[bytes, bytes]) -> None:
    with pytest.raises(NotForLoop):
        request_head(ASKED.replace(*change) + b"abc", "", None)
