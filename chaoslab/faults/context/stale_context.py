"""An old result of a tool stands in the history in place of a newer one, as from a cache that was not cleared."""

from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar

from chaoslab.core.dialog import FoundToolResult, find_tool_results
from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class StaleContext(Fault):
    """Replaces the content of one result by that of the result before it of the same tool. It still answers its own
    call.

    `point` (0–1, from the oldest to the newest) picks the result; it is drawn. A request in which no tool has two
    different results passes unchanged. The agent keeps its own history, so its next request holds the newer result.
    """

    point: float = -1.0
    layer = "context"
    corrupts = "call"
    needs = "two different results of one tool in the conversation"
    bounds: ClassVar = {"point": (-1.0, 1.0)}
    drawn: ClassVar = {"point": ()}
    example = '"stale_context", "api.openai.com", chance=0.2'
    source = "https://github.com/esengine/DeepSeek-Reasonix/pull/2955"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        # A copy, since a result is changed in place and the call as it was made is kept.
        messages = deepcopy(call.dialog.list_messages(call.value))
        newest: dict[str, FoundToolResult] = {}
        pairs: list[tuple[FoundToolResult, FoundToolResult]] = []
        for result in find_tool_results(messages):
            before = newest.get(result.tool)
            if before is not None and before.content != result.content:
                pairs.append((before, result))
            newest[result.tool] = result
        if not pairs:
            return (yield call)
        before, result = pairs[min(int(self.point * len(pairs)), len(pairs) - 1)]
        result.holder[result.key] = deepcopy(before.content)
        return (yield call.with_value(call.dialog.with_messages(call.value, messages)))
