"""The collected tests and what they import are some million objects that no garbage collection has to look at again.

An example of a property has no deadline: on a busy machine it would be the machine that is tested.
"""

from __future__ import annotations

import gc

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
