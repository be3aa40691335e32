"""Settings, ports, and the plan that the settings describe.

Other rooms use `effective`, `limits`, `part_version`, `scenario`, `settings`, `topology`.
"""
