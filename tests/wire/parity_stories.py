"""Questions for the two servers, by hand: right ones, wrong ones, and ones that nobody would think of."""

import json
from collections.abc import Iterator

from tests.wire.parity_parts import PARKED, PROXY, Ask, delete, get, patch, post

TOXICS = "/proxies/p/toxics"
words = str.split
BROKEN = [
    *words(r"""
        nul nulx tru} falsy "abc "\q" "\u12g4" "\u12 "\ - -a 01 1. 1.x 1e 1e+ 1ex 1x {1:2} {"a":1,} [1,] {,} [,] {"a"
        {"a": {"a":tru é 'a' NaN Infinity -Infinity } ] , : / \ {"a":-} {"a":1.} {"a":01} {"a":1e} [[[ [{] {"a":[} {]
        [{"a":}] [nan] {"a":nul} // {}{ []] null true 0 -0 "x" [] [[]] {}
    """),
    *("", " \n", '"a\nb"', '{"a" 1}', '{"a":1 "b"}', "[1 2]", "\x00", "\ufeff{}", '"\x01"', '"\x7f"'),
    *('{"a":"\t"}', "\x85", "\xa0", "\xad", "\x07", "\x0b", "\x0c", "\t{}\r\n"),
]
LISTENS = [
    *words("""
        foo 127.0.0.1 127.0.0.1: 127.0.0.1:x 127.0.0.1:70000 127.0.0.1:-1 127.0.0.1:00 127.0.0.1:-0 localhost:0
        [::1]:0 ::1:0 [::1 [::1] [127.0.0.1]:0 ]:0 [:0 a]:0 [a]b:1 [a]:b:1 [a]:] [a]:[ a:b:c 127.0.0.1:99999999999999
        127.0.0.1:+0 127.0.0.1:+ 127.0.0.1:0x [::ffff:127.0.0.1]:0 é 127.0.0.1:é 192.0.2.1:0 127.0.0.1:1_0 127.0.0.1:٣
        []:x [[::1]]:0 127.0.0.1:65536 127.0.0.1:- 127.1:0 0:0 2130706433:0 017700000001:0 0177.0.0.1:0 127.0.0.01:0
        1.2.3:0 [0]:0
    """),
    "127.0.0.1:0 ",
]
WRONG = ["1", "-1.5", "1e2", "true", '"x"', "[1]", "{}", "null", "9223372036854775808", "1.0", "-0"]
NAMES = [
    *words(r"""
        <b>&' é a/b %41 a?b a#b .. . \ud800x \u0000 \b\f\n\r\t \u2028\u2029 \\ \" \ud83d\ude00 😀 \ud83d\ud83d\ude00
        null a+b a;b toxics \/
    """),
    *("a b", "\x7f", " "),
    "x" * 300,
]
TARGETS = [
    *words("""
        / /nope /version/ /proxies/ /proxies/p/ /proxies/p/x /proxies/p/toxics/ /proxies/p/toxics/x/y /Version
        /metrics //proxies // /proxies//toxics /proxies/../version /proxies/./p /proxies/.. /proxies/%2e%2e /../..
        /proxies/p/../p/ /proxies//p?a=b /.//%zz /proxies/%zz /proxies/%2 /proxies/% /proxies/a%2Fb /proxies/%2F
        /version%2f /%76ersion /proxies/%70 /proxies/%20 /proxies/+ /proxies/p%3Fx /proxies/p;x /proxies/%ff
        /proxies/%C3%A9 /proxies/%0A /proxies/p%00 /version?x=%zz /version? /version#f //a!b*c'd(e)
        //a%21b%20c%C3%A9%ff$&+,:;=@~ proxies version * ? http://h/version http://h//version?x http://h
        HTTP://h/version http:/version ftp://h/version /proxies/p?x=/toxics /version/.
    """)
]


def decoding() -> Iterator[Ask]:
    """Bodies that are no JSON, or no JSON of the right kind, wherever a body is taken."""
    yield post(TOXICS, '{"type":"latency","name":"t"}')
    for body in BROKEN:
        data = body.encode("latin-1") if body in "\x85\xa0\xad" else body
        yield from (post(target, data) for target in ("/proxies", "/populate", TOXICS))
        yield from (patch(target, data) for target in ("/proxies/p", f"{TOXICS}/t"))
    yield get("/proxies")


