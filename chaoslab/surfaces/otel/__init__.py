"""OpenTelemetry: trials as traces for a collector."""
