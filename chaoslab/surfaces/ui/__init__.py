"""The pages of `chaoslab ui`: runs, and one run while it happens, on loopback."""
