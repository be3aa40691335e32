"""A line that is no message stands on a server's standard output."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from chaoslab.core.exchange import Call, Flow, Reply, TrialContext
from chaoslab.core.fault import Fault

LINES = {"text": "INFO: request handled in 12 ms", "json": '{"level": "info", "message": "handled"}', "blank": ""}


@dataclass(frozen=True)
class StdoutNoise(Fault):
    """Puts a line that is no JSON-RPC before an answer of an MCP server, as a `print` in the server or a banner of its
    launcher does. The answer follows unchanged.

    `how` "text": it is a line of a log. "json": JSON of something else. "blank": it is empty. "" draws one. It hits
    the answers of tools, and with the target "initialize" the first answer of a session; only `chaoslab mcp` has it.
    Elsewhere no such line reaches an agent: over HTTP there is no standard output, and to `mcp_tool` the SDK's session
    has dropped it already.
    """

    how: Literal["", "text", "json", "blank"] = ""
    layer = "tool"
    conditional = True
    of_stdio = True
    needs = "an MCP server on standard input and output"
    met_as = "the line stood before the answer"
    drawn: ClassVar = {"how": ("text", "json", "blank")}
    example = '"stdout_noise", "initialize", how="text"'
    source = "https://modelcontextprotocol.io/docs/develop/build-server#logging-in-mcp-servers"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        reply: Reply = yield call
        return reply.with_leading_line(LINES[self.how])
