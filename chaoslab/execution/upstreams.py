"""Services that stand behind a gateway of this process: its listeners, its addresses, and the faults that it cannot
do."""

import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from chaoslab.config.limits import list_allowed_hosts
from chaoslab.config.settings import copy_environment
from chaoslab.core.fault import get_trait, load_fault
from chaoslab.core.plan import Injection, Plan
from chaoslab.model import formats
from chaoslab.seams.gateway.routes import GatewayRoute, is_host_name
from chaoslab.seams.gateway.shared import Gateway
from chaoslab.seams.services.model import ModelHost
from chaoslab.seams.services.refusals import is_refusing_injection
from chaoslab.seams.services.seam import ServiceSeam

UPSTREAM_S = 660.0
"""The longest silence of a service, by default, in seconds: beyond that of the SDKs of models (600 s), so that they
give up by themselves. A stream of events may be silent for any time."""
MODEL = ModelHost(formats.find_format, formats.get_error_replies, recorded=True)
"""A service that speaks a model's API, in any format."""
GRACE_S = 0.5
"""The time for exchanges to end when the trial does, in seconds: an answer may have been sent and not noted yet."""

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
"""The variables in which programs look for a proxy; some read the small ones alone."""


def check_no_clock_faults(injections: Iterable[Injection]) -> None:
    """Checks that no injection moves a wall clock, which real time has but one of. Raises ValueError: one does."""
    for injection in injections:
        if any(get_trait(load_fault(choice.fault), "of_clock") for choice in injection.choices):
            raise ValueError(
                f"'{injection.name}' moves a wall clock, and in real time there is one for all: use world='virtual' in "
                "Python or a scenario"
            )


def check_no_refusing_faults(injections: Iterable[Injection], routes: Iterable[str]) -> None:
    """Checks that no injection refuses connections to a route. Raises ValueError: one does."""
    names = list(routes)
    for injection in injections:
        if injection.of_process and any(map(injection.covers, names)):
            raise ValueError(
                f"'{injection.name}' stops a process, and a service behind a gateway is none of the lab's: use "
                "reset_peer or timeout"
            )
        if is_refusing_injection(injection) and any(map(injection.covers, names)):
            raise ValueError(
                f"'{injection.name}' refuses connections, and a gateway has taken one before it knows the route: "
                "use reset_peer"
            )


def check_allowed_hosts(plan: Plan, routes: Mapping[str, GatewayRoute]) -> None:
    """Checks that the faults of a plan with limits hit loopback alone, or the hosts that these name. Raises ValueError:
    one would hit another."""
    allowed = list_allowed_hosts(plan.limits)
    # In the shadow nothing is hit, whatever the host.
    if allowed is None or any(limit.shadow for limit in plan.limits):
        return
    for injection in plan.injections:
        for route in routes.values():
            if injection.may_hit and injection.covers(route.name) and not route.is_local and route.host not in allowed:
                raise ValueError(
                    f"'{injection.name}' would hit {route.host}, and limits allow loopback alone and the hosts that "
                    "they name: add it to `hosts` of the limits"
                )


def check_no_doubled_paths(routes: Mapping[str, GatewayRoute]) -> None:
    """Checks that no provider's path would stand twice in an address. Raises ValueError: a route has it already."""
    for provider in formats.PROVIDERS:
        name, path = provider.name, provider.added
        if path and name in routes and routes[name].base.endswith(path):
            url = routes[name].url.removesuffix(path)
            raise ValueError(f"the route {name} goes to {url}{path}, and its SDK adds {path} itself: give {url}")


def is_model_route(route: GatewayRoute) -> bool:
    """True for a route that is known for a model's before it is asked."""
    is_named = route.name == "model" or any(route.name == provider.name for provider in formats.PROVIDERS)
    return is_named or formats.find_provider(route.host) is not None or formats.find_provider(route.name) is not None


