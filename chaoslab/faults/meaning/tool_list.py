"""The list of a server's tools is not what it was, or says what it should not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaoslab.core.changed_reply import is_usable_reply, pick_at_share
from chaoslab.core.exchange import Call, Flow, Reply, TrialContext
from chaoslab.core.fault import Fault
from chaoslab.core.page import Page
from chaoslab.faults.meaning.prompt_injection import ORDER

CURSOR = "lab-page-2"
"""The place of the second page of a list that the fault has cut."""


@dataclass(frozen=True)
class ToolList(Fault):
    """Changes the answer to `tools/list` of an MCP server, from the one with the number `from_list` on: with 2, the
    tools change in the middle of a session.

    `how` "empty": there are none. "shorter": one is missing. "renamed": one has another name, by which its server does
    not know it. "poisoned": the description of one tells the model what to do (`text`). "paged": the half of them is on
    a second page, for which a client has to ask (`nextCursor`). "" draws one of "shorter", "renamed" and "poisoned".
    `point` (0–1) picks the tool; it is drawn if it is -1. It hits nothing but lists, and no
    other fault hits these. Of a client session (`mcp_tool`) and of `chaoslab mcp` the target is "tools/list".
    """

    how: Literal["", "empty", "shorter", "renamed", "poisoned", "paged"] = ""
    from_list: int = 1
    text: str = ORDER
    point: float = -1.0
    layer = "meaning"
    conditional = True
    corrupts = "reply"
    leaves = "value"
    of_listing = True
    needs = "a list of tools in MCP"
    bounds: ClassVar = {"from_list": (1, 10**6), "point": (-1, 1)}
    drawn: ClassVar = {"how": ("shorter", "renamed", "poisoned"), "point": ()}
    example = '"tool_list", "shop", how="poisoned"'
    source = "https://invariantlabs.ai/blog/mcp-security-notification-tool-poisoning-attacks"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        cursor = call.value.get("cursor") if isinstance(call.value, Mapping) else None
        listed_tools = self.how == "paged" and cursor == CURSOR
        if listed_tools:  # which the server does not know
            call = call.with_value({name: value for name, value in call.value.items() if name != "cursor"})
        reply: Reply = yield call
        tools = reply.value if is_usable_reply(reply) else None
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            return reply
        # Before the count: a second page belongs to the list that it ends.
        if listed_tools:
            return reply.with_value(tools[len(tools) // 2 :])
        context.memory["lists"] = number = context.memory.get("lists", 0) + 1
        if number < self.from_list or not tools:
            return reply
        if self.how == "paged":
            half = len(tools) // 2
            # A page of the server's own is not cut once more.
            return reply.with_value(Page(tools[:half], CURSOR)) if half and cursor is None else reply
        return reply.with_value(self._change_tools(tools))

    def _change_tools(self, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if self.how == "empty":
            return []
        chosen = pick_at_share(tools, self.point)
        if self.how == "shorter":
            return [tool for tool in tools if tool is not chosen]
        if self.how == "renamed":
            changed_tools = {**chosen, "name": f"{chosen.get('name', '')}_v2"}
        else:
            changed_tools = {**chosen, "description": f"{chosen.get('description') or ''}\n\n{self.text}".strip()}
        return [changed_tools if tool is chosen else tool for tool in tools]
