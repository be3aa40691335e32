"""The worlds in which a trial can run. One file per world."""
