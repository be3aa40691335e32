"""OpenTelemetry: trials as traces for a collector, and scenarios from the traces of an agent in production."""
