"""Carries out a run of an agent in one of the worlds: trials, executor, pipeline."""
