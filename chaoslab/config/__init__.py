"""Settings, ports, and the plan that the settings describe."""
