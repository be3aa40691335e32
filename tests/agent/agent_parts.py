"""Names of the whole path's tests that the agent's tests use."""

from tests.seams.lab_parts import DEADLINE_S, NOW, Bench, Heard, Site, bench, embedded, eventually, managed, said, site

__all__ = ["DEADLINE_S", "NOW", "Bench", "Heard", "Site", "bench", "embedded", "eventually", "managed", "said", "site"]
