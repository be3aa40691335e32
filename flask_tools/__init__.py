"""The seven services that the agent calls, each in the wire format of a real one."""
