"""The proxies that stand while a run is open, and their recovery when Toxiproxy has lost them, for example in a
restart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from chaoslab.base.clock import Clock
from chaoslab.base.interrupts import Flag
from chaoslab.wire.proxies import ToxiproxyDown, ToxiproxyError, WantedProxy

if TYPE_CHECKING:
    from chaoslab.wire.toxiproxy_package import ServedProxy, ToxiproxyServer

# The time that a silent Toxiproxy is waited for; after that it counts as gone.
RECOVER_S = 10.0
RETRY_S = 0.02

T_ = TypeVar("T_")


class NameTaken(ToxiproxyError):
    """A proxy of that name belongs to another lab; waiting would not help."""

    def __init__(self, url: str, there: ServedProxy, do: str) -> None:
        what = (
            f"'{there.name}' on the Toxiproxy at {url} is another's: it listens on {there.listen} for {there.upstream}"
        )
        super().__init__(f"{what}; {do}", status=None)


@dataclass(frozen=True)
class RepairedLoss:
    """A loss of proxies that has been repaired. `missing`: their names. `held`: the names of all that Toxiproxy still
    had."""

    what: str
    since: datetime
    lasted_s: float
    missing: frozenset[str]
    held: frozenset[str]


class StandingProxies:
    """The wanted proxies on one Toxiproxy, for one thread. `recovering` and `epoch` may be read from any thread."""

    def __init__(self, toxiproxy: ToxiproxyServer, *, clock: Clock, stopping: Flag) -> None:
        self._toxiproxy, self._clock, self._stopping = toxiproxy, clock, stopping
        self._wanted: dict[str, WantedProxy] = {}
        self.epoch = 0
        self.recovering = False
        self.gone = ""
        """The reason why Toxiproxy was given up, until it is found again."""
        self.foreign: dict[str, str] = {}
        """The changes by somebody else to the proxies, which have no toxics ("latency on weather"): their proxy."""

    def add_proxies(self, proxies: Sequence[WantedProxy]) -> None:
        """Makes the proxies that do not stand yet. A proxy that a killed lab left at the same address is replaced,
        without its toxics. Raises ToxiproxyError: a proxy of that name belongs to another lab, or one cannot be
        made."""

        def make_missing_proxies() -> None:
            held = self._toxiproxy.proxies()
            for proxy in proxies:
                standing_proxy = held.get(proxy.name)
                # As it was wanted first: another run may want the same proxy.
                own_wanted = self._wanted.get(proxy.name, proxy)
                if standing_proxy is not None and (
                    _get_port(standing_proxy) != _get_port(proxy) or own_wanted.upstream != proxy.upstream
                ):
                    raise NameTaken(
                        self._toxiproxy.url,
                        standing_proxy,
                        f"end that lab, or delete '{proxy.name}' if it was left behind",
                    )
            # One of this name that a killed lab left is replaced, since it may have toxics.
            new = [proxy for proxy in proxies if proxy.name not in held or proxy.name not in self._wanted]
            for proxy in new:
                if proxy.name in held:
                    self._toxiproxy.destroy(proxy.name)
            self._create_proxies(new)

        # Only silence is mended by time: another lab's proxy stays there.
        self._retry_until(make_missing_proxies, for_s=RECOVER_S, mends=lambda error: isinstance(error, ToxiproxyDown))
        self._wanted |= {proxy.name: proxy for proxy in proxies}

    def delete_own_proxies(self) -> None:
        """Deletes all of them that exist and still belong to this manager."""
        wanted, self._wanted = self._wanted, {}
        # Only what still is this lab's: another may have taken the name.
        try:
            held = self._toxiproxy.proxies()
            for name, proxy in wanted.items():
                if name in held and _is_same_proxy(held[name], proxy):
                    self._toxiproxy.destroy(name)
        except ToxiproxyDown:
            return

    def repair_missing_proxies(self) -> RepairedLoss | None:
        """Checks the proxies and makes the missing ones. Returns the outage, or None if all were there. Raises
        ToxiproxyError: they could not be made within `RECOVER_S`, or one belongs to another lab; `gone` has the reason
        until it is repaired."""
        began_s, since = self._clock.monotonic(), self._clock.utc()
        missing: set[str] = set()

        def restore_proxies() -> frozenset[str]:
            held = self._toxiproxy.proxies()
            for name, proxy in self._wanted.items():
                if name in held and not _is_same_proxy(held[name], proxy):
                    raise NameTaken(self._toxiproxy.url, held[name], f"it was this run's, for {proxy.upstream}")
            there = [(held[name], proxy) for name, proxy in self._wanted.items() if name in held]
            # These have no toxics of the lab's, so any is somebody else's.
            toxics = [(toxic, proxy) for proxy, _ in there for toxic in proxy.toxics().values()]
            foreign = {f"{toxic.type} on {proxy.name}": proxy.name for toxic, proxy in toxics}
            off = [proxy.name for proxy, wanted in there if wanted.enabled and not proxy.enabled]
            self.foreign = foreign | {f"{name} switched off": name for name in off}
            lacking = [proxy for name, proxy in self._wanted.items() if name not in held]
            missing.update(proxy.name for proxy in lacking)
            if lacking:
                self.recovering = True
                self._create_proxies(lacking)
            return frozenset(held)

        for_s = RECOVER_S if self._wanted and not self.gone else 0.0
        try:
            held = self._retry_until(restore_proxies, for_s=for_s, mends=lambda error: not isinstance(error, NameTaken))
        except ToxiproxyError as error:
            if isinstance(error, ToxiproxyDown) and self._wanted:
                self.gone = f"Toxiproxy at {self._toxiproxy.url} is gone: it did not answer for {RECOVER_S:g} s"
            else:
                self.gone = str(error)
            raise
        self.gone = ""
        if not missing:
            return None
        # Who was answered under an earlier number was sent to proxies that are gone.
        self.epoch += 1
        all_of_them = missing >= self._wanted.keys()
        what = "Toxiproxy was restarted" if all_of_them else f"{', '.join(sorted(missing))} had been taken down"
        return RepairedLoss(what, since, round(self._clock.monotonic() - began_s, 6), frozenset(missing), held)

    def _create_proxies(self, proxies: Sequence[WantedProxy]) -> None:
        self._toxiproxy.populate([vars(proxy) for proxy in proxies])

    def _retry_until(self, make: Callable[[], T_], *, for_s: float, mends: Callable[[ToxiproxyError], bool]) -> T_:
        """Calls `make`, and repeats it for up to `for_s` seconds while it fails with an error that time mends."""
        began_s = self._clock.monotonic()
        try:
            while True:
                try:
                    return make()
                except ToxiproxyError as error:
                    late = self._clock.monotonic() - began_s >= for_s
                    # A manager that is to stop must not wait.
                    if late or self._stopping.is_set() or not mends(error):
                        raise
                self.recovering = True
                self._clock.sleep(RETRY_S)
        finally:
            self.recovering = False


def _is_same_proxy(held: ServedProxy, wanted: WantedProxy) -> bool:
    return (_get_port(held), held.upstream) == (_get_port(wanted), wanted.upstream)


# The port alone: `0.0.0.0` and `::` are shown differently from how they were asked for.
def _get_port(proxy: ServedProxy | WantedProxy) -> str:
    return str(proxy.listen).rpartition(":")[2]
