"""The collected tests and what they import are some million objects that no garbage collection has to look at again."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
