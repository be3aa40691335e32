"""The outcome of a trial: its effects, its answer, and the table of both."""
