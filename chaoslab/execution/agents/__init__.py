"""Runs of a user's agent."""
