"""The lab's concepts, without I/O: exchange, pipe, plan, injection, events, services.

Other rooms use `answers`, `attempt`, `chain`, `changed_answer`, `changed_reply`, `conversation`, `dialog`, `events`,
`exchange`, `fault`, `inject`, `json_values`, `levels`, `limits`, `machine`, `memory`, `occasion`, `page`, `pipe`,
`plan`, `service_spec`, `stream`, `untrue`.
"""
