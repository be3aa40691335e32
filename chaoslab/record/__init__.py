"""Writes a run's logs and reads them.

Other rooms use `audit`, `effects`, `follow`, `gaps`, `held`, `history`, `lines`, `log`, `provenance`, `rulings`,
`runs`, `spoken`, `steering`, `trial_log`, `trial_stream`.
"""
