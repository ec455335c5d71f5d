"""The pieces of work whose instructions are counted: calls, and what each may take at most."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from .. import calls


class Work(NamedTuple):
    """One piece of work."""

    title: str
    prepare: calls.Prepare
    most: int
    """The instructions that one may take with Python 3.11: a tenth more than when the limit was set."""


WORKS: dict[str, Work] = {
    "nothing": Work("call an empty Python function (the others include such a call)", calls.nothing, 480),
    "floor": Work("submit and wait in C, called through ctypes", calls.floor, 9_000),
    "eval": Work("eval of a recorded one-dispatch sequence", calls.evaluate, 1_900),
    "record": Work("record one OpAlgoDispatch (object and record)", calls.record, 5_700),
    "clear-record-eval": Work("clear, record 3 operations, eval", calls.clear_record_eval, 39_000),
    "tensor": Work("make and drop a 1 KiB tensor", calls.tensor, 17_000),
    "algorithm": Work("make and drop an algorithm from SPIR-V seen before", calls.algorithm, 64_000),
    "algorithm-constants": Work("the same with push constants", calls.algorithm_of_constants, 71_000),
    "dispatch-constants": Work("make an OpAlgoDispatch with push constants", calls.dispatch, 17_000),
    "kernel": Work("call a kernel with the arguments of an earlier call", calls.kernel, 12_000),
    "kernel-new-values": Work("call a kernel with other push constants", calls.kernel_of_new_values, 21_000),
    "zeros": Work("make and drop mgr.zeros of 1 KiB", calls.zeros, 20_000),
    "full": Work("make and drop mgr.full of 1 KiB", calls.full, 25_000),
    "op-fill": Work("make an OpFill", calls.op_fill, 21_000),
    "fill": Work("t.fill(1.0), not waited for", calls.fill, 48_000),
    "await": Work("await a sequence's eval_async, whose work is done at once", calls.awaited, 15_000),
    "frame": Work("stream a frame of 256 B", calls.frame, 24_000),
    "sync-device-100": Work("make an OpSyncDevice of 100 tensors", calls.sync_device, 61_000),
    "sync-device-1000": Work(
        "make an OpSyncDevice of 1,000 tensors", partial(calls.sync_device, n=1000), 600_000
    ),
    "eval-beside-10": Work(
        "eval of one of 10 sequences on two queues that write one tensor", calls.eval_beside, 3_400
    ),
    "eval-beside-1000": Work(
        "eval of one of 1,000 such sequences", partial(calls.eval_beside, n=1000), 3_400
    ),
    "write": Work("write 4 KiB to a tensor", calls.write, 11_000),
    "view": Work("make and drop t[8:16]", calls.view, 18_000),
    "asarray": Work("np.asarray of 4 KiB on the device", calls.asarray, 25_000),
    "kernel-arrays": Work("call a kernel with three arrays of 256 B", calls.kernel_of_arrays, 14_000),
    "kernel-new-shape": Work("call a kernel with arrays of a new shape", calls.kernel_of_new_shapes, 100_000),
    "kernel-results": Work("call a kernel that leaves its output out", calls.kernel_of_results, 53_000),
    "kernel-uses": Work("call a kernel with `uses=`", calls.kernel_of_uses, 10_000),
    "kernel-sets": Work(
        "call a kernel with one of 1,000 sets of tensors in turn", calls.kernel_of_sets, 18_000
    ),
    "kernel-bind": Work("bind a kernel", calls.kernel_bind, 20_000),
    "kernel-submit": Work("submit a kernel and wait", calls.kernel_submit, 18_000),
    "program-kernel": Work("call a kernel of a program", calls.program_kernel, 16_000),
    "program-recording": Work(
        "call a recording of a program over its tensors", calls.program_recording, 8_800
    ),
    "operation": Work("call a custom operation on prepared memory", calls.operation, 7_500),
    "operation-number": Work(
        "the same with another number each time", calls.operation_of_new_numbers, 42_000
    ),
    "operation-sets": Work(
        "the same with one of 100 sets of tensors in turn", calls.operation_of_sets, 20_000
    ),
    "operation-result": Work(
        "call a custom operation that makes its result", calls.operation_of_results, 40_000
    ),
    "operation-submit": Work("submit a custom operation on prepared memory", calls.operation_submit, 13_500),
    "operation-recorded": Work("eval of a recorded custom operation", calls.operation_recorded, 1_900),
    "operation-made": Work("make a custom operation's .op to record", calls.operation_made, 132_000),
}
