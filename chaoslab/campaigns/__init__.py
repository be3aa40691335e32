"""Campaigns: experiments in a row, with a steady state, stop conditions and a blast radius."""
