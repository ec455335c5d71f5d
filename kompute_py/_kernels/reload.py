"""Hot reload: what is made of a shader file goes on with the file's new version.

A `Reloader` belongs to one source. The kernel that was made of it, the kernels that `specialize` made of that one, and the
operations that `bind` made of any of them are its users. A new version is taken in two steps: first everything is made that
could fail (the module, each kernel's pipeline, an algorithm for each operation), then all users change over, which cannot
fail. So an edit that does not work changes nothing at all.

Nobody waits for files in the background. Watched kernels look at theirs when they are called, and operations bound by them
have a `pre_eval`, so that a sequence that holds one looks before each submission; sequences that hold none pay nothing. What
runs keeps what it runs with: native recordings own the old algorithm until they are built anew.
"""

from __future__ import annotations

import copy
import os
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._base.arrays import to_flag
from .._base.errors import (
    DeviceLostError,
    FailedPreconditionError,
    InvalidArgumentError,
    KomputeError,
    NotFoundError,
    OutOfMemoryError,
    ShaderCompileError,
)
from .._base.warn import outside, warn
from .._compilers.compile import path_of
from .._compilers.watched_files import WatchedFiles
from .._shaders.module import ShaderModule, is_assembly
from .._shaders.plan import plan_of

if TYPE_CHECKING:
    from .._manager.manager import Manager
    from .._shaders.signature import Signature
    from .kernel import Kernel
    from .operation import OpKernel


# Says nothing about the files: the next look tries again.
_NOT_THE_EDIT = (OutOfMemoryError, DeviceLostError)


class Reloader:
    """The source of kernels, and those who use it."""

    __slots__ = (
        "_files",
        "_home",
        "_kernels",
        "_manager",
        "_module",
        "_operations",
        "_options",
        "_source",
        "error",
        "lock",
    )

    def __init__(
        self, manager: Manager, source: Any, options: Mapping[str, Any], module: ShaderModule
    ) -> None:
        self._manager = manager
        self._source = source
        self._options = dict(options)
        self._home = os.getcwd()
        self._module = module
        self._kernels: weakref.WeakSet[Kernel] = weakref.WeakSet()
        self._operations: weakref.WeakSet[OpKernel] = weakref.WeakSet()
        self.error: KomputeError | None = None
        """What is wrong with the files as they are now; None where the version in use is theirs."""
        self.lock = threading.RLock()
        """Held by users while they run or change: a version is never taken in the middle."""
        self._files = self._watch(module._sought)

    def add(self, user: Kernel) -> None:
        """A kernel that changes over with the others."""
        self._kernels.add(user)

    def add_operation(self, operation: OpKernel) -> None:
        """An operation that changes over with the others."""
        self._operations.add(operation)

    def look(self) -> None:
        """Takes the files' new version if they have changed. An edit that does not work is a KomputeWarning, once.

        Raises OutOfMemoryError and DeviceLostError, and tries again the next time.
        """
        with self.lock:
            if not self._files.changed() or not self._manager.is_init():
                return
            try:
                self._take()
            except _NOT_THE_EDIT:
                raise
            except KomputeError as error:
                where = "" if isinstance(error, ShaderCompileError) else f"{self._module.name}: "
                # Its own words first: of a compile error they are a report of many lines.
                warn(f"{where}{error}\nThe last version that worked goes on.", again=True)

    def reload(self) -> bool:
        """Takes the files' version of now. Whether it is another. Raises what is wrong with it; nothing has changed then."""
        with self.lock:
            return self._take()

    def _watch(self, sought: list[tuple[str, bytes]]) -> WatchedFiles:
        return WatchedFiles((os.path.join(self._home, path), mark) for path, mark in sought)

    def _compile(self) -> ShaderModule:
        source, options = self._source, dict(self._options)
        if os.getcwd() != self._home:
            path = path_of(source)
            if path is not None:
                source = os.path.join(self._home, path)
            if options.get("include_dirs"):
                options["include_dirs"] = [os.path.join(self._home, d) for d in options["include_dirs"]]
        return ShaderModule(source, **options, name=self._module.name, stacklevel=outside() + 1)

    def _take(self) -> bool:
        sought: list[tuple[str, bytes]] = []
        try:
            module = self._compile()
            sought = module._sought
            last = self._module
            fresh = (module._spirv, module._declared) != (last._spirv, last._declared)
            if fresh:
                self._change_over(module)
        except _NOT_THE_EDIT:
            raise
        except KomputeError as error:
            if isinstance(error, ShaderCompileError) and error._sought:
                sought = error._sought
            elif isinstance(error, NotFoundError) and not sought:
                sought = [(os.fspath(self._source), b"")]
            if sought:
                self._files = self._watch(sought)
            self.error = copy.copy(
                error
            )  # with no traceback, whose frames would hold on to what was recorded
            raise
        self._files = self._watch(sought)
        self.error = None
        return fresh

    def _change_over(self, module: ShaderModule) -> None:
        native = self._manager._native.shader(module.to_spirv(), module.entry, module._declared)
        plan_of(native)
        differences = changed_bindings(self._module.signature, module.signature)
        if differences:
            raise InvalidArgumentError(
                f"The edit changes the bindings, which what is recorded cannot follow: {'; '.join(differences)}. "
                "For these bindings make the kernel anew with mgr.kernel()"
            )
        # What can fail.
        kernels = [(kernel, kernel._prepare_version(module, native)) for kernel in list(self._kernels)]
        versions = {id(kernel): version for kernel, version in kernels}
        operations = [
            (operation, operation._prepare_version(versions[id(operation.kernel)]))
            for operation in list(self._operations)
            if operation._is_alive()
        ]
        # What cannot.
        for kernel, version in kernels:
            kernel._take_version(version)
        for operation, prepared in operations:
            operation._take_version(*prepared)
        self._module = module


