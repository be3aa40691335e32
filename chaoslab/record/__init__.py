"""Writes a run's logs and reads them.

Other rooms use `audit`, `batches`, `follow`, `gaps`, `held`, `history`, `lines`, `log`, `pack_sums`,
`packed_log`, `packs`, `provenance`, `rulings`, `runs`, `spoken`, `steering`, `trial_log`.
"""
