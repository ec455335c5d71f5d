"""Other libraries beside ours: `python -m benchmarks.peers`.

Each library works in a process of its own, the peers in virtual environments of their own, all on one Vulkan
driver. The processes take turns, a block of one after a block of the other, so that what slows the machine
slows all.
"""
