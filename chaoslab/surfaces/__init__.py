"""The places where an agent that is no Python function meets the library: a command, a gateway, MCP; and pytest.

Other rooms use `exec_agent`, `gateway`, `levers`, `mcp_proxy`, `mcp_remote`, `otel.collector`,
`otel.export`, `projects`, `schemas.mcp_tools`, `schemas.openapi`, `schemas.writing`, `sessions`, `ui.reader`,
`ui.server`.
"""
