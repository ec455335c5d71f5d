"""The programs of the gallery: their recordings and calls, saved in one process and run in another.

The first process runs a program of the gallery as it is. Each of its recordings is saved just before its
first evaluation, with the contents of all memory that it uses after that; some calls of kernels and
functions are made once more over copies, and saved with arguments and results. The other process has neither
the program nor its sources, and nothing but the package and NumPy: it begins in an empty folder, with no
variables but the driver's.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._programs import content
from kompute_py._programs.recorder import Recorder
from kompute_py._programs.running import Loaded
from tests.drivers import environment, manifest
from tests.support.child import run_child

MOST = 3  # recordings and calls of one program
MOST_BYTES = 64 << 20

NAMES = [
    each.name
    for each in pkgutil.iter_modules([str(Path(__file__).parent.parent.parent / "kompute_py_gallery")])
    if each.name != "__main__"
]


def record(name: str, where: str) -> None:
    """Runs a program of the gallery, and saves its recordings and kernels. For a process of its own."""
    folder = Path(where)
    seen: set[tuple[str, ...]] = set()
    evaluate, kernel_call, function_call = kp.Sequence.eval, kp.Kernel.__call__, kp.Function.__call__

    def eval(self, op=None):
        if op is not None:
            return evaluate(self, op)
        key = tuple(self._native.operation_names())
        if (
            key in seen
            or len(list(folder.glob("*.kpp"))) >= MOST
            or sum(each["memory"].nbytes for each in kp._native.frame_uses(self._native, [], [])) > MOST_BYTES
        ):
            return evaluate(self)
        seen.add(key)
        program = kp.Program.record(self)
        recorder = Recorder([], [])
        recorder.add("main", self)
        result = evaluate(self)
        # Scratch memory holds what earlier work left there.
        natives = [(root.number, root.native) for root in recorder.roots.values() if not root.temporary]
        contents = {}
        spans = recorder._spans(sorted(recorder.roots.values(), key=lambda root: root.number))
        for number, native in natives:
            data = np.empty(native.nbytes, np.uint8)
            native.read(data)
            contents[number] = data[spans[number][0] : spans[number][1]]
        stem = folder / f"recording{len(seen)}"
        program.save(stem.with_suffix(".kpp"))
        stem.with_suffix(".pickle").write_bytes(pickle.dumps(contents))
        return result

    def shadowed(self, given, named, program) -> None:
        """Saves a call over copies of its arguments, and what it gives."""
        stem = folder / f"call{len(seen)}"
        before = pickle.dumps((given, named))
        result = (kernel_call if isinstance(self, kp.Kernel) else function_call)(self, *given, **named)
        program.save(stem.with_suffix(".call"))
        stem.with_suffix(".args").write_bytes(pickle.dumps((before, given, flat(result))))

    def is_new(kind: str, name: str, given) -> bool:
        arrays = [each for each in given if isinstance(each, np.ndarray)]
        known = (kind, name) in seen or sum(key[0] == kind for key in seen) >= MOST
        if known or (kind == "function" and not arrays) or sum(each.nbytes for each in arrays) > MOST_BYTES:
            return False
        seen.add((kind, name))
        return True

    def copied(args) -> list | None:
        """The arguments as arrays; None if some have no such copies."""
        if any(isinstance(each, (kp.Image, kp.SampledImage, list, tuple)) for each in args):
            return None
        return [np.array(each.read()) if hasattr(each, "read") else each for each in args]

    def of_kernel(self, /, *args, **named):
        if any(isinstance(each, kp.Image) for each in args) and all(
            isinstance(each, kp.Memory) for each in args
        ):
            return eval(self.manager.sequence().record(self.bind(*args, **named))) and None
        given = copied(args)
        plain = not any(hasattr(each, "_manager") or each is None for each in named.values())
        if plain and given is not None and "out" not in named and is_new("kernel", self.name, given):
            shadowed(self, [np.copy(each) for each in given], named, kp.Program.record(self))
        return kernel_call(self, *args, **named)

    def of_function(self, /, *args, **named):
        given = copied(args)
        taken = {"out", "donate", "wait", "signal"} & named.keys()
        if not taken and given is not None and is_new("function", self.__name__, given):
            shadowed(self, given, named, kp.Program.record(self.specialize(**named), *given))
        return function_call(self, *args, **named)

    kp.Sequence.eval, kp.Kernel.__call__, kp.Function.__call__ = eval, of_kernel, of_function
    module = importlib.import_module(f"kompute_py_gallery.{name}")
    assert module.main(["--out", str(folder / "picture.png")]) == 0


def flat(results) -> list:
    """The arrays of nested tuples; those of images."""
    if isinstance(results, (tuple, list)):
        return [array for each in results for array in flat(each)]
    return [] if results is None else [results.read() if isinstance(results, kp.Memory) else results]


def replay(where: str) -> int:
    """Runs what `record` saved, and compares it. For a process of its own."""
    folder = Path(where)
    count = 0
    for path in sorted(folder.glob("*.kpp")):
        expected = pickle.loads(path.with_suffix(".pickle").read_bytes())
        program = kp.load_program(path)
        program.main()
        part = program._core.parts[""]
        loaded: Loaded = program._core.loaded(part, kp.manager())
        for number in sorted(content.blocks_of(part.entries[0].recordings[0].steps) & expected.keys()):
            got = loaded.block(number).read().reshape(-1).view(np.uint8)
            wrong = np.nonzero(got != expected[number])[0]
            first = wrong[:1] // 4
            assert not wrong.size, (
                f"{path.name}: block {number}: {wrong.size} of {got.size} bytes differ, in word {first} "
                f"{got.view(np.float32)[first]} and {expected[number].view(np.float32)[first]}"
            )
        count += 1
    for path in sorted(folder.glob("*.call")):
        before, after, expected = pickle.loads(path.with_suffix(".args").read_bytes())
        given, named = pickle.loads(before)
        entry = kp.load_program(path).main
        if entry.kind == "recording":
            got = entry(*[each for each in given if isinstance(each, np.ndarray)])
        else:
            got = entry(*given, **named)
            expected, got = (*after, expected), (*given, got)
        for one, other in zip(flat(got), flat(expected), strict=True):
            np.testing.assert_array_equal(one, other)
        count += 1
    return count


_FOR_DRIVERS = "VK_", "LD_", "NODEVICE", "ASAN_", "LSAN_", "TSAN_", "UBSAN_"
"""How the variables of drivers and sanitizers begin."""
BARE = f"""
import pickle, sys
for each in ("kompute_py_gallery", "kompute_py_demo", "tests", "matplotlib", "scipy", "sklearn", "PIL"):
    sys.modules[each] = None  # cannot be imported
