"""Semaphores that several Managers and processes share, and descriptors that become readable.

Each holder of a shared semaphore has a counter of its own, with its own device, and a connection (a pair of
sockets) to the holder that it got it from. Who sees the counter rise tells its connections, and they raise
theirs. A wait for a value that another holder signals is held on the host until that is told. So no queue of
a device waits for another process, and the end of that process is seen: the connection ends, and the
semaphore fails. Devices and drivers may differ.

A thread of the process reads all connections, and descriptors that fences wait for. Nothing here ever waits
to send: only the newest value matters, and the thread sends it when there is room.
"""

from __future__ import annotations

import atexit
import errno
import functools
import os
import select
import socket
import stat
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from .. import _native
from .._base.descriptors import Descriptor
from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    KomputeError,
    OutOfMemoryError,
    UnimplementedError,
)
from .waiting import service_of

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable

    from .._device.device import Device

_GONE = "a process or Manager that shares the semaphore has ended"
_MOST_TEXT = 1000  # of a message of `fail`


class SemaphoreHandle(Descriptor):
    """A semaphore for another Manager or process: one end of a connection.

    ``semaphore.share()`` gives one, and ``mgr.import_semaphore(handle)`` makes a Semaphore that counts with
    it. It can be sent to another process by `multiprocessing`: as an argument of a Process, through a Pipe or
    a Queue. A handle serves one holder: importing it or sending it uses it up.

    Raises ArgumentTypeError if it is called: a semaphore makes its handle.

    >>> semaphore = mgr.semaphore(shared=True)
    >>> same = mgr.import_semaphore(semaphore.share())
    >>> semaphore.signal(3)
    >>> same.wait(3, timeout=10).query()
    3
    """

    __module__ = "kompute_py"  # public; imported when first used

    __slots__ = ("_value",)

    _anew = "take a new one with semaphore.share()"

    def __init__(self, *given: Any, _made: tuple[int, int] | None = None, **named: Any) -> None:
        """Raises ArgumentTypeError: handles are made by `Semaphore.share`."""
        if _made is None:
            raise ArgumentTypeError("A SemaphoreHandle is made by a semaphore: semaphore.share()")
        self._fd, self._value = _made

    def __reduce__(self) -> Any:
        """Sends a duplicate of the descriptor, as `multiprocessing` does with sockets."""
        return _received, (self._sent(), self._value)

    def __repr__(self) -> str:
        return f"<kp.SemaphoreHandle: {self._state()}>"


def _received(duplicate: Any, value: int) -> SemaphoreHandle:
    return SemaphoreHandle(_made=(duplicate.detach(), value))


class Shared:
    """A shared semaphore's connections. Alive as long as its semaphore, or work that will signal it."""

    def __init__(self, native: _native.Semaphore, manager: Device, handle: SemaphoreHandle | None) -> None:
        _require()
        self._native = native
        self._service = service_of(manager)
        self._lock = threading.Lock()
        self._links: list[_Link] = []
        self._watched = 0  # the service's number
        self._released = False
        self._over = False
        if handle is not None:
            link = self._connect(socket.socket(fileno=os.dup(handle.fileno())), handle._value, None)
            handle.close()
            link.say(b"\n")
        self._watch()

    def _connect(self, end: socket.socket, known: int, handle: SemaphoreHandle | None) -> _Link:
        link = _Link(self, end, known, handle)
        self._links.append(link)
        _reader.add(link)
        return link

    def share(self) -> SemaphoreHandle:
        """See `Semaphore.share`."""
        value = self._native.query()
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        handle = SemaphoreHandle(_made=(there.detach(), value))
        self._connect(here, value, handle)
        self.look()
        return handle

    def look(self) -> int | None:
        """Tells the connections the value, and returns it; None if nothing more will come."""
        try:
            value, _, why = self._native.state()
        except KomputeError as error:  # a lost device
            value, why = -1, str(error)
        for link in tuple(self._links):
            link.push(value)
        if why is None:
            return value
        with self._lock:
            if self._over:
                return None
            self._over = True
            links, self._links = self._links, []
        text = why.encode(errors="replace").replace(b"\n", b" ")[:_MOST_TEXT]
        quietly = self._released or not self._native.is_init()  # the connection's end says enough
        for link in links:
            link.say(b"" if quietly else b"fail " + text + b"\n", ends=True)
        return None

    def _watch(self) -> None:
        """The Manager's waiting thread looks when the counter has risen."""
        while (told := self.look()) is not None:
            with suppress(KomputeError):  # it has failed meanwhile
                fence = self._native.at(told + 1)
                if not fence.look(0.0):
                    self._watched = self._service.watch(fence, self._watch)
                    return

    def release(self) -> None:
        """The semaphore's last reference is gone. Submitted work may still signal it."""
        self._released = True
        if self.look() is None:
            self._service.forget(self._watched)

    def receive(self, link: _Link, text: bytes) -> None:
        """A line of a connection."""
        if text == b"":
            if not link.greet():
                self.fail("its handle was used twice: share() gives one for each holder")
        elif text.startswith(b"fail "):
            self.fail(text[5:].decode(errors="replace"))
        elif text.isdigit() and len(text) < 21 and (value := int(text)) < 2**64 - 1:
            link.known = max(link.known, value)
            self._raise_to(value)
        else:
            self.fail(f"a connection of the semaphore sent {text[:40]!r}")

    def _raise_to(self, value: int) -> None:
        while True:
            try:
                _, promised, why = self._native.state()
                if value > promised and why is None:
                    self._native.signal(value)
                break
            except KomputeError as error:
                if not self._native.is_init():
                    break
                # Another thread may have signalled meanwhile.
                if self._native.state()[1] < value:
                    return self.fail(str(error))
        self.look()

    def fail(self, message: str) -> None:
        with suppress(KomputeError):  # destroyed
            self._native.fail(message)
        self.look()


