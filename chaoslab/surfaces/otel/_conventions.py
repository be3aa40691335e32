"""The names of OpenTelemetry's attributes that the lab writes, in one table, and the version that has them."""

SCHEMA = "https://opentelemetry.io/schemas/1.44.0"
"""The semantic conventions 1.44.0. Their `gen_ai` part is in development: a later version may have other names. The
name of MCP's is as in release 0.1.0 of the GenAI conventions, to which those on MCP have moved."""

OPERATION, AGENT, CONVERSATION = "gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.conversation.id"
INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
MODEL, FINISHED = "gen_ai.request.model", "gen_ai.response.finish_reasons"
TOKENS_IN, TOKENS_OUT = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
TOOL, TOOL_TYPE, CALL_ID = "gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.tool.call.id"
ARGUMENTS, RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
EVALUATION, SCORE, LABEL = "gen_ai.evaluation.name", "gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label"
WHY = "gen_ai.evaluation.explanation"
MCP_METHOD = "mcp.method.name"
ERROR, SERVER = "error.type", "server.address"
METHOD, STATUS, RESENT, PATH = (
    "http.request.method",
    "http.response.status_code",
    "http.request.resend_count",
    "url.path",
)

EVALUATED = "gen_ai.evaluation.result"
"""The event of a verdict."""
INVOKE, CHAT, EXECUTE = "invoke_agent", "chat", "execute_tool"
"""The values of `OPERATION`."""
TOOL_ERROR = "tool_error"
"""The value of `ERROR` if a tool of MCP says that it failed."""
OWN = "chaoslab."
"""The beginning of the names that no convention has."""
