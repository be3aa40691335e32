"""Carries out a run of an agent in one of the worlds: trials, executor, pipeline.

Other rooms use `agents.functions`, `asking`, `cluster`, `delivery`, `drawn`, `explore`, `exploring`,
`forked`, `journal`, `judging`, `options`, `pipeline`, `prove`, `spec`, `trial`, `trials`, `upstreams`, `workers`,
`workspace`.
"""
