"""The worlds in which a trial can run. One file per world.

Other rooms use `compose`, `local`, `stopping`, `virtual.asgi`, `virtual.context`, `virtual.elsewhere`,
`virtual.in_process_transport`, `virtual.lanes`, `virtual.machine`, `virtual.network`, `virtual.recorded_targets`,
`virtual.run_writer`, `virtual.serving`, `virtual.world`.
"""
