"""The faults, one file each. The file's name is the fault's name, and its class derives from `core.fault.Fault`."""
