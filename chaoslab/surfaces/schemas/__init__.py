"""Fakes for a service, made of its schema: OpenAPI, or the list of tools of an MCP server."""