def fields() -> Iterator[Ask]:
    """Every field with every wrong type, in every case, twice, and unknown ones."""
    for wrong in WRONG:
        for name in words("name listen upstream enabled Logger logger toxics Mutex started NAME upſtream"):
            yield post("/proxies", f'{{"name":"f","upstream":"a:1",{PARKED},"{name}":{wrong}}}')
            yield delete("/proxies/f")
            if name != "listen" or wrong == "null":
                yield post("/populate", f'[{{"name":"g","upstream":"a:1",{PARKED},"{name}":{wrong}}}]')
                yield delete("/proxies/g")
            yield patch("/proxies/p", f'{{"{name}":{wrong}}}')
    for body in (
        f'{{"name":1,"upstream":2,{PARKED}}}',
        f'{{"upstream":2,"name":1,{PARKED}}}',
        f'{{"name":"f","name":"f2","upstream":"a:1",{PARKED}}}',
        f'{{"name":"f3","NAME":null,"upstream":"a:1",{PARKED}}}',
        f'{{"name":"","upstream":"a:1",{PARKED}}}',
        f'{{"name":"f4","upstream":"",{PARKED}}}',
        '{"listen":5,"upstream":"changed:1"}',
    ):
        yield post("/proxies", body)
        yield patch("/proxies/p", body)
        yield post("/populate", f"[{body}]")
        yield post("/populate", f"[{body},5]")
    yield get("/proxies")


def listening() -> Iterator[Ask]:
    """Addresses to listen on, to move to, and to dial."""
    for listen in LISTENS:
        quoted = json.dumps(listen)
        yield post("/proxies", f'{{"name":"l","upstream":"a:1","listen":{quoted}}}')
        yield delete("/proxies/l")
        yield post("/proxies", f'{{"name":"l","upstream":"a:1","listen":{quoted},"enabled":false}}')
        yield patch("/proxies/l", "{}")
        yield patch("/proxies/l", '{"upstream":"b:1"}')
        yield patch("/proxies/p", f'{{"listen":{quoted},"enabled":false}}')
        yield post("/populate", f'[{{"name":"l","upstream":"c:1","listen":{quoted},"enabled":false}}]')
        yield delete("/proxies/l")
        yield patch("/proxies/p", '{"listen":"127.0.0.1:0","enabled":true}')
        yield patch("/proxies/p", f'{{"listen":{quoted}}}')
        yield get("/proxies/p")
        yield patch("/proxies/p", '{"listen":"127.0.0.1:0","enabled":true}')
    for upstream in ("x", ":", "x:y", "x:99999", "[::1", "a b:1", " "):
        yield patch("/proxies/p", json.dumps({"upstream": upstream}))
    yield patch("/proxies/p", '{"upstream":""}')


def naming() -> Iterator[Ask]:
    """Proxies and toxics of every name, made, asked for and deleted."""
    for name in NAMES:
        yield post("/proxies", f'{{"name":"{name}","upstream":"a:1","listen":"127.0.0.1:0"}}')
        yield post(TOXICS, f'{{"type":"noop","name":"{name}"}}')
        yield post(TOXICS, f'{{"type":"{name}"}}')
    yield get("/proxies/p")
    yield get("/proxies")
    for path in words("%3Cb%3E%26' %C3%A9 a%20b a%2Fb %2541 a%3Fb a%23b %00 %08%0C%0A%0D%09 %E2%80%A8%E2%80%A9"):
        for ask in (get, delete, get):
            yield ask(f"{TOXICS}/{path}")
            yield ask(f"/proxies/{path}")
    for path in (
        "%EF%BF%BDx",
        "%ED%A0%80x",
        "%F0%9F%98%80",
        "%7F",
        "%5C",
        "%22",
        "%20",
        "null",
        "x" * 300,
        "a+b",
        "a;b",
        "toxics",
    ):
        yield get(f"{TOXICS}/{path}")
        yield get(f"/proxies/{path}")
        yield delete(f"/proxies/{path}/toxics/{path}")
    yield get("/proxies")