def reloader_for(
    manager: Manager, source: Any, options: Mapping[str, Any], module: ShaderModule, watch: bool
) -> Reloader | None:
    """A Reloader where the source is in files, wholly or by its includes; None where it is not.

    Raises InvalidArgumentError where it is not and should be watched.
    """
    is_text = isinstance(source, str) and not is_assembly(source)
    if (is_text or isinstance(source, os.PathLike)) and module._sought:
        return Reloader(manager, source, options, module)
    if to_flag(watch, "watch"):
        raise InvalidArgumentError(
            f"watch=True needs a shader in a file: {module.name} is "
            f"{'text that includes no file' if is_text else f'a {type(source).__name__}'}. Give its path"
        )
    return None


def not_in_a_file(name: str) -> FailedPreconditionError:
    """What `reload` of any other kernel raises."""
    return FailedPreconditionError(
        f"{name} was not made from a file: there is nothing to reload. Give mgr.kernel() a path"
    )


def changed_bindings(old: Signature, new: Signature) -> list[str]:
    """What of a shader's bindings is other than before, in words. Accesses may differ: barriers are made anew."""
    before = {(p.set, p.binding): p for p in old.parameters}
    after = {(p.set, p.binding): p for p in new.parameters}
    found = []
    for place in sorted(before.keys() | after.keys()):
        where = f"binding {place[0]}.{place[1]}"
        was, now = before.get(place), after.get(place)
        if was is None or now is None:
            p, what = (now, "is new") if was is None else (was, "is gone")
            assert p is not None
            found.append(f"{where} ({p.type} {p.name}) {what}")
        elif was.name != now.name:
            found.append(f"{where} is called {now.name!r}, not {was.name!r}")
        elif was.kind != now.kind:
            found.append(f"{where} ({was.name}) is a {now.kind}, not a {was.kind}")
        elif was.image != now.image and was.type == now.type and was.image and now.image:
            found.append(
                f"{where} ({was.name}) has the format {now.image['format']}, not {was.image['format']}"
            )
        elif was.descriptors != now.descriptors or was.type != now.type:
            found.append(f"{where} ({was.name}) is {now.type}, not {was.type}")
        elif _shape(was.layout) != _shape(now.layout):
            found.append(f"{where} ({was.name}, {was.type}) has another layout in memory")
    return found


def _shape(layout: Mapping[str, Any]) -> Any:
    """A layout without the names in it."""
    return (
        [(key, value) for key, value in layout.items() if key not in ("name", "type_name", "members")],
        [_shape(member) for member in layout["members"]],
    )
