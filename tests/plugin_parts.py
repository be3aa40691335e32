"""A package from outside of the tree that brings a fault, installed for one test."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaoslab.base import registry

HEAD = """
from __future__ import annotations

from dataclasses import dataclass

from chaoslab.core.exchange import Toxic, Wait
from chaoslab.core.fault import Fault
"""

STALE = """
@dataclass(frozen=True)
class Sock(Fault):
    '''The first reply of the same tool comes again.'''

    layer = "meaning"
    corrupts = "reply"
    looks_back = True

    def flow(self, call, context):
        reply = yield call
        old = [each.reply for each in context.earlier if each.call.tool == call.tool and each.reply is not None]
        return old[0] if old else reply
"""
"""A fault that looks back, of which `Sock` is the class."""


@contextmanager
def installed(
    folder: Path, source: str, *, fault: str = "gremlin", head: str = HEAD, group: str = "faults"
) -> Iterator[Path]:
    """The distribution gremlins 1.0, whose module is `source` with the class `Sock`; yields its folder."""
    (folder / "gremlins.py").write_text(f"{head}\n{source}\n")
    about = folder / "gremlins-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gremlins\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[chaoslab.{group}]\n{fault} = gremlins:Sock\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        registry.load_plugin.cache_clear()
        try:
            yield folder
        finally:
            sys.modules.pop("gremlins", None)
            registry.load_plugin.cache_clear()
