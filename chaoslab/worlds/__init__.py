"""Where a trial takes place. One file per world."""
