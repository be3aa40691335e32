"""The lab: what its own agent, tools, proxy manager and offline model are put together from. An application of the
library, which imports nothing of it.

Other rooms use `launch`, `recorded_run`, `replay`, `sweep`, `twins`.
"""
