"""Pure functions of histories: verdicts, measures, what differs between two runs."""
