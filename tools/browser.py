"""A headless Chromium, driven over its debugging pipe: no package of Python and no port are needed."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Without a GPU and in a container: no sandbox of its own, nothing from the network.
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)


class Browser:
    """One tab of a browser. Use it as a context manager."""

    def __init__(self, seconds: float = 60) -> None:
        program = next(filter(None, map(shutil.which, NAMES)), None)
        if program is None:
            sys.exit(f"no browser is here ({', '.join(NAMES)}): ./dev docs --look installs chromium")
        self._seconds = seconds
        self._profile = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        from_us, to_us = os.pipe(), os.pipe()
        self._write, self._read = from_us[1], to_us[0]

        # The browser reads its file 3 and writes its file 4.
        command = f'exec 3<&{from_us[0]} 4>&{to_us[1]}; exec "$0" "$@"'
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                command,
                program,
                *_OPTIONS,
                f"--user-data-dir={self._profile.name}",
                "about:blank",
            ],
            pass_fds=(from_us[0], to_us[1]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(from_us[0])
        os.close(to_us[1])
        self._pending = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(each for each in targets if each["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._session = None
            self.call("Browser.close")
        except (OSError, RuntimeError):
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a DevTools command. Raises RuntimeError with the browser's message."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(self._seconds)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _next(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise RuntimeError("the browser does not answer")
            more = os.read(self._read, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self._pending += more
        message, _, self._pending = self._pending.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def window(self, width: int, height: int, scheme: str = "light") -> None:
        """Sets the window's size in CSS pixels, and the preferred colours, "light" or "dark"."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address: str) -> list[str]:
        """Opens a page and waits until it is loaded. Returns the errors of its scripts and requests."""
        self.events.clear()
        self.call("Page.navigate", url=address)
        deadline = time.monotonic() + self._seconds
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next(max(0.1, deadline - time.monotonic())))
        self.value("new Promise(done => requestAnimationFrame(() => setTimeout(() => done(1), 50)))")
        return [text for text in map(_problem, self.events) if text]

    def value(self, script: str) -> Any:
        """The value of an expression in the page, awaited if it is a promise."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def screenshot(self, path: Path, **clip: float) -> None:
        """Writes the window, or the box `x`, `y`, `width`, `height` of it, as PNG."""
        import base64

        more = {"clip": {"scale": 1, **clip}} if clip else {}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **more)["data"]))


def _problem(event: dict[str, Any]) -> str | None:
    """The text of an event that is an error."""
    method, given = event.get("method"), event.get("params", {})
    if method == "Runtime.exceptionThrown":
        details = given["exceptionDetails"]
        return f"script error: {details.get('exception', {}).get('description', details.get('text'))}"
    if method == "Runtime.consoleAPICalled" and given["type"] in ("error", "assert"):
        return "console: " + " ".join(
            str(each.get("value", each.get("description"))) for each in given["args"]
        )
    if method == "Log.entryAdded" and given["entry"]["level"] == "error":
        return f"{given['entry']['text']} {given['entry'].get('url', '')}"
    return None
