"""Faults of the wire: Toxiproxy's toxics as pure pipes, an embedded server with its API, and a client for either."""
