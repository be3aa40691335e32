"""One file per measure: a pure function from a history to a result. Where there is no data a result is None, never 0."""