def _require() -> None:
    if os.name != "posix":
        raise UnimplementedError(
            "Semaphores and fences are shared by file descriptors, which this system does not have"
        )


def fence_of_descriptor(native: _native.Semaphore, fd: int) -> _native.Fence:
    """The fence of 1, which is signalled when a duplicate of the descriptor is readable."""
    fence = native.at(1)
    _reader.add(_Awaited(duplicate(fd), native), keeps=True)
    weakref.finalize(fence, look).atexit = False
    return fence


def duplicate(fd: int) -> int:
    """A descriptor of our own for the same. Raises InvalidArgumentError if `fd` is not open, and
    OutOfMemoryError if the process may open no more.
    """
    _require()
    try:
        return os.dup(fd)
    except (OSError, OverflowError) as error:
        if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
            raise OutOfMemoryError(
                f"No file descriptor is left for a duplicate of {fd}: close some, or raise the limit "
                "(ulimit -n)"
            ) from None
        raise InvalidArgumentError(f"{fd} is not an open file descriptor") from None


def look(destroyed: Device | None = None) -> None:
    """Lets go of the descriptors that no fence waits for any more: their Manager was destroyed, or they and
    the work that waited for them are gone.
    """
    _reader.wake()


end = look


_writable: set[int] = set()
"""The ends that this process will write to, or close."""


def descriptor_when(done: concurrent.futures.Future[Any]) -> int:
    """A new descriptor that becomes readable. See `Fence.export_fd`."""
    _require()
    readable, writable = os.pipe()
    _writable.add(writable)
    done.add_done_callback(functools.partial(_tell, writable))
    return readable


def _tell(writable: int, done: concurrent.futures.Future[Any]) -> None:
    try:
        # Writing to a pipe that nobody reads ends a process which has not switched that off.
        if not done.cancelled() and done.exception() is None and not _is_unread(writable):
            os.write(writable, b"\0")
    except BrokenPipeError:
        pass
    finally:
        _writable.discard(writable)
        os.close(writable)


def _is_unread(writable: int) -> bool:
    """Whether the other end of a pipe is closed."""
    look = select.poll()
    look.register(writable, 0)
    return bool(look.poll(0))


def _has_ended(fd: int) -> bool:
    """Whether a connection is closed at its other end, with nothing to read: poll calls that readable."""
    if not stat.S_ISSOCK(os.fstat(fd).st_mode):
        return False
    with socket.socket(fileno=os.dup(fd)) as connection:
        if connection.type != socket.SOCK_STREAM:
            return False
        try:
            return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except ConnectionError:
            return True
        except OSError:  # it listens
            return False


class _Source(Protocol):
    """What the thread reads."""

    def fileno(self) -> int: ...
    def wants(self) -> int: ...
    def ready(self, events: int) -> None: ...
    def forget(self) -> None:
        """In a child process after fork(): closes the descriptor, which is the parent's."""


