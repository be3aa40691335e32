"""The embedded Toxiproxy at the full size of tests/wire/test_server_stress.py, with the time that each takes: 10,000
proxies, 8,000 idle connections and 100,000 requests. Run as `python benchmarks/stress.py`.
"""

import sys
from pathlib import Path

import pytest

STRESS = Path(__file__).parent.parent / "tests" / "wire" / "test_server_stress.py"
FULL = {"PROXIES": 10_000, "IDLE": 8_000, "REQUESTS": 100_000, "PROXIES_KB": 32_000}


class Full:
    """A plug-in that sets the sizes."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            vars(item.module).update(FULL)  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(pytest.main([str(STRESS), "--durations=0", "--durations-min=1"], plugins=[Full()]))
