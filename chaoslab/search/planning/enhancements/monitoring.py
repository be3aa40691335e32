"""The measures to look at meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from chaoslab.search.planning.design import Design, Known, every


class Monitoring:
    """The calls of the target and its effects, and the targets whose calls failed with it before."""

    def of(self, design: Design, known: Known) -> Iterator[tuple[str, Any, str]]:
        failed, seen = Counter[str](), Counter[str]()
        for each in every(known.evidence, known.subject, design.target):
            for other, (lost, all_) in each.affected.items():
                failed[other] += lost
                seen[other] += all_
        others = [(name, count) for name, count in failed.most_common() if count]
        effects = ["its effects"] if known.evidence.changes(known.subject, design.target) else []
        watch = (f"calls of {design.target}", *effects, *(f"calls of {name}" for name, _ in others))
        said = ", ".join(f"those of {name} failed with it {count} of {seen[name]} times" for name, count in others)
        yield "watch", watch, said or "no other target is known to fail with it"
