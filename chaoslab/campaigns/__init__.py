"""Campaigns: experiments in a row, with a steady state, stop conditions and a blast radius.

Other rooms use `bounds`, `journal`, `load`, `report`, `running`.
"""
