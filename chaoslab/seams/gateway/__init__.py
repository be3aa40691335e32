"""The gateway: programs in any language reach their services through it, and their requests meet the faults."""
