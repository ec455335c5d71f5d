"""`kp.show` in a window, on a display without a screen: the test looks at it, and moves a mouse over it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from PIL import ImageGrab

pytestmark = [
    pytest.mark.own_driver,
    pytest.mark.skipif(
        not (shutil.which("Xvfb") and shutil.which("xdotool")), reason="Xvfb or xdotool is not installed"
    ),
]

# The left half is the slider's value, the right half the mouse's button; the first row holds the pointer.
KERNEL = """
import sys, numpy as np, kompute_py as kp
mgr = kp.Manager()
SOURCE = '''
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) writeonly buffer Y { vec4 y[]; };
layout(push_constant) uniform P { vec4 mouse; int frame; float level; };
void main() {
    uvec2 p = gl_GlobalInvocationID.xy;
    if (p.x >= 64 || p.y >= 48) return;
    vec4 color = p.x < 32 ? vec4(level, 0, 0, 1) : vec4(0, mouse.z, frame % 2, 1);
    if (distance(vec2(p), mouse.xy) < 3) color = vec4(1);
    y[p.y * 64 + p.x] = color;
}'''
y = mgr.zeros((48, 64, 4))
kernel = mgr.kernel(SOURCE, name="levels")
"""


class Screen:
    """A display, and a script whose window is on it."""

    def __init__(self, display: str, env: dict[str, str]) -> None:
        self.display, self.env = display, env

    def start(self, script: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", KERNEL + textwrap.dedent(script)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env,
        )  # fmt: skip

    def do(self, *words: object) -> None:
        subprocess.run(["xdotool", *map(str, words)], check=True, env=self.env)

    def pixels(self) -> np.ndarray:
        return np.asarray(ImageGrab.grab(xdisplay=self.display))

    def wait_for(self, seen, child: subprocess.Popen[str]) -> np.ndarray:
        """The first screen that is as wanted."""
        end = time.monotonic() + 60
        while not seen(pixels := self.pixels()):
            assert child.poll() is None, child.communicate()
            assert time.monotonic() < end, "the window never looked so"
            time.sleep(0.05)
        return pixels


@pytest.fixture
def screen():
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "900x800x24", "-noreset"],
        pass_fds=[write], stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(write)
    with os.fdopen(read) as told:
        display = f":{told.readline().strip()}"
    try:
        yield Screen(display, {**os.environ, "DISPLAY": display})
    finally:
        server.kill()
        server.wait()


ERROR = (229, 57, 53)


def has(color, least=1000):
    """Whether so many pixels have this color."""
    return lambda pixels: (np.abs(pixels.astype(int) - color).max(axis=-1) <= 2).sum() >= least


def place_of(pixels, color):
    rows, columns = np.nonzero(np.abs(pixels.astype(int) - color).max(axis=-1) <= 2)
    return int(columns.mean()), int(rows.mean())


def test_a_window_draws_and_ends_after_its_frames(screen):
    child = screen.start(
        """
        seen = []
        kp.show(kernel, y, grid=(64, 48), level=(0.0, 1.0, 0.1, 0.5), frames=40,
            before=lambda: seen.append(1))
        print(len(seen))
        """
    )
    screen.wait_for(has((128, 0, 0)), child)
    out, err = child.communicate(timeout=60)
    assert out.split() == ["40"] and not child.returncode, err


def test_mouse_slider_and_keys(screen):
    child = screen.start("kp.show(kernel, y, grid=(64, 48), level=(0.0, 1.0, 0.1, 0.5)); print('closed')")
    red, green = (128, 0, 0), (0, 255, 255)
    at = place_of(screen.wait_for(has(red), child), red)
    screen.do("mousemove", *at)
    screen.do("mousedown", 1)
    screen.wait_for(lambda pixels: has((0, 255, 0))(pixels) or has(green)(pixels), child)  # mouse.z
    pointer = screen.pixels()[at[1], at[0]]
    assert pointer.min() > 250, pointer  # the pointer's disk lies where the mouse is
    screen.do("mouseup", 1)
    screen.wait_for(lambda pixels: has((0, 0, 255))(pixels) or has((0, 0, 0))(pixels), child)
    # Paused, the frame stays; the space bar and the arrow go on.
    screen.do("key", "space")
    time.sleep(0.3)
    still = {tuple(screen.pixels()[200, 500]) for _ in range(5)}
    assert len(still) == 1
    screen.do("key", "Right")
    screen.wait_for(lambda pixels: tuple(pixels[200, 500]) not in still, child)
    screen.do("key", "Escape")
    out, err = child.communicate(timeout=60)
    assert out.split() == ["closed"] and not child.returncode, err


def test_an_error_is_shown_or_raised(screen):
    child = screen.start(
        """
        def fail(): raise ValueError("before fails")
        try: kp.show(kernel, y, grid=(64, 48), frames=3, before=fail)
        except ValueError as error: print(error)
        count = []
        def late():
            count.append(1)
            if len(count) == 3: raise ValueError("late")
        kp.show(kernel, y, grid=(64, 48), level=(0.0, 1.0, 0.1, 0.5), before=late)
        print(len(count))
        """
    )
    pixels = screen.wait_for(has(ERROR, 1), child)
    assert has((128, 0, 0))(pixels)
    screen.do("key", "Escape")
    out, err = child.communicate(timeout=60)
    assert out.splitlines() == ["before fails", "3"] and not child.returncode, err


def test_a_saved_file_is_taken_and_its_mistakes_shown(screen, tmp_path):
    path = tmp_path / "color.comp"
    source = (
        "#version 450\\nlayout(local_size_x = 8, local_size_y = 8) in;\\n"
        "layout(binding = 0) writeonly buffer Y { vec4 y[]; };\\n"
        "void main() { uvec2 p = gl_GlobalInvocationID.xy; "
        "if (p.x < 64 && p.y < 48) y[p.y * 64 + p.x] = COLOR; }"
    ).replace("\\n", "\n")

    def save(color):
        new = path.with_suffix(".new")
        new.write_text(source.replace("COLOR", color))
        new.replace(path)

    save("vec4(1, 0, 0, 1)")
    child = screen.start(f"kp.show(mgr.kernel({str(path)!r}, watch=True), y, grid=(64, 48)); print('closed')")
    screen.wait_for(has((255, 0, 0)), child)
    save("vec4(0, 1, 0, 1)")
    screen.wait_for(has((0, 255, 0)), child)
    save("mistake")
    error = screen.wait_for(has(ERROR, 1), child)
    assert has((0, 255, 0))(error)  # the version before goes on
    save("vec4(0, 0, 1, 1)")
    screen.wait_for(has((0, 0, 255)), child)
    screen.do("key", "Escape")
    out, err = child.communicate(timeout=60)
    assert out.split() == ["closed"] and not child.returncode, err


def test_where_no_window_can_open(screen):
    script = """
        import threading
        def told(call):
            try: call()
            except kp.FailedPreconditionError as error: print(error)
        show = lambda: kp.show(kernel, y, grid=(64, 48), frames=2)
        thread = threading.Thread(target=told, args=(show,)); thread.start(); thread.join()
        told(lambda: kp.show(kernel, y, grid=(64, 48), frames=2, before=show))
        """
    out, err = screen.start(script).communicate(timeout=60)
    lines = out.splitlines()
    assert len(lines) == 2, err
    assert "main thread" in lines[0] and "another window is open" in lines[1]
    for display in ("", ":4711"):
        away = Screen(display, {**os.environ, "DISPLAY": display})
        child = away.start("kp.show(kernel, y, grid=(64, 48), frames=2)")
        out, err = child.communicate(timeout=60)
        assert child.returncode == 1 and "there is no display" in err


def test_watch_opens_a_window(screen, tmp_path):
    (tmp_path / "w.comp").write_text(
        "#version 450\nlayout(local_size_x = 8, local_size_y = 8) in;\n"
        "layout(binding = 0, rgba8) uniform writeonly image2D i;\n"
        "layout(push_constant) uniform P { float level; };\n"
        "void main() { imageStore(i, ivec2(gl_GlobalInvocationID.xy), vec4(level, 0, 1, 1)); }\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-m", "kompute_py", "watch", "w.comp", "--range", "level=0.2,1", "--size", "64,32"],
        cwd=tmp_path, env=screen.env, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    screen.wait_for(has((51, 0, 255)), child)
    screen.do("key", "Escape")
    _, err = child.communicate(timeout=60)
    assert not child.returncode, err
