"""The kinds of experiment: how often a fault is there. Each is a class with `injection(cell)`, which makes it, and
`is_one(injection)`, which knows it again in a log."""

FAMILIES = ("own",)
