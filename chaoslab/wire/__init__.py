"""Faults on the wire: Toxiproxy's toxics as pure pipes, an embedded server that speaks its API, and a client for either."""