class _Link:
    """A connection to one other holder. Its lines are values, "fail TEXT", and at first an empty one of the
    holder that got the handle.
    """

    def __init__(
        self, shared: Shared, end: socket.socket, known: int, handle: SemaphoreHandle | None
    ) -> None:
        end.setblocking(False)
        self.known = known  # by both ends
        self._shared = weakref.ref(shared)
        self._handle = None if handle is None else weakref.ref(handle)
        self._greeted = False
        self._end = end
        self._lock = threading.Lock()
        self._value = known
        self._out = b""
        self._ends = False
        self._in = b""

    def fileno(self) -> int:
        return self._end.fileno()

    def wants(self) -> int:
        return select.POLLIN | (select.POLLOUT if self._out else 0)

    def push(self, value: int) -> None:
        """Sends the value, unless the other end knows it."""
        with self._lock:
            if value <= max(self._value, self.known):
                return
            self._value = value
        self._send()

    def say(self, line: bytes, ends: bool = False) -> None:
        """Sends a line; with `ends`, closes then."""
        with self._lock:
            self._out += self._news() + line
            self._ends = ends
        self._send()

    def _news(self) -> bytes:
        if self._value <= self.known:
            return b""
        self.known = self._value
        return b"%d\n" % self.known

    def _send(self) -> None:
        with self._lock:
            try:
                while self._out or (line := self._news()):
                    self._out = self._out or line
                    self._out = self._out[self._end.send(self._out, _FLAGS) :]
            except BlockingIOError:
                return _reader.wake()  # it sends the rest when there is room
            except OSError:
                self._out = b""  # the other end is gone: reading tells
            if not self._ends:
                return
        self.close()

    def ready(self, events: int) -> None:
        if events & select.POLLOUT:
            self._send()
        shared = self._shared()
        if shared is None or events == select.POLLOUT:
            return
        try:
            got = self._end.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            got = b""
        *lines, self._in = (self._in + got).split(b"\n")
        for line in lines:
            shared.receive(self, line)
        if len(self._in) > 2 * _MOST_TEXT:
            shared.fail("a connection of the semaphore sends something that is not a line")
        if not got and self.fileno() >= 0:
            self.close()
            shared.fail(_GONE)

    def greet(self) -> bool:
        """The other end has the handle. False if it is the second one."""
        if self._greeted:
            return False
        self._greeted = True
        # This process must not keep the other end open.
        if self._handle is not None and (handle := self._handle()) is not None:
            handle.close()
        return True

    def close(self) -> None:
        """Closes the connection."""
        _reader.remove(self._end.fileno())
        self._end.close()

    def forget(self) -> None:
        self._lock = threading.Lock()
        if (shared := self._shared()) is not None:
            shared._lock = threading.Lock()
        self._end.close()

    def __del__(self) -> None:
        if self._end.fileno() >= 0:
            self.close()


class _Awaited:
    """A descriptor that a fence waits for."""

    def __init__(self, fd: int, native: _native.Semaphore) -> None:
        self._fd = fd
        self._native = native

    def fileno(self) -> int:
        if self._fd >= 0 and (self._native.is_alone() or not self._native.is_init()):
            self._close()
        return self._fd

    def wants(self) -> int:
        return select.POLLIN

    def ready(self, events: int) -> None:
        good = bool(events & select.POLLIN) and not _has_ended(self._fd)
        self._close()
        with suppress(KomputeError):  # destroyed
            if good:
                self._native.signal(1)
            else:
                self._native.fail("the descriptor was closed at its other end before it was readable")

    def _close(self) -> None:
        _reader.remove(self._fd)
        self.forget()

    def forget(self) -> None:
        fd, self._fd = self._fd, -1
        os.close(fd)


class _Reader:
    """The thread that reads, started on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sources: dict[int, Callable[[], _Source | None]] = {}
        self._thread: threading.Thread | None = None
        self._wakes = -1
        self._woken = -1
        self._ends = False

    def add(self, source: _Source, keeps: bool = False) -> None:
        """Reads it as long as it is alive; with `keeps`, until it is removed."""
        self._sources[source.fileno()] = (lambda: source) if keeps else weakref.ref(source)
        with self._lock:
            if self._thread is None:
                self._woken, self._wakes = os.pipe()
                for fd in (self._woken, self._wakes):
                    os.set_blocking(fd, False)
                # A daemon thread: the interpreter would wait for any other thread before it calls end.
                self._thread = threading.Thread(target=self._run, name="kompute_py connections", daemon=True)
                self._thread.start()
        self.wake()

    def remove(self, fd: int) -> None:
        self._sources.pop(fd, None)
        self.wake()

    def wake(self) -> None:
        if self._wakes >= 0:
            with suppress(OSError):  # it is full: the thread is about to wake
                os.write(self._wakes, b"\0")

    def _run(self) -> None:
        while not self._ends:
            for fd, events in self._waits().poll():
                self._serve(fd, events)

    # Methods of their own, so that the thread keeps no source alive while it waits.
    def _waits(self) -> select.poll:
        waits = select.poll()
        waits.register(self._woken, select.POLLIN)
        for get in list(self._sources.values()):
            source = get()
            if source is not None and (fd := source.fileno()) >= 0:
                waits.register(fd, source.wants())
        return waits

    def _serve(self, fd: int, events: int) -> None:
        if fd == self._woken:
            with suppress(OSError):
                os.read(fd, 1 << 12)
        elif (known := self._sources.get(fd)) and (source := known()) is not None:
            source.ready(events)

    def end(self) -> None:
        """Before the interpreter ends: a daemon thread that takes its lock later is killed."""
        self._ends = True
        self.wake()
        if self._thread is not None:
            self._thread.join()


_FLAGS = getattr(socket, "MSG_NOSIGNAL", 0)
_reader = _Reader()
atexit.register(_reader.end)


def _forget() -> None:
    # Runs in a child process after fork(): the connections are the parent's, and would not end with it.
    global _reader
    old, _reader = _reader, _Reader()
    for get in list(old._sources.values()):
        if (source := get()) is not None:
            source.forget()
    for fd in (old._woken, old._wakes, *_writable):
        if fd >= 0:
            os.close(fd)
    _writable.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
