"""Faults of whoever asks the agent: it asks again, asks more, or stops the agent."""