def toxics() -> Iterator[Ask]:
    """Every toxic with every attribute, wrong ones too, made and changed."""
    known: dict[str, tuple[str, ...]] = {
        "latency": ("latency", "jitter"),
        "bandwidth": ("rate",),
        "slow_close": ("delay",),
        "timeout": ("timeout",),
        "reset_peer": ("timeout",),
        "slicer": ("average_size", "size_variation", "delay"),
        "limit_data": ("bytes",),
        "noop": (),
    }
    for type_, names in known.items():
        yield post(TOXICS, f'{{"type":"{type_}"}}')
        yield post(TOXICS, f'{{"type":"{type_}","stream":"upstream"}}')
        path = f"{TOXICS}/{type_}_upstream"
        for name in (*names, "unknown"):
            for number, wrong in enumerate((*WRONG, "7", "-9223372036854775808")):
                yield post(TOXICS, f'{{"type":"{type_}","name":"x","attributes":{{"{name}":{wrong}}}}}')
                yield delete(f"{TOXICS}/x")
                yield patch(path, f'{{"attributes":{{"{name}":{wrong}}}}}')
                yield patch(path, f'{{"attributes":{{"{name}":{wrong},"{name.upper()}":{number}}},"toxicity":0.5}}')
                yield get(path)
        yield patch(path, '{"name":"n","type":5,"stream":7,"toxicity":0.25}')
        yield delete(path)
        yield delete(path)
    for wrong in WRONG:
        yield post(TOXICS, f'{{"type":"latency","name":"w","attributes":{wrong}}}')
        yield delete(f"{TOXICS}/w")
        yield post(TOXICS, f'{{"type":"zz","attributes":{wrong}}}')
        yield patch(f"{TOXICS}/latency_downstream", f'{{"attributes":{wrong}}}')
        for name in ("name", "type", "stream", "toxicity", "direction", "index"):
            yield post(TOXICS, f'{{"type":"latency","name":"w","{name}":{wrong}}}')
            yield patch(f"{TOXICS}/latency_downstream", f'{{"attributes":{{"jitter":1}},"{name}":{wrong}}}')
    for stream in ("up", "", " upstream", "UPSTREAM", "DownStream", "downſtream"):
        yield post(TOXICS, f'{{"type":"noop","stream":"{stream}"}}')
        yield post(TOXICS, f'{{"type":"none","stream":"{stream}"}}')
    for body in (
        '{"type":"latency","attributes":{"latency":3},"ATTRIBUTES":{"jitter":4},"name":"two"}',
        '{"type":"latency","attributes":{"latency":3},"attributes":null,"name":"null_after"}',
        '{"type":"latency","attributes":null,"attributes":{"latency":3},"name":"null_before"}',
        '{"type":"latency","attributes":null,"attributes":5,"name":"null_and_5"}',
        '{"type":"latency","toxicity":true,"attributes":5}',
        '{"attributes":5,"toxicity":true,"type":"latency"}',
        *(f'{{"type":"{odd}"}}' for odd in ("", "Latency", "LATENCY", "../latency", "__init__", "toxic", "latency ")),
    ):
        yield post(TOXICS, body)
        yield patch(f"{TOXICS}/two", body)
    for number, toxicity in enumerate(
        words("""
            0.1 0.123456789 1e-6 0.9e-6 1e-7 1e-50 1e-45 1e20 1e21 123456789 16777217 -0.0 3.4028235e38 3.4028236e38
            1e39 1e999 0.00001 2 -1 0.30000001
        """)
    ):
        yield post(TOXICS, f'{{"type":"noop","name":"share{number}","toxicity":{toxicity}}}')
    yield get(TOXICS)


def populating() -> Iterator[Ask]:
    """Lists of proxies: kept, replaced, made, and broken off."""
    one = f'{{"name":"a","upstream":"a:1",{PARKED}}}'
    other = f'{{"name":"a","upstream":"b:1",{PARKED}}}'
    for body in (
        *(
            f"[{one}]",
            f"[{one},{one}]",
            f"[{one},{other}]",
            f"[{other},null]",
            f"[{one},5]",
            f"[5,{one}]",
            f"[{one},{{}}]",
            "[null]",
            "[1]",
        ),
        *(
            '[{"name":"b"}]',
            '[{"upstream":"a:1"}]',
            f'[{one},{{"name":"b","upstream":"a:1","listen":"foo"}}]',
            "5",
            '"x"',
            "true",
            "[]",
            "[[]]",
        ),
        '[{"name":"p","upstream":"127.0.0.1:9","listen":"foo"}]',
        f'[{{"name":"c","upstream":"a:1",{PARKED},"toxics":[{{"type":"noop"}}]}}]',
        f'[{{"name":"c","upstream":"a:1",{PARKED},"enabled":null}}]',
        f'[{{"name":"c","upstream":"a:1",{PARKED},"enabled":"x"}}]',
        '[{"name":"d","upstream":"a:1","listen":"127.0.0.1:0"},{"name":"e","upstream":"a:1","listen":"127.0.0.1:bad"}]',
        '[{"name":"d","upstream":"a:1","listen":"127.0.0.1:0"}]',
    ):
        yield post("/proxies/a/toxics", '{"type":"noop"}')
        yield post("/populate", body)
        yield get("/proxies")
    yield post("/reset")
    yield get("/proxies")


