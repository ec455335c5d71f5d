"""Custom operations: any Vulkan command in a recorded sequence, with the PyPI package `vulkan` on raw
handles.

A list is filtered on the device, and only what passed is worked on: the first shader keeps the values above a
threshold and counts how many groups they need; an indirect dispatch then runs just those groups. The host
never learns the number in between. Two operations of our own make that possible: vkCmdUpdateBuffer sets the
counters and the threshold at the start of each evaluation, and vkCmdDispatchIndirect takes its group counts
from a tensor. Both say what they read and write, so the sequence puts the needed barriers around them, and no
others.

    python examples/custom_operation.py
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import vulkan as vk

import kompute_py as kp

# groups_x, groups_y, groups_z is a VkDispatchIndirectCommand; it starts the block of numbers.
STATE = """
layout(set = 0, binding = 0) buffer State {
    uint groups_x;
    uint groups_y;
    uint groups_z;
    uint count;
    float threshold;
};
"""

SELECT = f"""
#version 450
layout(local_size_x = 64) in;
{STATE}
layout(set = 0, binding = 1) readonly buffer Values {{ float values[]; }};
layout(set = 0, binding = 2) writeonly buffer Selected {{ uint selected[]; }};

void main() {{
    const uint index = gl_GlobalInvocationID.x;
    if (index < values.length() && values[index] > threshold) {{
        const uint slot = atomicAdd(count, 1u);
        selected[slot] = index;
        atomicMax(groups_x, slot / 64u + 1u);
    }}
}}
"""

WORK = f"""
#version 450
layout(local_size_x = 64) in;
{STATE}
layout(set = 0, binding = 1) readonly buffer Values {{ float values[]; }};
layout(set = 0, binding = 2) readonly buffer Selected {{ uint selected[]; }};
layout(set = 0, binding = 3) writeonly buffer Roots {{ float roots[]; }};
layout(set = 0, binding = 4) buffer Ran {{ uint invocations; }};

void main() {{
    atomicAdd(invocations, 1u);
    if (gl_GlobalInvocationID.x < count) {{
        const uint index = selected[gl_GlobalInvocationID.x];
        roots[index] = sqrt(values[index]);
    }}
}}
"""


class UpdateBuffer(kp.OpBase):
    """Writes `data` (at most 65536 bytes, a multiple of 4) into a tensor, from the command buffer itself."""

    def __init__(self, tensor: kp.Tensor, data: np.ndarray) -> None:
        self.tensor = tensor
        self.data = data.tobytes()
        self.reads, self.writes = [], [tensor]

    def record(self, cmd: kp.CommandRecorder) -> None:
        """The command itself; the sequence calls it when it builds its command buffer."""
        vk.vkCmdUpdateBuffer(
            cmd.vk_command_buffer,
            self.tensor.vk_buffer,
            self.tensor.vk_offset,
            len(self.data),
            vk.ffi.from_buffer(self.data),
        )


class DispatchIndirect(kp.OpBase):
    """Runs an algorithm with the group counts that the first three uints of a tensor hold when the device
    comes to it.
    """

    def __init__(self, algorithm: kp.Algorithm, counts: kp.Tensor, writes: list[kp.Memory]) -> None:
        self.algorithm = algorithm
        self.counts = counts
        self.reads = [counts, *algorithm.get_tensors()]
        self.writes = writes

    def record(self, cmd: kp.CommandRecorder) -> None:
        """What OpAlgoDispatch does, with the indirect command at its end."""
        point = vk.VK_PIPELINE_BIND_POINT_COMPUTE
        sets = self.algorithm.vk_descriptor_sets
        vk.vkCmdBindPipeline(cmd.vk_command_buffer, point, self.algorithm.vk_pipeline)
        vk.vkCmdBindDescriptorSets(
            cmd.vk_command_buffer, point, self.algorithm.vk_pipeline_layout, 0, len(sets), sets, 0, None
        )
        vk.vkCmdDispatchIndirect(cmd.vk_command_buffer, self.counts.vk_buffer, self.counts.vk_offset)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--device", help="a part of the device's name")
    parser.add_argument("--size", type=int, default=100_000, help="how many values")
    parser.add_argument("--threshold", type=float, default=0.75)
    options = parser.parse_args(argv)

    host = np.random.default_rng(11).random(options.size, np.float32)
    start = np.zeros(1, [("groups", np.uint32, 3), ("count", np.uint32), ("threshold", np.float32)])
    start["groups"] = (0, 1, 1)
    start["threshold"] = options.threshold
    wrong, count, groups = False, 0, 0
    with kp.Manager(options.device) as mgr:
        print(f"{mgr!r}")
        state = mgr.tensor_t(start)
        values = mgr.tensor(host)
        selected = mgr.empty(options.size, np.uint32, "storage")
        roots = mgr.empty(options.size)
        invocations = mgr.empty(1, np.uint32)
        select = mgr.algorithm([state, values, selected], kp.compile(SELECT), (-(-options.size // 64), 1, 1))
        # Its workgroup plays no part: the device decides.
        work = mgr.algorithm([state, values, selected, roots, invocations], kp.compile(WORK), (1, 1, 1))
        mgr.sequence().record(kp.OpSyncDevice([values])).eval()
        sequence = (
            mgr.sequence()
            .record(UpdateBuffer(state, start))
            .record(kp.OpFill([roots], 0.0))
            .record(kp.OpFill([invocations], 0))
            .record(kp.OpAlgoDispatch(select))
            .record(DispatchIndirect(work, counts=state, writes=[roots, invocations]))
            .record(kp.OpSyncLocal([state, roots, invocations]))
        )
        expected = np.where(host > np.float32(options.threshold), np.sqrt(host), 0)
        for _ in range(3):  # again and again: each evaluation starts from the same state
            sequence.eval()
            count, groups = int(state.data()["count"][0]), int(state.data()["groups"][0, 0])
            wrong |= not np.allclose(roots.data(), expected, rtol=1e-6, atol=0)
            wrong |= count != np.count_nonzero(expected) or int(invocations.data()[0]) != 64 * -(-count // 64)
        print(
            f"{count} of {options.size} values are above {options.threshold}; {groups} groups of 64 worked "
            "on them"
        )
    print("WRONG: NumPy gives other numbers" if wrong else "right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
