"""Answers that differ on purpose in the embedded server; docs/toxiproxy.md has the same list, with the reasons."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.wire.parity_parts import PARKED, Ask, get, post

HEAD = b"POST /proxies HTTP/1.1\r\nHost: x\r\n"
LONG = f'{{"name":"big","upstream":"a:1",{PARKED},"more":"{"x" * 1024 * 1024}"}}'
DEEP = f'{{"name":"deep","upstream":"a:1",{PARKED},"more":{"[" * 600}{"]" * 600}}}'
PLACED = '{"name":"placed","upstream":"a:1","listen":"127.0.0.1:0","enabled":false}'


@dataclass(frozen=True)
class Difference:
    """The real server's behaviour (in the words of the docs), and the requests whose last one shows it.

    `metrics` are the ones to be shown; `shown_by` says what shows it where requests cannot.
    """

    real: str
    asks: Sequence[Ask] = ()
    metrics: str = ""
    shown_by: str = ""


DIFFERENCES = [
    Difference(
        "Without `listen` a proxy listens on all interfaces.",
        # Told without opening one: populating with the same place keeps a proxy and its toxics.
        [
            post("/proxies", PLACED),
            post("/proxies/placed/toxics", '{"type":"noop"}'),
            post("/populate", '[{"name":"placed","upstream":"a:1","enabled":false}]'),
        ],
    ),
    Difference("A body may be of any size.", [post("/proxies", LONG)]),
    Difference("A body that is no JSON is refused in the words of Go's decoder.", [post("/proxies", "{oops")]),
    Difference("JSON may be nested 10,000 deep.", [post("/proxies", DEEP)]),
    Difference(
        "A body that breaks off, or whose chunks are none, is refused in JSON.",
        [Ask("POST", "", raw=HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")],
    ),
    Difference(
        "A target may have bytes beyond ASCII.",
        [Ask("GET", "", raw="GET /proxies/é HTTP/1.1\r\nHost: x\r\n\r\n".encode())],
    ),
    Difference(
        "HTTP/1.0 is answered as HTTP/1.0, and kept alive where asked for.",
        [Ask("GET", "", raw=b"GET /version HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")],
    ),
    Difference(
        "/metrics is compressed for who accepts gzip.",
        [Ask("GET", "/metrics", headers=(("Accept-Encoding", "gzip"),))],
        metrics="proxy",
    ),
    Difference(
        "A page may send requests with a User-Agent of its own, or from a name that it has led here.",
        [Ask("GET", "/version", headers=(("Origin", "http://evil.example"), ("User-Agent", "x")))],
    ),
    Difference(
        "The counters of a deleted proxy are shown for ever.",
        metrics="proxy",
        shown_by="test_the_counters_of_a_proxy_go_with_it",
    ),
    Difference(
        "Of two User-Agents the first counts, and a browser's second one is let through.",
        [Ask("GET", "/version", headers=(("User-Agent", "curl/8"), ("User-Agent", "Mozilla/5.0")))],
    ),
    Difference(
        "An upstream of `127.1`, `0`, `2130706433` or `0x7f.0.0.1` is taken, and each connection to it ends without a "
        "word.",
        [post("/proxies", f'{{"name":"old","upstream":"127.1:80",{PARKED}}}')],
    ),
    Difference(
        "The `toxics` of a proxy in a config file or a body are ignored without a word, as are an upstream that is no "
        "host:port (`http://web:80`), and the `enabled` of a proxy that /populate finds there.",
        shown_by="nothing: the line is on standard error alone",
    ),
    Difference("With `-runtime-metrics` it shows Go's: `go_*`.", [get("/metrics")], metrics="runtime"),
    Difference(
        "A request that is 15 s on its way is refused, and a connection that idles for 60 s is closed.",
        shown_by="nothing: it would take so long",
    ),
    Difference(
        "A host that cannot be looked up is named with the resolver's address.",
        shown_by="nothing: a name server would have to be asked",
    ),
    Difference(
        "`-seed` may be negative, and `-port` the name of a service (`mysql`).",
        shown_by="test_flags_that_only_the_real_server_takes",
    ),
    Difference(
        "A config file that cannot be used is logged, and the server starts without it.",
        shown_by="test_a_config_file_that_cannot_be_used_stops_the_embedded_server_only",
    ),
]
