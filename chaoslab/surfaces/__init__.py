"""The places where an agent that is no Python function meets the library: a command, a gateway, MCP; and pytest."""
