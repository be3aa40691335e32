"""Searches over trials: which to run next, what was found, and what was not tried. All of it is pure: a strategy
(`strategies/`, one file each) and a pass of `shrinking` are told what came of trials and name the next ones.
`chaoslab.execution.exploring` runs them. None knows a world.

Other rooms use `causes`, `compared`, `comparing`, `contrast`, `map`, `pairs`, `probes`, `proof`,
`roots`, `shrinking`, `variation`.
"""
