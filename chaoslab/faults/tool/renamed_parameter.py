"""A parameter has another name since yesterday, and the old one is ignored."""

from collections.abc import Mapping
from dataclasses import dataclass

from chaoslab.core.changed_reply import is_model_request
from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.fault import Fault


@dataclass(frozen=True)
class RenamedParameter(Fault):
    """The target does not get the argument `parameter`, and nobody says so: it does the work with its own default. The
    effect has what was done.

    Empty: the last of several arguments. A function that requires it raises TypeError, as a strict service refuses. A
    call without it passes unchanged.
    """

    parameter: str = ""
    layer = "tool"
    corrupts = "call"
    of_tools = True
    of_effect = True
    needs = "an argument beside another one"
    example = '"renamed_parameter", "refund", parameter="amount"'
    source = "https://github.com/erikdarlingdata/PerformanceMonitor/issues/3870"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        value = call.value
        if not isinstance(value, Mapping) or not value or is_model_request(call):
            return (yield call)
        name = self.parameter or ([*value][-1] if len(value) > 1 else "")
        if name not in value:
            return (yield call)
        return (yield call.with_value({key: entry for key, entry in value.items() if key != name}))
