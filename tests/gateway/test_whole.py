"""Messages as the gateway's loop takes them out of what it has read, and the heads that it keeps."""

from __future__ import annotations

import pytest

from chaoslab.seams.gateway.whole import HEAD_KEPT_MAX, HEADS_MAX, SIZE_MAX, Heads, NotForLoop

ASKED = b"POST /crm/orders HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer sesame-17\r\nContent-Length: 3\r\n\r\n"
SAID = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nConnection: keep-alive\r\nX-Id: 7\r\n\r\n"


def test_requests_with_one_head_have_their_own_bodies_and_rests() -> None:
    heads = Heads()
    assert heads.request_in(ASKED[:-2], "") is None
    assert heads.request_in(ASKED + b"ab", "") is None
    first, second = heads.request_in(ASKED + b"abc", ""), heads.request_in(ASKED + b"xyzGET ", "")
    assert first is not None
    assert second is not None
    assert (first[1].body, first[2], second[1].body, second[2]) == (b"abc", b"", b"xyz", b"GET ")
    assert first[0] is second[0]
    assert (first[0].name, first[1].target, first[0].secrets) == ("crm", "/orders", {"sesame-17"})


def test_one_head_leads_elsewhere_at_the_port_of_a_route() -> None:
    heads = Heads()
    found = [heads.request_in(ASKED + b"abc", only) for only in ("", "shop", "crm")]
    assert [(each[0].name, each[1].target) for each in found if each] == [
        ("crm", "/orders"), ("shop", "/crm/orders"), ("crm", "/crm/orders")
    ]  # fmt: skip


def test_answers_with_one_head_have_their_own_bodies() -> None:
    heads = Heads()
    assert heads.answer_in(SAID + b"o", "GET") is None
    first, second = heads.answer_in(SAID + b"ok", "GET"), heads.answer_in(SAID + b"no", "POST")
    assert first is not None
    assert second is not None
    assert first[0] is second[0]
    assert (first[1], second[1], first[0].status) == (b"ok", b"no", 201)
    assert first[0].data == b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nX-Id: 7\r\n\r\n"
    for data, method in ((SAID + b"ok", "HEAD"), (SAID + b"too long", "GET")):
        with pytest.raises(NotForLoop):
            heads.answer_in(data, method)


def test_few_heads_are_kept_and_no_large_one() -> None:
    heads = Heads()
    for n in range(2 * HEADS_MAX):
        heads.request_in(ASKED.replace(b"orders", b"%d" % n) + b"abc", "")
        heads.answer_in(SAID.replace(b"7", b"%d" % n) + b"ok", "GET")
    kept = [each.cache_info().currsize for each in (heads._request, heads._answer)]
    assert kept == [HEADS_MAX, HEADS_MAX]
    large = ASKED.replace(b"sesame", b"s" * HEAD_KEPT_MAX) + b"abc"
    ones = [heads.request_in(large, "") for _ in range(2)]
    assert ones[0] is not None
    assert ones[1] is not None
    assert ones[0][0] is not ones[1][0]


@pytest.mark.parametrize(
    "change",
    [
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b"Content-Length: 3", b"Transfer-Encoding: chunked"),
        (b"Content-Length: 3", b"Content-Length: 3\r\nTransfer-Encoding: chunked"),
        (b"Content-Length: 3", b"Content-Length: 3\r\ncontent-length: 4"),
        (b"Content-Length: 3", b"Content-Length: +3"),
        (b"Content-Length: 3", b"Content-Length: %d" % SIZE_MAX),
        (b"Content-Length: 3", b"Expect: 100-continue"),
        (b"Content-Length: 3", b"Connection: close"),
        (b"Content-Length: 3", b"Upgrade: websocket"),
        (b"Content-Length: 3", b"Origin: http://page.test"),
        (b"127.0.0.1", b"page.test"),
        (b"Authorization: ", b"Authorization : "),
    ],
)
def test_what_is_not_plain_is_for_a_thread_each_time(change: tuple[bytes, bytes]) -> None:
    heads = Heads()
    for _ in range(2):
        with pytest.raises(NotForLoop):
            heads.request_in(ASKED.replace(*change) + b"abc", "")
