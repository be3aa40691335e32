"""A part of a file is written, and nobody says so."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.machine import WRITE


@dataclass(frozen=True)
class PartialWrite(Fault):
    """Keeps the first `share` of what is written into a file, as a crash before the rest reached the disk does. At a
    function, the longest text among its arguments is cut."""

    share: float = 0.5
    layer = "tool"
    corrupts: ClassVar[Literal["", "call", "reply"]] = "call"
    conditional = True
    of_machine = (WRITE,)
    needs = "a text among the arguments"
    bounds: ClassVar = {"share": (0, 1)}
    example = '"partial_write", "files.write", calls=[1]'
    source = "https://danluu.com/file-consistency/"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        value = call.value if isinstance(call.value, Mapping) else {}
        if call.target == WRITE:
            return (yield call.with_value({**value, "share": self.share}))
        texts = {name: text for name, text in value.items() if isinstance(text, str) and text}
        if not texts:
            return (yield call)
        name = max(texts, key=lambda key: len(texts[key]))
        return (yield call.with_value({**value, name: texts[name][: int(len(texts[name]) * self.share)]}))
