"""The worlds in which a trial can run. One file per world.

Other rooms use `compose`, `local`, `stopping`, `virtual.machine.context`, `virtual.machine.machine`,
`virtual.network.asgi`, `virtual.network.elsewhere`, `virtual.network.lanes`,
`virtual.network.network`, `virtual.network.recorded_targets`, `virtual.network.serving`, `virtual.run_writer`,
`virtual.world`.
"""