def asking() -> Iterator[Ask]:
    """Every kind of request to every target, and what HTTP itself has to say."""
    yield post(TOXICS, '{"type":"noop","name":"t"}')
    for target in TARGETS:
        for method in ("GET", "HEAD", "POST"):
            yield Ask(method, target)
    for target in (
        "/version",
        "/proxies",
        "/populate",
        "/reset",
        "/proxies/p",
        TOXICS,
        f"{TOXICS}/t",
        "/nope",
        "//version",
        "*",
        "/metrics",
    ):
        for method in ("HEAD", "PUT", "OPTIONS", "TRACE", "FOO", "get", "GET"):
            yield Ask(method, target)
        for agent in ("Mozilla/5.0", "mozilla/5.0", "x Mozilla/5.0", ""):
            yield Ask("GET", target, headers=(("User-Agent", agent),))
            yield Ask("PUT", target, headers=(("User-Agent", agent),))
    yield from (
        delete(target)
        for target in ("/version", "/proxies", "/reset", "/proxies/q", f"{TOXICS}/q", "/proxies/q/toxics/q")
    )
    yield from (patch(target, "{") for target in ("/proxies/q", f"{TOXICS}/q", "/proxies/q/toxics/t"))
    yield from (post(target, "{") for target in ("/proxies/q", "/proxies/q/toxics", f"{TOXICS}/q", "/reset"))
    yield Ask("GET", "/version", headers=(("Connection", "close"),))
    yield Ask("GET", "/version", body="ignored")
    yield Ask("GET", "/version", headers=(("X-Long", "x" * 200_000),))
    yield Ask("GET", "/proxies", headers=(("Accept-Encoding", "gzip"), ("Accept", "text/html")))
    yield Ask(
        "POST", "/proxies", body=PROXY, headers=(("Content-Type", "text/plain"), ("X-HTTP-Method-Override", "GET"))
    )
    yield Ask("POST", "/proxies", body="{}", headers=(("Expect", "100-continue"),))
    head, version = (b"%b HTTP/1.1\r\nHost: x\r\n" % line for line in (b"POST /proxies", b"GET /version"))
    for raw in (
        b"GET /version HTTP/1.1\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET  /version HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /version x HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /version HTTP/2.0\r\nHost: x\r\n\r\n",
        b"GET /version\r\nHost: x\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: x\r\nno header\r\n\r\n",
        b"garbage\r\n\r\n",
        b"\r\nGET /version HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /version HTTP/1.1\nHost: x\n\n",
        head + b"Transfer-Encoding: gzip\r\n\r\n",
        head + b"Content-Length: x\r\n\r\n",
        head + b"Content-Length: -1\r\n\r\n",
        head + b"Content-Length: 2, 2\r\n\r\n{}",
        head + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        head + b"Content-Length: 9223372036854775808\r\n\r\n{}",
        head + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
        head + b"Content-Length: 02\r\n\r\n{}",
        head + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
        *(version + b"X: a%cb\r\n\r\n" % control for control in (0, 1, 8, 9, 11, 12, 0x1F, 0x7F, 0x80, 0xFF)),
        version + b"X\x01: a\r\n\r\n",
        version + b"X Y: a\r\n\r\n",
        version + b"X : a\r\n\r\n",
        version + b"X: a\r\n b\r\n\r\n",
        version + b"X: %b\r\n\r\n" % (b"x" * 1_052_000),
        version + b"X: %b\r\n\r\n" % (b"x" * 1_200_000),
        b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n" % (b"x" * 1_200_000),
        b"GET /version HTTP/1.1\r\nHost: a b\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: a\x01b\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: \xff\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost:\r\n\r\n",
        version + b"User-Agent: Mozilla/5.0\r\nUser-Agent: curl\r\n\r\n",
        version + b"User-Agent:   Mozilla/5.0  \r\n\r\n",
        head + b"Expect: more\r\nContent-Length: 2\r\n\r\n{}",
        head + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
    ):
        yield Ask("GET" if raw.startswith(b"G") else "POST", "", raw=raw)


STORIES = (decoding, fields, listening, naming, toxics, populating, asking)
