"""The kinds of experiment: how often a fault is there. One class a file, with `injection(cell)`, which makes it, and
`is_one(injection)`, which knows it again in a log."""
