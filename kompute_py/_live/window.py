"""A window with a picture that plays, its sliders and buttons. Needs Dear PyGui (the extra ``show``)."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from .._base.errors import FailedPreconditionError, KomputeError
from .call import Knob
from .player import Player

_LEAST_SIDE, _MOST_SIDE = 512, 1200
"""Pictures are enlarged by a whole factor to about the first, and scaled down to the second."""
_MARGIN, _LINE = 24, 26
_KEYS = "space: play or pause, right: one frame on, R: from the beginning, Esc: close"


def run_window(player: Player, fps: float, title: str, frames: int | None) -> None:
    """Opens the window and returns when it is closed, or after `frames` frames."""
    gui = _gui()
    if threading.current_thread() is not threading.main_thread():
        raise FailedPreconditionError("show: windows open in the main thread only")
    if not _open.acquire(blocking=False):
        raise FailedPreconditionError("show: another window is open in this process; close it first")
    try:
        with _display():
            player.state.clock.play()
            first = player.draw(player.call.starts)  # its errors come before the window
            gui.create_context()
            try:
                _Window(gui, player, fps, title, frames).run(first)
            finally:
                gui.destroy_context()
    finally:
        _open.release()


_open = threading.Lock()


def _gui() -> Any:
    try:
        import dearpygui.dearpygui as gui
    except ImportError as error:
        raise FailedPreconditionError(
            f"show needs Dear PyGui ({error}): pip install 'kompute-py[show]'; or give path= and frames= "
            "for a film without a window"
        ) from None
    return gui


@contextmanager
def _display() -> Iterator[None]:
    """A connection to the display. Raises FailedPreconditionError without one: Dear PyGui ends the process.

    It stays open for as long as the window: a display without any client may start anew.
    """
    if sys.platform != "linux":
        yield
        return
    try:
        x11 = ctypes.CDLL("libX11.so.6")
        x11.XOpenDisplay.restype = ctypes.c_void_p
        connection = x11.XOpenDisplay(None)
    except OSError:
        connection = None
    if not connection:
        raise FailedPreconditionError(
            "show: there is no display (X11, or Wayland with XWayland; DISPLAY names it); give path= and "
            "frames= for a film without a window"
        )
    try:
        yield
    finally:
        x11.XCloseDisplay(ctypes.c_void_p(connection))


class _Window:
    def __init__(self, gui: Any, player: Player, fps: float, title: str, frames: int | None) -> None:
        self._gui = gui
        self._player = player
        self._state = player.state
        self._period = 1 / fps
        self._frames = frames
        self._error = ""
        self._presses, self._pressed = 0, (0.0, 0.0)
        rows, columns = self._state.rows, self._state.columns
        side = max(rows, columns)
        zoom = max(1, _LEAST_SIDE // side) if side <= _MOST_SIDE else _MOST_SIDE / side
        self._width, self._height = round(columns * zoom), round(rows * zoom)
        self._texels = np.ones((rows, columns, 4), np.float32)
        # Callbacks run in this thread, between two frames.
        gui.configure_app(manual_callback_management=True)
        with gui.texture_registry():
            self._texture = gui.add_raw_texture(
                columns, rows, default_value=self._texels, format=gui.mvFormat_Float_rgba
            )
        with gui.window() as self._root:
            self._picture = gui.add_image(self._texture, width=self._width, height=self._height)
            with gui.group(horizontal=True):
                self._play = gui.add_button(label="Pause", callback=lambda: self._toggle(), width=60)
                gui.add_button(label="Step", callback=lambda: self._step())
                gui.add_button(label="Reset", callback=lambda: self._reset())
                self._status = gui.add_text("")
            self._sliders = {name: self._slider(knob) for name, knob in player.call.knobs.items()}
            self._message = gui.add_text("", wrap=self._width, color=(229, 57, 53))
        with gui.handler_registry():
            gui.add_mouse_click_handler(button=gui.mvMouseButton_Left, callback=lambda: self._press())
            for key, does in (
                (gui.mvKey_Spacebar, self._toggle),
                (gui.mvKey_Right, self._step),
                (gui.mvKey_R, self._reset),
                (gui.mvKey_Escape, gui.stop_dearpygui),
            ):
                gui.add_key_press_handler(key, callback=lambda *_, does=does: does())
        with gui.tooltip(self._status):
            gui.add_text(_KEYS)
        below = _LINE * (3 + len(self._sliders))
        gui.create_viewport(
            title=title, width=max(self._width + _MARGIN, 420), height=self._height + _MARGIN + below
        )

    def _slider(self, knob: Knob) -> Any:
        gui = self._gui
        if knob.kind is bool:
            return gui.add_checkbox(label=knob.name)
        if knob.kind is int and max(abs(knob.low), abs(knob.high)) < 1 << 31:
            return gui.add_slider_int(
                label=knob.name,
                min_value=knob.low,
                max_value=knob.high,
                default_value=knob.start,
                clamped=True,
            )
        return gui.add_slider_double(
            label=knob.name, min_value=knob.low, max_value=knob.high, default_value=knob.start, clamped=True
        )

    def run(self, first: np.ndarray[Any, Any]) -> None:
        gui, clock = self._gui, self._state.clock
        gui.setup_dearpygui()
        gui.show_viewport()
        gui.set_primary_window(self._root, True)
        self._show(first)
        gui.render_dearpygui_frame()  # Dear PyGui ends the process if a window goes that never had one
        due, shown = perf_counter() + self._period, self._positions()
        drawn = 1
        while gui.is_dearpygui_running() and (self._frames is None or drawn < self._frames):
            gui.run_callbacks(gui.get_callback_queue())
            self._look_at_mouse()
            now, positions = perf_counter(), self._positions()
            if clock.playing and now >= due:
                clock.tick()
                self._draw(fresh=True)
                # Frames that are missed are not drawn later.
                due, shown, drawn = max(due + self._period, now), positions, drawn + 1
            elif positions != shown:
                self._draw(fresh=False)
                shown = positions
            gui.render_dearpygui_frame()

    def _positions(self) -> dict[str, Any]:
        found = {}
        for name, knob in self._player.call.knobs.items():
            value = self._gui.get_value(self._sliders[name])
            if knob.kind is not bool:  # in steps from the lowest, as notebooks' sliders
                value = min(knob.low + knob.step * round((value - knob.low) / knob.step), knob.high)
            found[name] = knob.kind(value)
        return found

    def _draw(self, fresh: bool) -> None:
        """Draws a frame. An error stops the play and is shown; with `frames` it is raised."""
        try:
            pixels = self._player.draw(self._positions(), fresh=fresh)
        except Exception as error:
            if self._frames is not None:
                raise
            self._state.clock.pause()
            self._error = (
                str(error) if isinstance(error, KomputeError) else f"{type(error).__name__}: {error}"
            )
        else:
            self._error = ""
            self._show(pixels)
        self._tell()

    def _show(self, pixels: np.ndarray[Any, Any]) -> None:
        np.multiply(pixels, np.float32(1 / 255), out=self._texels)
        self._gui.set_value(self._texture, self._texels)

    def _tell(self) -> None:
        clock = self._state.clock
        self._gui.set_item_label(self._play, "Pause" if clock.playing else "Play")
        text = f"frame {clock.frame}  {clock.time:.2f} s  {self._player.milliseconds:.1f} ms"
        self._gui.set_value(self._status, text)
        # A watched kernel goes on with its last good version, and says what is wrong with the newest.
        edit = getattr(self._player.call.source, "error", None)
        self._gui.set_value(self._message, self._error or (str(edit) if edit else ""))

    def _toggle(self) -> None:
        clock = self._state.clock
        if clock.playing:
            clock.pause()
        else:
            clock.play()
        self._tell()

    def _step(self) -> None:
        self._state.clock.step()
        self._draw(fresh=True)

    def _reset(self) -> None:
        self._state.clock.reset()
        self._draw(fresh=True)

    def _where(self) -> tuple[float, float]:
        """The pointer in pixels of the picture."""
        x, y = self._gui.get_mouse_pos(local=False)
        left, top = self._gui.get_item_rect_min(self._picture)
        return (x - left) * self._state.columns / self._width, (y - top) * self._state.rows / self._height

    def _press(self) -> None:
        if self._gui.is_item_hovered(self._picture):
            self._presses += 1
            self._pressed = self._where()

    def _look_at_mouse(self) -> None:
        gui, mouse, state = self._gui, self._state.mouse, self._state
        held = self._presses > mouse.presses or (
            mouse.held and gui.is_mouse_button_down(gui.mvMouseButton_Left)
        )
        if held or mouse.held or gui.is_item_hovered(self._picture):
            (x, y), (pressed_x, pressed_y) = self._where(), self._pressed
            found = {"x": x, "y": y, "held": held, "presses": self._presses}
            mouse.update({**found, "pressed_x": pressed_x, "pressed_y": pressed_y}, state.columns, state.rows)
