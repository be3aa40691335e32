"""The knowledge before any trial: the chance that a fault does damage. One class a file, with
`prior(fault, *, how, changes, what)`: a chance and the trials that it is worth, or None if it knows nothing."""
