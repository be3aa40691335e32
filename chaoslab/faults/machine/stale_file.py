"""A file is read as it was before it was changed."""

from collections.abc import Mapping
from dataclasses import dataclass

from chaoslab.core.changed_reply import ChangedReply, decode_reply_value, is_same_call, list_answered_calls
from chaoslab.core.exchange import Call, Flow, TrialContext
from chaoslab.core.json_values import dump_canonical
from chaoslab.core.machine import FIRST, LATEST, READ


@dataclass(frozen=True)
class StaleFile(ChangedReply):
    """Gives the file as it was when the trial began, as a cache or a shared disk does; one that was not there then is
    not found. A function gives its first answer to the same arguments."""

    conditional = True
    looks_back = True
    of_machine = (READ,)
    needs = "a file that its trial has changed, or a different answer to the same arguments"
    example = '"stale_file", "files.read", calls=[2]'
    source = "https://github.com/anthropics/claude-code/issues/43138"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        if call.target != READ:
            return (yield from super().flow(call, context))
        value = call.value if isinstance(call.value, Mapping) else {}
        return (yield call.with_value({**value, "version": FIRST}) if value.get("version") == LATEST else call)

    def change_value(self, value: object, call: Call, context: TrialContext) -> object:
        earlier = (
            decode_reply_value(reply) for past, reply in list_answered_calls(call, context) if is_same_call(past, call)
        )
        return next((answer for answer in earlier if dump_canonical(answer) != dump_canonical(value)), value)
