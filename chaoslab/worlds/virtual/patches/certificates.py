"""Authorities' certificates, which a context loads when it is made: 20 ms each time, for nobody to ask in a world.

A context made in a world puts the loading off until it is used outside of one, or is asked for its certificates. The
first load of a file is real, so that a wrong file is told at once; so is that of a file that has changed.
"""

import os
import ssl
from collections.abc import Callable, Iterable
from typing import Any

from chaoslab.worlds.virtual.machine.context import here
from chaoslab.worlds.virtual.patches import Patch

real_load = ssl.SSLContext.load_verify_locations
real_set_default = ssl.SSLContext.set_default_verify_paths
# The things that were loaded before: files with their size and time, folders, and data by its hash.
_loaded: set[object] = set()


class LazySslContext(ssl.SSLContext):
    """A context whose certificates are not loaded yet. It becomes an `ssl.SSLContext` when they are."""

    _later: list[Callable[[ssl.SSLContext], None]]

    def _load_certificates(self) -> None:
        later = vars(self).pop("_later")
        # In place, since programs hold the context.
        self.__class__ = ssl.SSLContext  # type: ignore[assignment]
        for load in later:
            load(self)

    def wrap_socket(self, *args: Any, **kwargs: Any) -> Any:
        # Outside of a world the handshake is real.
        if here.world is None:
            self._load_certificates()
        return ssl.SSLContext.wrap_socket(self, *args, **kwargs)

    def wrap_bio(self, *args: Any, **kwargs: Any) -> Any:
        if here.world is None:
            self._load_certificates()
        return ssl.SSLContext.wrap_bio(self, *args, **kwargs)

    def get_ca_certs(self, *args: Any, **kwargs: Any) -> Any:
        self._load_certificates()
        # By its own name: the class is the real one by now.
        return self.get_ca_certs(*args, **kwargs)

    def cert_store_stats(self) -> Any:
        self._load_certificates()
        return self.cert_store_stats()


LazySslContext.__name__ = LazySslContext.__qualname__ = "SSLContext"


def _defer_certificate_load(context: ssl.SSLContext, load: Callable[[ssl.SSLContext], None]) -> bool:
    """Puts the loading off if that can be done; True if so."""
    # A program's own subclass may do more than load.
    if here.world is None or type(context) not in (ssl.SSLContext, LazySslContext):
        return False
    vars(context).setdefault("_later", []).append(load)
    context.__class__ = LazySslContext
    return True


def load_verify_locations(self: ssl.SSLContext, cafile: Any = None, capath: Any = None, cadata: Any = None) -> None:
    key = _make_load_key(cafile, capath, cadata) if here.world is not None else None
    if key in _loaded and _defer_certificate_load(self, lambda context: real_load(context, cafile, capath, cadata)):
        return
    real_load(self, cafile, capath, cadata)
    if key is not None:
        _loaded.add(key)


def _make_load_key(cafile: Any, capath: Any, cadata: Any) -> object:
    """A key for what is to be loaded; None if it cannot be told, or has to be loaded anew each time."""
    try:
        stat = os.stat(cafile) if cafile is not None else None
        key = (
            os.fspath(cafile) if cafile is not None else None,
            (stat.st_size, stat.st_mtime_ns) if stat is not None else None,
            os.fspath(capath) if capath is not None else None,
            None if cadata is None else hash(cadata if isinstance(cadata, str) else bytes(cadata)),
        )
    except (OSError, TypeError, ValueError):
        return None
    return key if any(item is not None for item in key) else None


def set_default_verify_paths(self: ssl.SSLContext) -> None:
    if not _defer_certificate_load(self, real_set_default):
        real_set_default(self)


def patches() -> Iterable[Patch]:
    yield Patch(ssl.SSLContext, "load_verify_locations", load_verify_locations)
    yield Patch(ssl.SSLContext, "set_default_verify_paths", set_default_verify_paths)
