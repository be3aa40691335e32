"""Faults of the wire: Toxiproxy's toxics as pure pipes, an embedded server with its API, toxiproxy-python for either.

Other rooms use `control`, `fault_lifecycle`, `http1`, `lane_names`, `lanes`, `proxies`, `sending`, `server.end`,
`server.process`, `server.proxy`, `server.rest`, `server.turns`, `state_place`, `toxiproxy_package`.
"""
