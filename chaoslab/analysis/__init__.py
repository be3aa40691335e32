"""Pure functions of histories: verdicts, measures, differences between two runs.

Other rooms use `answers.compare`, `answers.hint`, `answers.structures`, `answers.values`, `measures.anytime`,
`measures.cost`, `measures.delivery`, `measures.errors`, `measures.faults`, `measures.idle`, `measures.impact`,
`measures.incidents`, `measures.intervals`, `measures.latency`, `measures.mttr`, `measures.noticed`,
`measures.quantiles`, `measures.reliability`, `measures.run_report`, `measures.trace_diff`, `measures.trials`,
`opinion`, `verdict.answer`, `verdict.exposure`, `verdict.guard`, `verdict.judge`, `verdict.ledger`, `verdict.opinions`,
`verdict.says`, `verdict.seen`, `verdict.standing`, `verdict.table`, `verdict.traits`.
"""
