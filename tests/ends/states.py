"""The scripts, and how each is to end: exit status, output, and a time after which it counts as hanging.

Each is a program of its own: its last line is where the interpreter ends. They are judged by the
rules in docs/reference/ends_and_waits.md.
"""

from __future__ import annotations

from dataclasses import dataclass

PRELUDE = """
import asyncio, os, signal, sys, tempfile, threading, time
import numpy as np
import kompute_py as kp

LONG = '''#version 450
layout(local_size_x = 1) in;
layout(push_constant) uniform Push { uint n; };
layout(binding = 0) buffer Data { uint a[]; };
void main() {
    uint x = a[0];
    for (uint i = 0u; i < n; i++) {
        x = x * 1664525u + 1013904223u; x ^= x >> 7; if (x == 77u) x += a[i & 3u];
    }
    a[0] = x;
}'''

# The optimizer needs minutes for this.
ENDLESS = '''#version 450
layout(local_size_x = 64) in; layout(binding = 0) buffer Data { float a[]; };
void main() { float x = a[0], y = a[1];
''' + ''.join(
    f'x = sin(x * {i}.5) + cos(y * {i}.25); y = x * y + {i}.0; if (x > {i}.0) {{ y = sqrt(abs(y)); }}'
    for i in range(6000)
) + 'a[2] = x; a[3] = y; }'

def ready():
    "The parent presses Ctrl-C soon after this."
    print('ready', flush=True)
"""

CTRL_C = -2
"""The status of a process that ended by SIGINT, as Python itself does after an uncaught KeyboardInterrupt."""


@dataclass(frozen=True)
class State:
    """One script."""

    script: str
    status: int = 0
    # Expressions that match what it writes to stdout, to stderr.
    prints: str = ""
    says: str = ""
    # Presses of Ctrl-C after it says `ready()`.
    interrupts: int = 0
    # Which driver, with which configuration of the null driver; None: the one of the tests.
    driver: str | None = None
    config: str | None = None
    # Whether a thread may show what was raised in it.
    tracebacks: bool = False
    seconds: float = 40.0


def _thread(call: str, before: str = "", once: bool = False, tracebacks: bool = False) -> State:
    loop = f"    {call}" if once else f"    while True:\n        {call}"
    return State(
        f"""
mgr = kp.Manager()
def work():
    t = mgr.zeros(1000)
    seq = mgr.sequence().record(kp.OpSyncDevice([t]))
    data = np.ones(1000, np.float32)
    path = os.path.join(tempfile.mkdtemp(), "t.safetensors")
    {before or "pass"}
{loop}
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
""",
        tracebacks=tracebacks,
    )


# A submission that waits for a value which nobody signals.
_HELD = """
mgr = kp.Manager()
frames = mgr.semaphore(1)
frames.name = "frames"
a, b = mgr.tensor([1, 2, 3]), mgr.zeros(3)
later = mgr.sequence().record(kp.OpSyncDevice([a]), kp.OpCopy([a, b]))
later.name = "later"
later.eval_async(wait=[(frames, 3)])
"""
_TOLD = (
    r"KomputeWarning: The sequence 'later' \(OpSyncDevice, OpCopy\) did not run: it waited for the semaphore "
    r"'frames' "
    r"to reach 3 \(it is at 1\) when "
)
_AT_END = _TOLD + "the program ended"

# Work of a second and a half on the null driver, which computes nothing and keeps the time that it is told.
_SLOW = """
mgr = kp.Manager()
t = mgr.tensor([1, 2, 3, 4])
seq = mgr.sequence().record(kp.OpSyncDevice([t]))
"""


def _interrupted(script: str, prints: str = "heard False", **options: object) -> State:
    """Ctrl-C in the script, while the work goes on for more than a second."""
    arguments: dict[str, object] = {
        "driver": "null", "config": "gpu_us=1500000", "interrupts": 1, "status": CTRL_C, "prints": prints,
    }  # fmt: skip
    return State(_SLOW + script, **(arguments | options))  # type: ignore[arg-type]


def _hearing(call: str, before: str = "seq.eval_async()") -> State:
    return _interrupted(f"""
{before}
ready()
try:
    {call}
except KeyboardInterrupt:
    print("heard", seq.is_complete())
    raise
""")


