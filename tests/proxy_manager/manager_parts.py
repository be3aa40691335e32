"""What the manager's tests need of the whole path's."""

from __future__ import annotations

from tests.seams.lab_parts import SERVERS, Bench, bench, embedded, eventually, open_run, said, site

__all__ = ["SERVERS", "Bench", "bench", "embedded", "eventually", "open_run", "said", "site"]