@contextmanager
def open_gateway(
    routes: Mapping[str, GatewayRoute],
    seam: ServiceSeam,
    *,
    port: int = 0,
    ports: Mapping[str, int] | None = None,
    timeout_s: float = UPSTREAM_S,
    proxy: tuple[int, str] | None = None,
) -> Iterator[tuple[str, Gateway]]:
    """A context with listeners on loopback, one for all routes, one for each of `ports`, and that of the `proxy`; gives
    the first one's address. Those of the others are the gateway's `addresses`. Raises OSError: a port is taken."""
    from chaoslab.seams.gateway.engine import run_gateway

    seam.told_model = lambda request: MODEL if formats.is_model_request(request.path, request.body) else None
    shared = Gateway(routes, seam, threading.Lock(), timeout_s)
    with ExitStack() as stack:
        listeners = {"": stack.enter_context(_open_listener(port, "another --port"))}
        for name, number in (ports or {}).items():
            listeners[name] = stack.enter_context(_open_listener(number, f"another port in --port-of {name}="))
        urls = {name: "http://{}:{}".format(*listener.getsockname()[:2]) for name, listener in listeners.items()}
        shared.address = urls.pop("")
        shared.addresses.update(urls)
        serve_proxy = None
        if proxy is not None:
            from chaoslab.seams.gateway.forward import ForwardProxy

            number, proxy_route = proxy
            serve_proxy = ForwardProxy(
                shared, stack.enter_context(_open_listener(number, "another --proxy-port")), proxy_route
            ).accept_connections
        stack.enter_context(run_gateway(shared, listeners, serve_proxy))
        yield shared.address, shared


def make_address_variables(routes: Iterable[str], url: Callable[[str], str]) -> dict[str, str]:
    """The variables with the routes' addresses: CRM_URL for "crm". `url`: the address of a route. None is made for a
    host, which is asked at its own address."""
    return {f"{name.upper().replace('-', '_')}_URL": url(name) for name in routes if not is_host_name(name)}


def make_provider_variables(routes: Mapping[str, GatewayRoute], url: Callable[[str], str]) -> dict[str, str]:
    """The variables in which the SDKs of models' providers look for an address, with those of the gateway. `url`: the
    address of a route."""
    variables = {}
    for provider in formats.PROVIDERS:
        route = next((name for name in (provider.name, "model") if name in routes), None)
        if provider.variable and route is not None:
            has_path = provider.path and routes[route].base.endswith(provider.path)
            variables[provider.variable] = url(route) + ("" if has_path else provider.path)
    return variables


def make_no_proxy_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables by which programs ask this machine without a proxy, since the gateway is on it."""
    exceptions = {name: environment.get(name, "") for name in ("NO_PROXY", "no_proxy")}
    # In addition: what the user has excepted stays so.
    return {name: ",".join(filter(None, (hosts, "127.0.0.1,localhost"))) for name, hosts in exceptions.items()}


def prepare_proxy_variables(shared: Gateway, folder: str, *, near: bool) -> dict[str, str]:
    """The variables by which programs ask over the gateway's proxy and believe in its authority, whose certificates are
    written into the folder; none without a proxy. `near`: this machine is asked over it too."""
    from chaoslab.seams.gateway.trust import VARIABLES

    if shared.trust is None:
        return {}
    bundle = Path(folder, "certificates.pem")
    bundle.write_text(shared.trust.build_ca_bundle(copy_environment()), encoding="utf-8")
    return {
        **dict.fromkeys(PROXIES, shared.proxy),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), "" if near else "127.0.0.1,localhost,::1"),
        # Node heeds the variables of a proxy only if this one is set.
        **dict.fromkeys(VARIABLES, str(bundle)), "NODE_USE_ENV_PROXY": "1",
    }  # fmt: skip


def _open_listener(port: int, instead: str) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Else a port whose last connections have just been closed counts as taken for a while.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        # More than the 128 of Python's default, since parallel calls of an agent connect at once.
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"{os.strerror(error.errno or 0)}: choose {instead}", f"port {port}") from None
    return listener
