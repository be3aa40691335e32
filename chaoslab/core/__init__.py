"""The lab's concepts, without I/O: exchange, pipe, plan, injection, events, services.

Other rooms use `answers`, `attempt`, `chain`, `changed_answer`, `changed_reply`, `context`, `conversation`, `dialog`,
`events`, `exchange`, `fault`, `frames`, `inject`, `json_values`, `levels`, `limits`, `memory`, `occasion`, `outage`,
`pipe`, `plan`, `service_spec`, `sketch`, `stream`, `tool_results`, `untrue`.
"""
