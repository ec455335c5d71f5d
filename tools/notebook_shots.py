"""Screenshots of notebooks in a real browser: JupyterLab in headless Chromium.

    ./dev shots                      all pictures of docs/images/notebook_*.png
    ./dev shots error play           some of them
    ./dev shots --measure [SECONDS]  the frames a second of a play
    ./dev shots --check              what must hold in a browser; exit status 1 if something does not

Each notebook below runs in JupyterLab with this checkout's kernel. Needs the extra ``browser`` and Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import nbformat
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from browser import Browser  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none", "recordTiming": False},
}

START = "import numpy as np\n\nimport kompute_py as kp\n\n%load_ext kompute_py"
WAVES = """%%glsl waves --quiet
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, rgba8) uniform writeonly image2D picture;
layout(push_constant) uniform P { float time; float speed; vec2 mouse; vec2 resolution; };

void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(p, ivec2(resolution)))) return;
    float near = exp(-distance(vec2(p), mouse) / 40.0);   // the mouse is in pixels
    float wave = sin(p.x * 0.05 + speed * time) + sin(length(p - resolution / 2.0) * 0.08 - speed * time);
    vec3 colour = 0.5 + 0.5 * cos(wave + vec3(0.0, 0.6, 1.2)) + near;
    imageStore(picture, p, vec4(colour, 1.0));
}"""
PLAY = """image = mgr.image_t(np.zeros((256, 384, 4), np.uint8), format='rgba8')
live = kp.notebook.play(waves, out=image, speed=(0.5, 6.0, 0.1, 2.0))
live.play()
live"""
SCALE = """%%glsl {name} --quiet
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X {{ float x[]; }};
layout(set = 0, binding = 1) writeonly buffer Y {{ float y[]; }};
void main() {{
    uint i = gl_GlobalInvocationID.x;
    if (i < y.length()) y[i] = 0.5 * x[i];
}}"""
ERROR = """%%hlsl brighten
RWTexture2D<float4> picture : register(u0);

