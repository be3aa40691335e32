"""Seams turn native calls into exchanges. One file per kind of call.

Other rooms use `functions.code_swap`, `functions.inside`, `functions.mcp_result`, `functions.mitigations`,
`functions.native_errors`, `functions.references`, `functions.seam`, `functions.wrapped`, `gateway.controls`,
`gateway.engine`, `gateway.forward`, `gateway.routes`, `gateway.shared`, `gateway.trust`, `http.process_faults`,
`http.seam`, `http.tags`, `machine.patching`, `services.app`, `services.aside`, `services.effects`, `services.line`,
`services.messages`, `services.model`, `services.refusals`, `services.seam`, `services.wire_bytes`.
"""
