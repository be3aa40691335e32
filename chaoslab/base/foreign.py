"""The words of other chaos tools, and what is said here instead; docs/how-to/coming-from.md has them by tool."""

PAGE = "docs/how-to/coming-from.md"
NAMES = {
    **dict.fromkeys(
        ("AgentWrapper", "ToolProxy", "ChaosEngine", "Experiment", "ExperimentRunner", "chaos_call"),
        "lab.run(agent, prompt, tools=[…], faults=[lab.inject(…)]), with the agent as it is",
    ),
    **dict.fromkeys(
        ("Scenario", "ScenarioRunner", "BaselineScenario", "ChaosScenario"), "lab.scenario(name), run by chaoslab test"
    ),
    **dict.fromkeys(("chaos_context", "chaos_session"), "lab.run, or the fixture `chaos` of pytest"),
    **dict.fromkeys(("MTTRCalculator", "MetricsCollector"), "trial.recovery, and lab.load(run)"),
    **dict.fromkeys(("ReportGenerator", "Scorecard"), "chaoslab report"),
    **dict.fromkeys(("fuzz_chaos", "ChaosSpace"), "lab.level(0.5, targets), or chaos_level in a scenario"),
    **dict.fromkeys(("as_assertion", "GEval"), "a function of the trial that calls the metric, in expect=[…]"),
    "Turn": "lab.turn(words), in lab.turns(…)",
    "StressTestRunner": "chaoslab stress",
}
"""Names that other packages export, by what does the same here."""
OPTIONS = {
    "--recursive": "leave it out, a folder is searched to its end",
    "--workers": "say --jobs",
    **dict.fromkeys(("--iterations", "--repeat"), "say --trials"),
    **dict.fromkeys(("--save", "--artifacts-dir"), "say --logs DIR, and then chaoslab report"),
    **dict.fromkeys(
        ("--proxy-metrics", "-proxy-metrics", "--runtime-metrics", "-runtime-metrics"),
        "the embedded Toxiproxy has no /metrics; the manager's has the lab's figures, toxiproxy-server its own",
    ),
    "--inject": "name the faults in a scenario's file, or in lab.inject",
}
"""Options of other commands."""
KEYS = {
    "kwargs": "say args, a mapping of names",
    "chaos_config": "say faults, or chaos_level for some of all kinds",
    "chaos": "say faults",
    "assertions": "say expect",
    "expected": "say facts for what the answer shows, effects for what is done",
    "iterations": "say trials",
}
"""Keys of other scenario files."""
