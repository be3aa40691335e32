"""One file per measure: a pure function from a history to a result. Without data a result is None, never 0."""
