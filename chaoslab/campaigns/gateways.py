"""The gateways that a campaign's steps begin. Each registers its addresses in the campaign's folder itself: its logs
may be elsewhere or nowhere, and the process that began it may have been killed."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from os import getpid
from pathlib import Path

from chaoslab.base import files
from chaoslab.config.settings import copy_environment

VARIABLE = "CHAOSLAB_GATEWAYS"
"""Names the folder in which gateways register."""


@contextmanager
def register_gateway(urls: Mapping[str, str]) -> Iterator[None]:
    """A context in which this process's gateway is registered, if a campaign has begun it. `urls`: the address at it of
    each service, by the service's own. Raises OSError: the file cannot be written."""
    if not (folder := copy_environment().get(VARIABLE)):
        yield
        return
    path = _make_path(Path(folder), getpid())
    with files.replace_file(path) as draft:
        draft.write_text(json.dumps(dict(urls)), encoding="utf-8")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def read_gateway_urls(folder: Path, pids: Iterable[int]) -> dict[str, str]:
    """The addresses that the gateways among these processes have registered."""
    urls: dict[str, str] = {}
    for pid in pids:
        with suppress(files.Unreadable):  # it is none, or does not answer yet
            urls |= files.read_json(_make_path(folder, pid))
    return urls


def _make_path(folder: Path, pid: int) -> Path:
    return folder / f"gateway.{pid}.json"
