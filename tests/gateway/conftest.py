"""The service on loopback that a file's tests share."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.parts import shop


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with shop() as found:
        yield found


@pytest.fixture(scope="module")
def crm(server: Any) -> str:
    """The route to it."""
    return f"crm={server.url}"