STATES: dict[str, State] = {
    "nothing": State("mgr = kp.Manager()"),
    # -- held work -------------------------------------------------------------------------------------------
    "held": State(_HELD, says=_AT_END),
    "held, raises": State(_HELD + "raise RuntimeError('over')", status=1, says=_AT_END),
    "held, sys.exit": State(_HELD + "sys.exit(7)", status=7, says=_AT_END),
    "held, warnings are errors": State(
        "import warnings; warnings.simplefilter('error')\n" + _HELD, says=_AT_END
    ),
    "held, awaited by a future": State(
        _HELD + "done = later.fence.future(); failed = []; done.add_done_callback(lambda d: "
        "failed.append(d.exception()))",
        says=_AT_END,
    ),
    "held, and what comes after it": State(
        _HELD
        + "other = mgr.sequence().record(kp.OpSyncLocal([b])); other.name = 'other'; other.eval_async()",
        says=_AT_END
        + r"\. The sequence 'other' \(OpSyncLocal\) did not run: it waited for the sequence 'later'",
    ),
    "held, with others in one submission": State(
        _HELD.replace(
            "later.eval_async(",
            "other = mgr.sequence().record(kp.OpSyncLocal([b])); mgr.submit([later, other], ",
        ),
        says=r"The sequence 'later' \(OpSyncDevice, OpCopy\) and the sequence \(OpSyncLocal\) did not run",
    ),
    "held, destroyed": State(
        _HELD
        + """
fence = later.fence
later.destroy()
frames.signal(3)
try:
    fence.wait(5)
except kp.AbortedError as error:
    print("aborted:", error)
print(b.read())
""",
        says=_TOLD + "it was destroyed",
        prints=r"aborted: The sequence 'later' .* was destroyed\n\[0. 0. 0.\]",
    ),
    "held, dropped": State(_HELD + "del later", says=_AT_END),
    "held, Manager destroyed": State(_HELD + "mgr.destroy()", says=_TOLD + "its Manager was destroyed"),
    "held, Manager left by an error": State(
        "with kp.Manager() as mgr:"
        + _HELD.replace("mgr = kp.Manager()", "").replace("\n", "\n    ")
        + "1 / 0",
        status=1,
        says=_TOLD + "its Manager was destroyed",
    ),
    "held, Manager dropped": State(
        _HELD + "del later, frames, a, b, mgr", says=_TOLD + "the semaphore was dropped"
    ),
    "held, a stream behind it": State(
        _HELD + "out = mgr.zeros(3)\n"
        "copy = mgr.sequence().record(kp.OpSyncDevice([a]), kp.OpCopy([a, b]))\n"
        "results = iter(copy.stream(np.ones((5, 3), np.float32), inputs=[a], outputs=[b], shared=[b]))\n"
        "threading.Thread(target=lambda: next(results), daemon=True).start(); time.sleep(0.2)",
        says=_AT_END,
        tracebacks=True,
    ),
    "held, Ctrl-C in its await": State(
        _HELD + "async def main():\n    ready()\n    await later\nasyncio.run(main())",
        interrupts=1,
        status=CTRL_C,
        says=_AT_END,
    ),
    "held, Ctrl-C in eval_await": State(
        _HELD + "ready()\nlater.eval_await()", interrupts=1, status=CTRL_C, says=_AT_END
    ),
    "held, Ctrl-C in synchronize": State(
        _HELD + "ready()\nmgr.synchronize()", interrupts=1, status=CTRL_C, says=_AT_END
    ),
    "held, Ctrl-C in read": State(_HELD + "ready()\nb.read()", interrupts=1, status=CTRL_C, says=_AT_END),
    # -- daemon threads --------------------------------------------------------------------------------------
    "thread in eval": _thread("seq.eval()"),
    "thread in eval_async": _thread("seq.eval_async().fence.wait()"),
    "thread in record": _thread("mgr.sequence().record(kp.OpSyncDevice([t])).eval()"),
    "thread in read": _thread("t.read()"),
    "thread in write": _thread("t.write(data)"),
    "thread in fill": _thread("t.fill(1).wait()"),
    "thread in copy_from": _thread("o.copy_from(t).wait()", before="o = mgr.zeros(1000)"),
    "thread in map": _thread("t.map(write=True).close()"),
    "thread in data": _thread("np.asarray(mgr.tensor(data).data())"),
    "thread in dlpack": _thread("np.from_dlpack(h)", before="h = mgr.tensor(data, memory_type='host')"),
    "thread in tensors": _thread("mgr.zeros(1000)"),
    "thread in storage tensors": _thread("mgr.tensor(data, memory_type='storage')"),
    "thread in from_host": _thread("mgr.from_host(kp.aligned_zeros(1000), on_done=lambda: None)"),
    "thread in images": _thread(
        "i.write(p); i.read()", before="p = np.ones((8, 8), np.float32); i = mgr.image(p)"
    ),
    "thread in sequences": _thread("mgr.sequence()"),
    "thread in compile": _thread(
        "kp.compile(LONG.replace('77u', str(time.perf_counter_ns() % 2**31) + 'u'), cache=False)"
    ),
    "thread in a long compile": _thread("kp.compile(ENDLESS, cache=False)", once=True),
    "thread in kernels": _thread(
        "mgr.kernel(LONG.replace('77u', str(time.perf_counter_ns() % 2**31) + 'u'))(n=3, a=u)",
        before="u = mgr.tensor_t(np.ones(4, np.uint32))",
    ),
    "thread in a shader's tools": _thread(
        "kp.disassemble(code); kp.check(code)", before="code = kp.compile(LONG)"
    ),
    "thread in Managers": _thread("kp.Manager().destroy()"),
    "thread in list_devices": _thread("kp.list_devices()"),
    "thread in memory reports": _thread("repr(mgr.memory)"),
    "thread in files": _thread("kp.save_tensors(path, {'t': t}); kp.load_tensors(path, mgr)"),
    "thread in stream": _thread(
        "list(seq.stream(np.ones((9, 1000), np.float32), inputs=[t], outputs=[o]))",
        before="o = mgr.zeros(1000); seq.record(kp.OpCopy([t, o]))",
    ),
    "thread in await": _thread(
        "asyncio.run(go())",
        before="\n    async def go():\n        for _ in range(20): await seq.eval_async()",
    ),
    "thread in futures": _thread("seq.eval_async().fence.future().result()"),
    "thread in a future's callback": _thread(
        "seq.eval_async().fence.future().add_done_callback(lambda f: sum(range(1000)))\n        "
        "seq.eval_await()"
    ),
    "thread in a custom operation": _thread(
        "mgr.sequence().eval(Mine())",
        before="\n    class Mine(kp.OpBase):\n        def record(self, commands): sum(range(20000))",
    ),
    "thread in an error": _thread("\n        try: t.write(data[:7])\n        except kp.KomputeError: pass"),
    "thread waits for a semaphore": _thread("sem.wait(1)", before="sem = mgr.semaphore()"),
    "thread waits for held work": _thread(
        "seq.eval_async(wait=(sem, 1)).eval_await()",
        before="sem = mgr.semaphore()",
        once=True,
        tracebacks=True,
    ),
    "thread waits for long work": State(
        """
mgr = kp.Manager()
t = mgr.tensor_t(np.ones(4, np.uint32))
work = mgr.algorithm([t], kp.compile(LONG), (2000, 1, 1), push_consts=np.array([30000], np.uint32))
seq = mgr.sequence().record(kp.OpSyncDevice([t]), kp.OpAlgoDispatch(work))
threading.Thread(target=seq.eval, daemon=True).start()
time.sleep(0.2)
"""
    ),
    "threads while the Manager is destroyed": State(
        """
mgr = kp.Manager()
calls = [
    lambda: mgr.zeros(1000), lambda: mgr.zeros(1000).read(), lambda: mgr.zeros(1000).fill(1).wait(),
    lambda: mgr.sequence().record(kp.OpSyncDevice([mgr.zeros(9)])).eval(),
    lambda: mgr.image(np.ones((4, 4))).read(),
    lambda: mgr.tensor([1, 2], memory_type="storage").read(),
    lambda: mgr.kernel(LONG.replace('77u', str(time.perf_counter_ns() % 2**31) + 'u'))(
        n=3, a=mgr.tensor_t(np.ones(4, np.uint32))
    ),
]
ended = []
def work(call):
    try:
        while True: call()
    except kp.FailedPreconditionError as error:
        ended.append(str(error))
threads = [threading.Thread(target=work, args=(call,)) for call in calls]
for thread in threads: thread.start()
time.sleep(0.2)
mgr.destroy()
for thread in threads: thread.join()
print(len(ended) == len(calls), kp.alive(True))
""",
        prints=r"True \{'context': [01], 'buffer': 0, 'image': 0, 'shader': 0, 'algorithm': 0, 'stream': 0, "
        r"'semaphore': 0, 'host_pages': 0\}",
    ),
    # -- Ctrl-C ----------------------------------------------------------------------------------------------
    "Ctrl-C in eval": _hearing("seq.eval()", before=""),
    "Ctrl-C in eval_await": _hearing("seq.eval_await()"),
    "Ctrl-C in fence.wait": _hearing("seq.fence.wait()"),
    "Ctrl-C in read": _hearing("t.read()"),
    "Ctrl-C in write": _hearing("t.write(np.ones(4, np.float32))"),
    "Ctrl-C in data": _hearing("t.map(write=True)"),
    "Ctrl-C in synchronize": _hearing("mgr.synchronize()"),
    "Ctrl-C in destroy": _hearing("seq.destroy()"),
    "Ctrl-C in Manager.destroy": _hearing("mgr.destroy()"),
    "Ctrl-C in await": _hearing("asyncio.run(main())", before="async def main(): await seq.eval_async()"),
    "Ctrl-C in a semaphore's wait": _hearing(
        "sem.wait(1)", before="sem = mgr.semaphore(); seq.eval_async(signal=(sem, 1))"
    ),
    "Ctrl-C in save_tensors": _hearing(
        "kp.save_tensors(os.path.join(tempfile.mkdtemp(), 't.safetensors'), {'t': t})"
    ),
    "Ctrl-C in stream": _interrupted(
        """
o = mgr.zeros(4)
seq.record(kp.OpCopy([t, o]))
ready()
began = time.monotonic()
try:
    for out in seq.stream(np.ones((9, 4), np.float32), inputs=[t], outputs=[o]):
        raise AssertionError("no frame is done yet")
except KeyboardInterrupt:
    print("heard", time.monotonic() - began > 1.4)
    raise
""",
    ),
    "Ctrl-C in a stream's loop": _interrupted(
        """
o = mgr.zeros(4)
seq.record(kp.OpCopy([t, o]))
def loop():
    global began
    for out in seq.stream(np.ones((9, 4), np.float32), inputs=[t], outputs=[o]):
        began = time.monotonic()
        ready()
        time.sleep(60)
try:
    loop()
except KeyboardInterrupt:
    print("heard", time.monotonic() - began > 1.4)
    raise
""",
    ),
    "Ctrl-C in compile": State(
        "ready()\nkp.compile(ENDLESS, cache=False)", interrupts=1, status=CTRL_C, seconds=25
    ),
    "Ctrl-C in compile, caught": State(
        """
ready()
try:
    kp.compile(ENDLESS, cache=False)
except KeyboardInterrupt:
    print("heard", len(kp.compile(LONG, cache=False)) > 20)
""",
        interrupts=1,
        prints="heard True",
        seconds=25,
    ),
    "Ctrl-C twice": _interrupted(
        "ready()\ntry:\n    seq.eval()\nexcept KeyboardInterrupt:\n    ready()\n    time.sleep(60)",
        prints="",
        interrupts=2,
    ),
    # -- what is left open -----------------------------------------------------------------------------------
    "running work": State(_SLOW + "seq.eval_async()", driver="null", config="gpu_us=300000"),
    "running work, dropped": State(
        _SLOW + "seq.eval_async()\ndel seq, t, mgr", driver="null", config="gpu_us=300000"
    ),
    "running work, raises": State(
        _SLOW + "seq.eval_async()\n1 / 0", status=1, driver="null", config="gpu_us=300000"
    ),
    "running work, sys.exit in a thread": State(
        _SLOW + "seq.eval_async()\nthreading.Thread(target=sys.exit, args=(3,)).start()",
        driver="null",
        config="gpu_us=300000",
    ),
    "unfinished futures": State(
        "mgr = kp.Manager()\nsem = mgr.semaphore()\nfutures = [sem.at(n).future() for n in (1, 2)]"
    ),
    "unfinished awaits": State("""
mgr = kp.Manager()
sem = mgr.semaphore()
async def wait():
    await sem.at(1)
async def main():
    global tasks
    tasks = [asyncio.create_task(wait()) for _ in range(5)]
    await asyncio.sleep(0.05)
asyncio.run(main())
"""),
    "unfinished awaits in a loop that stays open": State("""
mgr = kp.Manager()
sem = mgr.semaphore()
async def wait():
    await sem.at(1)
loop = asyncio.new_event_loop()
task = loop.create_task(wait())
loop.run_until_complete(asyncio.sleep(0.05))
task._log_destroy_pending = False
"""),
    "open mappings": State(
        "mgr = kp.Manager()\nopened = [mgr.zeros(9).map(write=True), mgr.zeros(9).map(read=True)]"
    ),
    "unclosed streams": State("""
mgr = kp.Manager()
t, o = mgr.zeros(9), mgr.zeros(9)
seq = mgr.sequence().record(kp.OpSyncDevice([t]), kp.OpCopy([t, o]))
streams = [iter(seq.stream(np.ones((9, 9), np.float32), inputs=[t], outputs=[o])) for _ in range(3)]
for stream in streams:
    next(stream)
"""),
    "watched kernels": State("""
mgr = kp.Manager()
path = os.path.join(tempfile.mkdtemp(), "k.comp")
with open(path, "w") as file:
    file.write(LONG)
kernel = mgr.kernel(path, watch=True)
t = mgr.tensor_t(np.ones(4, np.uint32))
kernel(n=3, a=t)
seq = mgr.sequence().record(kernel.bind(n=3, a=t))
seq.eval()
"""),
    "shared arrays": State(
        "mgr = kp.Manager()\nt = mgr.from_host(kp.aligned_zeros(1000), on_done=lambda: print('let go "
        "of'))\nview = mgr.zeros(9).data()"
    ),
    "validation": State("mgr = kp.Manager(validation=True)\nmgr.zeros(9).read()"),
    # The interpreter can import nothing any more when globals go; NumPy does so for what takes arrays.
    "objects that call in __del__": State(
        """
mgr = kp.Manager()
sem, t = mgr.semaphore(), mgr.tensor([1.0, 2.0])
seq = mgr.sequence().record(kp.OpSyncDevice([t]))
class Last:
    def __init__(self, call, error=kp.KomputeError):
        self.call, self.error = call, error
    def __del__(self):
        try:
            self.call()
        except self.error:
            pass
calls = [
    lambda sem=sem: sem.signal(1), lambda sem=sem: sem.wait(0), lambda sem=sem: sem.fail("x"),
    lambda sem=sem: sem.at(1),
    lambda t=t: t.read(), lambda t=t: t.destroy(), lambda t=t: repr(t), lambda t=t: t.data(),
    lambda seq=seq: seq.eval(), lambda seq=seq: seq.eval_async(),
    lambda seq=seq: seq.eval_await(), lambda seq=seq: seq.clear(), lambda seq=seq: seq.destroy(),
    lambda seq=seq: repr(seq),
    lambda mgr=mgr: mgr.tensor([1]), lambda mgr=mgr: mgr.sequence(), lambda mgr=mgr: mgr.synchronize(),
    lambda mgr=mgr: mgr.destroy(),
]
last = [Last(call) for call in calls]
del sem, t, seq, mgr, calls
""",
    ),
    # -- processes -------------------------------------------------------------------------------------------
    "forked child": State(
        """
mgr = kp.Manager()
t = mgr.zeros(9)
t.read()
child = os.fork()
if child == 0:
    mgr.is_init()
    sys.exit(5)  # not os._exit: the C library's handlers are run
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""",
        prints="child 5",
    ),
    "forked child with a Manager": State(
        """
mgr = kp.Manager()
child = os.fork()
if child == 0:
    fresh = kp.Manager()
    assert fresh.tensor([1, 2]).read() is not None
    raise SystemExit(6)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""",
        prints="child 6",
    ),
    "forked while a thread works": State(
        """
mgr = kp.Manager()
t = mgr.zeros(9)
seq = mgr.sequence().record(kp.OpSyncDevice([t]))
def work():
    while True: seq.eval()
threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
child = os.fork()
if child == 0:
    sys.exit(5)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""",
        prints="child 5",
    ),
}
