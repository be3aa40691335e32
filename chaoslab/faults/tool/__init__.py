"""Faults of a tool: it refuses, or it acts and its reply is lost."""
