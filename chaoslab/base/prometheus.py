"""Metrics in Prometheus's text format."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Family:
    """One metric: its name, help and type, and a value for each set of labels."""

    name: str
    help: str
    kind: str
    samples: Mapping[Labels, float]

    def __str__(self) -> str:
        lines = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} {self.kind}"]
        for labels, value in sorted(self.samples.items()):
            pairs = ",".join(f'{name}="{text.translate(ESCAPES)}"' for name, text in labels)
            number = repr(float(value)).removesuffix(".0")
            lines.append(f"{self.name}{{{pairs}}} {number}" if pairs else f"{self.name} {number}")
        return "\n".join(lines) + "\n"


def render_metrics(families: Iterable[Family]) -> str:
    return "".join(str(family) for family in sorted(families, key=lambda family: family.name))
