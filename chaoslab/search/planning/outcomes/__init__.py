"""Outcomes of one's own, beside the judge's: a class with `bad`, and `of(facts)` that is true of a trial that ended so.
The lab has none; the name is that of the file or of the entry point. The first that is true of a trial, in the order of
the alphabet, takes the place of the judge's outcome."""
