"""Scenarios: an agent, its faults and what must hold, written down once in a file or in Python.

Other rooms use `agent_tools`, `baseline`, `builder`, `check`, `checks`, `command_agent`, `comparing`,
`demo`, `drawn_spec`, `exploring`, `files`, `gating`, `junit`, `lab_agent`, `load`, `located`,
`new_project`, `python_files`, `revisions`, `running`, `scenario`, `schema`, `sides`, `sources`, `spec`,
`stress`, `tell`, `words`, `writing`.
"""
