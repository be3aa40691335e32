"""Addresses and cookies in answers lead their client back to the gateway."""

import pytest

from chaoslab.seams.gateway._rewriting import AddressRewriter
from chaoslab.seams.gateway.routes import parse_routes

KNOWN = parse_routes(["crm=http://127.0.0.1:9000", "api=https://api.test/v1", "shop=http://localhost:9100/shop"])
HERE = "http://127.0.0.1:8888"
PREFIXES = {name: f"{HERE}/{name}" for name in KNOWN}


def rewriting(name: str, own: str = "") -> AddressRewriter:
    return AddressRewriter(KNOWN[name], own or f"{HERE}/{name}", KNOWN, PREFIXES)


@pytest.mark.parametrize(
    ("route", "said", "led"),
    [
        ("crm", "http://127.0.0.1:9000/orders/?a=1#b", f"{HERE}/crm/orders/?a=1#b"),
        ("crm", "http://localhost:9000/orders/", f"{HERE}/crm/orders/"),
        ("crm", "HTTP://LocalHost.:9000/orders/", f"{HERE}/crm/orders/"),
        ("crm", "http://127.0.0.2:9000/x", "http://127.0.0.2:9000/x"),
        ("crm", "//127.0.0.1:9000", f"{HERE}/crm/"),
        ("crm", "/orders/", "/crm/orders/"),
        ("crm", "orders/", "orders/"),
        ("crm", "", ""),
        ("crm", "http://127.0.0.1:9001/x", "http://127.0.0.1:9001/x"),
        ("crm", "https://127.0.0.1:9000/x", "https://127.0.0.1:9000/x"),
        ("crm", "http://elsewhere.test/x", "http://elsewhere.test/x"),
        ("crm", "https://api.test/v1/models", f"{HERE}/api/models"),
        ("crm", "http://[no", "http://[no"),
        ("api", "https://api.test/v1?x", f"{HERE}/api?x"),
        ("api", "https://api.test/v2/x", "https://api.test/v2/x"),
        ("api", "/v1/models", "/api/models"),
        ("shop", "http://127.0.0.1:9100/shop/a", f"{HERE}/shop/a"),
    ],
)
def test_an_address(route: str, said: str, led: str) -> None:
    fields = [
        ("Location", said), ("Content-Location", said), ("X-Location", said), ("refresh", f"5; URL='{said}'"),
        ("Refresh", "5"),
    ]  # fmt: skip
    assert rewriting(route).rewrite_headers(fields) == [
        ("Location", led), ("Content-Location", led), ("X-Location", said), ("refresh", f"5; URL='{led}'"),
        ("Refresh", "5"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("route", "said", "led"),
    [
        ("crm", "a=b; Path=/api; HttpOnly", "a=b; Path=/crm/api; HttpOnly"),
        ("crm", "a=b; path=/", "a=b; path=/crm"),
        ("crm", "a=b; Domain=127.0.0.1; Secure", "a=b; Secure"),
        ("api", "a=b; Domain=api.test; Secure; Path=/v1/x", "a=b; Path=/api/x"),
        ("api", "a=/v1/x; Path=/", "a=/v1/x; Path=/api"),
        ("api", "a=b; Path=/v2", "a=b; Path=/api/v2"),
    ],
)
def test_a_cookie(route: str, said: str, led: str) -> None:
    assert rewriting(route).rewrite_headers([("Set-Cookie", said)]) == [("Set-Cookie", led)]


@pytest.mark.parametrize(
    ("route", "said", "led"),
    [
        ("crm", "__Host-a=b; Path=/; Secure", ["__Host-a=b; Path=/; Secure"]),
        ("api", "__host-a=b; Secure; Path=/", ["__host-a=b; Secure; Path=/", "__host-a=b; Path=/"]),
        ("api", "__Secure-a=b; Domain=api.test; Secure; Path=/v1",
         ["__Secure-a=b; Secure; Path=/api", "__Secure-a=b; Path=/api"]),
        ("crm", "__Secure-a=b; Secure; Path=/x", ["__Secure-a=b; Secure; Path=/crm/x"]),
        ("crm", "a__Host-=b; Path=/; Secure", ["a__Host-=b; Path=/crm; Secure"]),
    ],
)  # fmt: skip
def test_a_cookie_with_a_prefix_comes_as_that_demands_and_for_clients_that_know_no_prefix(
    route: str, said: str, led: list[str]
) -> None:
    assert rewriting(route).rewrite_headers([("Set-Cookie", said)]) == [("Set-Cookie", each) for each in led]


def test_at_a_port_of_its_own_a_route_has_no_path_before_its_paths() -> None:
    at_port = rewriting("crm", "http://localhost:9200")
    said = [("Location", "http://127.0.0.1:9000/x"), ("Location", "/x"), ("Set-Cookie", "a=b; Path=/x")]
    led = [("Location", "http://localhost:9200/x"), ("Location", "/x"), ("Set-Cookie", "a=b; Path=/x")]
    assert at_port.rewrite_headers(said) == led
