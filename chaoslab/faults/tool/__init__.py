"""Faults of a tool: it answers with an error, or it acts and its reply is lost."""
