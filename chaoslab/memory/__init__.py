"""The memory of past runs, and the planner that proposes what to try next."""