[numthreads(8, 8, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    float4 colour = picture[id.xy];
    picture[id.xy] = saturate(color * 1.5);  // brighter
}"""
LANGUAGES = """%%slang add
// Comments, types, numbers and built-in names have their colours.
StructuredBuffer<float> a, b;
RWStructuredBuffer<float> sum;

[shader("compute")] [numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    if (id.x < 1024) sum[id.x] = a[id.x] + b[id.x];
}"""

NOTEBOOKS: dict[str, list[str]] = {
    "device": [START + "\n%kp"],
    "error": [START, ERROR],
    "colours": [START, LANGUAGES],
    "sequence": [
        START + "\nmgr = kp.manager()\na, b, c = (mgr.zeros(1024) for _ in range(3))",
        SCALE.format(name="halve"),
        SCALE.format(name="relax"),
        """seq = mgr.sequence().record(kp.OpSyncDevice([a]))
for _ in range(100):
    seq.record(halve.bind(a, b))
    for _ in range(4):
        seq.record(relax.bind(b, c)).record(relax.bind(c, b))
seq.record(kp.OpSyncLocal([b])).eval()
seq""",
    ],
    "card": [
        START
        + "\nmgr = kp.manager()\nimage = mgr.image_t(np.zeros((128, 192, 4), np.uint8), format='rgba8')",
        WAVES,
        "waves(image, time=1.0, speed=1.0, mouse=(50, 40), resolution=(192, 128))\nimage",
    ],
    "play": [START + "\nmgr = kp.manager()", WAVES, PLAY],
    "sliders": [],
    "plot": [
        START + "\nmgr = kp.manager()",
        "t = mgr.tensor(np.linspace(0, 6, 200)); t.name = 'sine'\nt.write(np.sin(t.data()))\nkp.plot(t);",
    ],
}
DARK = ("error",)


def sliders_notebook() -> list[str]:
    """The cells of the first example, without the last two lines of the prose between them."""
    cells = nbformat.read(ROOT / "examples" / "notebooks" / "reaction_diffusion.ipynb", as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"][:-1]


NOTEBOOKS["sliders"] = sliders_notebook()


@contextmanager
def lab(folder: Path) -> Iterator[str]:
    """JupyterLab over `folder`; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = folder / ".settings"
    for name, values in SETTINGS.items():
        file = settings / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    environment = {
        **os.environ,
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTER_CONFIG_DIR": str(folder / ".config"),
        "JUPYTER_DATA_DIR": str(folder / ".data"),
        "IPYTHONDIR": str(folder / ".ipython"),
        "MPLCONFIGDIR": str(folder / ".matplotlib"),
        "KOMPUTE_PY_SHADER_CACHE_DIR": str(folder / ".cache"),
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
    command += ["--IdentityProvider.token=", f"--ServerApp.root_dir={folder}", "--expose-app-in-browser"]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=folder)
        address = f"http://127.0.0.1:{port}"
        try:
            for _ in range(120):
                with suppress(OSError):
                    urllib.request.urlopen(f"{address}/api", timeout=2).close()
                    break
                time.sleep(0.5)
            else:
                raise SystemExit((folder / "server.log").read_text())
            yield address
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:  # its kernels end with it
                server.kill()
                server.wait()


class Notebook:
    """A notebook that JupyterLab shows in the browser, its cells run."""

    def __init__(self, tab: Browser, address: str, folder: Path, name: str, dark: bool = False) -> None:
        cells = [nbformat.v4.new_code_cell(source) for source in NOTEBOOKS[name]]
        made = nbformat.v4.new_notebook(cells=cells)
        made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(made, folder / f"{name}.ipynb")
        self.tab = tab
        tab.window(860, 1500)
        tab.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.problems = tab.open(f"{address}/doc/tree/{name}.ipynb?reset")
        self.wait("window.jupyterapp && document.querySelector('.jp-Notebook .jp-Cell')")
        self.command("apputils:change-theme", {"theme": "JupyterLab Dark" if dark else "JupyterLab Light"})
        kernel = "window.jupyterapp.shell.currentWidget?.context?.sessionContext.session?.kernel"
        self.wait(f"{kernel}?.status === 'idle'")
        self.command("notebook:run-all-cells")
        self.wait(
            "[...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')]"
            ".every((each) => /\\[\\d+\\]/.test(each.textContent))"
        )
        self.pause(2)

    def command(self, name: str, arguments: dict[str, Any] | None = None) -> None:
        """Begins a command of JupyterLab."""
        given = f"{json.dumps(name)}, {json.dumps(arguments or {})}"
        self.tab.value(f"window.jupyterapp.commands.execute({given}); null")

    def wait(self, script: str, seconds: float = 120) -> None:
        """Waits until an expression is true."""
        deadline = time.monotonic() + seconds
        while not self.tab.value(f"Boolean({script})"):
            if time.monotonic() > deadline:
                raise SystemExit(f"this did not become true: {script}")
            time.sleep(0.2)

    def pause(self, seconds: float) -> None:
        """Lets the browser go on for a while."""
        self.tab.value(f"new Promise((done) => setTimeout(() => done(1), {1000 * seconds}))")

    def text(self, selector: str) -> str:
        """The text of the first element of this kind."""
        return str(self.tab.value(f"document.querySelector({json.dumps(selector)}).textContent"))

    def box(self, selector: str, last: int = 1) -> dict[str, float]:
        """The box around the last elements of this kind, in the window."""
        script = f"""JSON.stringify([...document.querySelectorAll({json.dumps(selector)})].slice(-{last})
            .map((each) => each.getBoundingClientRect()))"""
        boxes = json.loads(self.tab.value(script))
        left, top = min(each["left"] for each in boxes), min(each["top"] for each in boxes)
        right, bottom = max(each["right"] for each in boxes), max(each["bottom"] for each in boxes)
        return {"x": left, "y": top, "width": right - left, "height": bottom - top}

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Moves, presses or releases the mouse: "Moved", "Pressed" or "Released"."""
        self.tab.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, button="left", clickCount=1)

    def shot(self, name: str, cells: int = 1) -> Path:
        """Takes a picture of the last cells, without the empty margins."""
        self.mouse("Moved", 1, 1) if name != "play" else None
        self.tab.value("document.activeElement.blur()")
        self.tab.value(
            f"[...document.querySelectorAll('.jp-Notebook .jp-CodeCell')].at(-{cells}).scrollIntoView()"
        )
        self.pause(0.5)
        path = IMAGES / f"notebook_{name}.png"
        self.tab.screenshot(path, **self.box(".jp-Notebook .jp-CodeCell", cells))
        picture = Image.open(path).convert("RGB")
        trimmed(picture).quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
        return path


def trimmed(picture: Image.Image) -> Image.Image:
    """Without the empty rows and columns at its bottom and right edges."""
    import numpy as np

    pixels = np.asarray(picture).astype(np.int16)
    other = (np.abs(pixels - pixels[-1, -1]) > 8).any(axis=2)
    rows, columns = np.flatnonzero(other.any(axis=1)), np.flatnonzero(other.any(axis=0))
    if not rows.size:
        return picture
    margin = 12
    return picture.crop(
        (0, 0, min(picture.width, int(columns[-1]) + margin), min(picture.height, int(rows[-1]) + margin))
    )


def take(tab: Browser, address: str, folder: Path, names: list[str]) -> None:
    """Takes the pictures `names`."""
    for name in names:
        notebook = Notebook(tab, address, folder, name, name in DARK)
        if name == "play":
            canvas = notebook.box(".kp-play canvas")
            notebook.mouse("Moved", canvas["x"] + 250, canvas["y"] + 90)
            notebook.pause(2.5)
        path = notebook.shot(name, cells=2 if name == "card" else 1)
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1024:.0f} KiB", flush=True)


def check(tab: Browser, address: str, folder: Path) -> int:
    """Checks the notebooks in the browser; returns the exit status."""
    wrong: list[str] = []

    def must(what: str, holds: bool) -> None:
        print(f"{'ok' if holds else 'WRONG'}: {what}", flush=True)
        if not holds:
            wrong.append(what)

    notebook = Notebook(tab, address, folder, "play")
    code = "[...document.querySelectorAll('.jp-CodeCell')][1].querySelector('.cm-content')"
    colour = f"""((word) => {{
        const span = [...{code}.querySelectorAll('span')].find((each) => each.textContent === word);
        return span ? getComputedStyle(span).color : getComputedStyle({code}).color;
    }})"""
    plain = tab.value(f"{colour}('nothing of the kind')")
    for word in ("layout", "uniform", "vec2", "void", "imageStore", "// the mouse is in pixels"):
        must(f"{word} has a colour in a cell of GLSL", tab.value(f"{colour}({word!r})") != plain)
    must("in is the shader's word, not Python's, in a comment", tab.value(f"{colour}('is')") == plain)

    def told() -> tuple[float, int]:
        found = re.match(r"([\d.]+) s . frame (\d+)", notebook.text(".kp-told"))
        assert found
        return float(found[1]), int(found[2])

    def press(button: str) -> None:
        tab.value(f"document.querySelector('.kp-{button}').click()")
        notebook.pause(1)

    first = told()
    notebook.pause(2)
    must("a play goes on", told()[0] > first[0] + 1 and told()[1] > first[1])
    must(
        "its picture has an alternative text",
        "384 columns by 256 rows"
        in str(tab.value("document.querySelector('.kp-play canvas').getAttribute('aria-label')")),
    )
    press("main")
    paused = told()
    notebook.pause(1)
    must("a pause holds the frame", told() == paused)
    press("step")
    must("a step is one frame", told()[1] == paused[1] + 1)
    press("reset")
    must("a reset goes to the start", told() == (0.0, 0))
    pixels = (
        "document.querySelector('.kp-play canvas').getContext('2d').getImageData(300, 60, 1, 1).data.join()"
    )
    before, canvas = tab.value(pixels), notebook.box(".kp-play canvas")
    notebook.mouse(
        "Moved", canvas["x"] + 300 * canvas["width"] / 384, canvas["y"] + 60 * canvas["height"] / 256
    )
    notebook.pause(1)
    must("the mouse reaches the shader, also in a pause", tab.value(pixels) != before)
    press("main")
    # The cell runs again: the widget is another one, and the kernel let go of the first.
    notebook.command("notebook:run-all-cells")
    notebook.pause(6)
    must(
        "one play is left when the cell ran again",
        tab.value("document.querySelectorAll('.kp-play').length") == 1,
    )
    again = told()
    notebook.pause(2)
    must("which plays", told()[0] > again[0] + 1)
    # The image goes: the error is told once, and the play stops.
    tab.value(
        "window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel"
        ".requestExecute({code: 'image.destroy()'}).done.then(() => null)"
    )
    notebook.wait("document.querySelector('.kp-play pre').textContent.includes('destroyed')", 20)
    stopped = told()
    notebook.pause(1)
    must(
        "an error is shown and stops the play",
        told() == stopped and tab.value("document.querySelector('.kp-play').dataset.playing") == "false",
    )
    must("no errors of scripts", not notebook.problems)
    for problem in notebook.problems:
        print(problem)
    notebook = Notebook(tab, address, folder, "sequence")
    must(
        "a flowchart has an alternative text",
        bool(
            tab.value(
                "document.querySelector('.jp-RenderedMermaid img, .jp-RenderedMermaid svg') &&"
                "/Sequence|operations/.test(document.querySelector('.jp-RenderedMermaid').outerHTML)"
            )
        ),
    )
    return int(bool(wrong))


def measure(tab: Browser, address: str, folder: Path, seconds: float) -> None:
    """Prints the frames a second of the play."""
    notebook = Notebook(tab, address, folder, "play")

    def frame() -> int:
        found = re.search(r"frame (\d+)", notebook.text(".kp-told"))
        assert found
        return int(found[1])

    first, began = frame(), time.perf_counter()
    notebook.pause(seconds)
    last, ended = frame(), time.perf_counter()
    print(f"{(last - first) / (ended - began):.1f} frames a second, at a load of {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="./dev shots", description="Screenshots of notebooks in a browser")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NOTEBOOKS)}")
    parser.add_argument("--check", action="store_true", help="what must hold in a browser")
    parser.add_argument("--measure", nargs="?", type=float, const=5.0, metavar="SECONDS")
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(NOTEBOOKS)):
        parser.error(f"no picture is called {unknown[0]}")
    with tempfile.TemporaryDirectory() as scratch, lab(Path(scratch)) as server, Browser() as opened:
        if given.check:
            sys.exit(check(opened, server, Path(scratch)))
        elif given.measure:
            measure(opened, server, Path(scratch), given.measure)
        else:
            take(opened, server, Path(scratch), given.names or list(NOTEBOOKS))