from pathlib import Path
import numpy as np
import kompute_py as kp
from kompute_py._programs import content
from kompute_py._programs.running import Loaded
{inspect.getsource(flat)}
{inspect.getsource(replay)}
print(replay(sys.argv[1]))
"""


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("name", NAMES)
def test_what_a_program_of_the_gallery_records_runs_elsewhere(tmp_path, name):
    pytest.importorskip("matplotlib")
    pytest.importorskip("scipy")
    saved, empty = tmp_path / "saved", tmp_path / "empty"
    saved.mkdir(), empty.mkdir()
    run_child(record, name, str(saved))
    variables = {key: each for key, each in os.environ.items() if key.startswith(_FOR_DRIVERS)}
    done = subprocess.run(
        [sys.executable, "-I", "-c", BARE, str(saved)],
        cwd=empty, env=variables | {"HOME": str(empty)}, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 1


APART = {
    "digits_network": (0, 1e-5),
    "digits_operations": (0, 1e-5),
    "logistic_regression": (0, 2e-6),
    "matrix_products": (0, 2e-5),
    "monte_carlo": (2e-6, 5e-6),
    "raymarch": (0, 1),  # in 4 of the texels
    "reaction_diffusion": (0, 1e-4),
    "separable_filters": (0.02, 0),  # a texel of 8 bits is another one
}
"""How far lavapipe's results may be from SwiftShader's, relative or absolute; those of others are equal."""
CHAOTIC = {"mandelbrot", "path_tracer"}
"""A rounded bit becomes another path, or many more iterations."""


@pytest.mark.own_driver
@pytest.mark.sampled(every=18)
@pytest.mark.parametrize("name", NAMES)
def test_drivers_agree_on_what_a_program_of_the_gallery_submits(tmp_path, name):
    """`compare` over captures. They are of SwiftShader, whose limits are the lower ones."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("scipy")
    path = tmp_path / "capture.kpp"
    capture = {"KOMPUTE_PY_CAPTURE": str(path), **environment("swiftshader")}
    here = [sys.executable, "-m", "kompute_py_gallery", name, "--out", str(tmp_path / "picture.png")]
    subprocess.run(here, env=os.environ | capture, check=True, timeout=500)
    drivers = [f"--driver={manifest(each)}" for each in ("swiftshader", "lavapipe")]
    rtol, atol = APART.get(name, (0, 0))
    command = [sys.executable, "-m", "kompute_py", "program", "compare", str(path), *drivers]
    done = subprocess.run(
        [*command, f"--rtol={rtol}", f"--atol={atol}"],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert "failed" not in done.stdout and "main on" in done.stdout, done.stdout + done.stderr
    if name not in CHAOTIC:
        assert not done.returncode, done.stdout + done.stderr
