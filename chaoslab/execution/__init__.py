"""The composition root: puts a run together in one of the worlds and carries it out."""
