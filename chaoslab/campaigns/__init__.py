"""Campaigns: experiments in a row, with a steady state, stop conditions and a blast radius.

Other rooms use `bounds`, `gateways`, `journal`, `load`, `presence`, `report`, `running`.
"""
