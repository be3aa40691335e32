"""A command succeeds and prints nothing."""

from dataclasses import dataclass
from typing import Any, ClassVar

from chaoslab.core.changed_reply import ChangedReply
from chaoslab.core.exchange import Call, TrialContext
from chaoslab.core.fault import Left
from chaoslab.core.machine import COMMANDS
from chaoslab.faults.meaning.empty import Empty


@dataclass(frozen=True)
class CommandSilent(ChangedReply):
    """Lets a command do its work and succeed, and nothing comes of its output. A function answers with an empty value
    of the same sort."""

    leaves: ClassVar[Left] = "nothing"
    of_machine = (COMMANDS,)
    example = '"command_silent", "commands", calls=[1]'
    source = "https://github.com/anomalyco/opencode/issues/6750"

    def change_value(self, value: Any, call: Call, context: TrialContext) -> Any:
        return Empty().change_value(value, call, context)
