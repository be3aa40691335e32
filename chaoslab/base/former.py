"""Words that chaoslab once had, and what is said now."""

_DECIDES = "words decide nothing any more: state says, facts, effects or judge"
COMMANDS = {
    "label": _DECIDES,
    "judge": "judge: model in the scenario, or judge='model' of lab.run, asks while the trials run",
    "bisect": "git bisect run asks chaoslab gate: docs/how-to/compare-and-prove.md has the three lines",
    "completion": "chaoslab --all lists the commands, and each has --help",
    "follow": "chaoslab ui shows a run while it goes on, and tail -f logs/latest/info.log its lines",
    "from-traces": "init finds the tools in your agent's source, from-openapi and from-mcp write fakes of services",
}
OPTIONS = {
    "--estimate": "run it with -n 1 (lab: TRIALS=1), and chaoslab summary tells seconds, tokens and dollars",
    "--otlp": "chaoslab otlp RUN sends a run when it is over",
    "--plugin": "copy the fault of docs/how-to/add-a-fault.md into a package of your own, with its entry point",
    "--max-faults": "give gateway and exec --limits '{\"faults\": 20}'",
    "--until": 'give gateway and exec --limits \'{"until": "2026-06-01T09:00:00Z"}\'',
    "--lease": 'give gateway and exec --limits \'{"lease": "FILE"}\', a file that is touched every lease_s',
    "--hosts": 'give gateway and exec --limits \'{"hosts": ["crm.example"]}\'',
    "--shadow": "give gateway and exec --limits '{\"shadow\": true}'",
    "--index": "chaoslab ui LOGS shows all runs, and the trend of each scenario",
    "--log-as": "leave it out, a log is lines of text; --keep failed makes it small",
    "--count-words": _DECIDES,
    **dict.fromkeys(("--against-labels", "--certain-above"), "leave it out, the judge's word counts as it is"),
}
FORMATS = {
    "csv": "pandas writes CSV: lab.load('latest').trials.to_csv('trials.csv')",
    "parquet": "pandas writes Parquet: lab.load('latest').trials.to_parquet('trials.parquet')",
    "charts": "chaoslab charts draws them",
    "junit": "chaoslab test and chaoslab gate write it, with --junit FILE",
}
MEMORY_ACTIONS = {
    "archive": "memory forget RUN leaves a run out; or delete memory.db, and add the folders that count",
    "export": "memory show TABLE --json prints a table, and memory.db is a SQLite file",
}
SETTINGS = dict.fromkeys(
    ("TRANSLATOR", "TRANSLATOR_URL", "TRANSLATOR_KEY"), "name your server as the translator in agent/config.json"
)
TRIGGER_METHODS = {"of": "its method `of` is called from_value now"}
KEYS = {"count_words": _DECIDES}
ASSERTIONS = {"admits_failure": "say answer_matches, or says with accept: [degraded]"}
