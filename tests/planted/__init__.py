"""Trials with a planted, known outcome, by which the judge is measured."""
