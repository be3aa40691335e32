"""Pure functions of histories: verdicts, measures, differences between two runs."""
