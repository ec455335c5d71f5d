"""Hot reload: kernels and recordings pick up edits of their shader file.

A `Reloader` belongs to one source. Its users are the kernel of that source, the kernels that `specialize`
derived from it, and the operations that `bind` created from any of them. A new version is adopted in two
steps. The first step creates everything that can
fail: the module, each kernel's pipeline, an algorithm for each operation. The second step switches all users
and cannot fail. So an edit that does not work changes nothing.

No background thread watches files. Watched kernels check their files when they are called. Operations bound
by them have a `pre_eval`, so a sequence with such an operation checks before each submission; other sequences
pay nothing. Running work keeps its version: native recordings own the old algorithm until they are rebuilt.
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
    kind_of,
)
from .._base.file_access import current_folder
from .._base.warn import outside, warn
from .._compilers.compile import path_of
from .._shaders.module import ShaderModule, is_assembly
from .watched_files import WatchedFiles

if TYPE_CHECKING:
    from .._device.device import Device
    from .._shaders.signature import Signature
    from .kernel import Kernel
    from .operation import OpKernel


# These errors are not about the files, so the next check tries again.
_NOT_THE_EDIT = (OutOfMemoryError, DeviceLostError)


class Reloader:
    """The source of kernels, with its users."""

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
        self, manager: Device, source: Any, options: Mapping[str, Any], module: ShaderModule
    ) -> None:
        self._manager = manager
        self._source = source
        self._options = dict(options)
        self._home = current_folder()
        self._module = module
        self._kernels: weakref.WeakSet[Kernel] = weakref.WeakSet()
        self._operations: weakref.WeakSet[OpKernel] = weakref.WeakSet()
        self.error: KomputeError | None = None
        """The error of the current files; None if the version in use is current."""
        self.lock = threading.RLock()
        """Held by users while they run or change, so that no version is adopted meanwhile."""
        self._files = self._watch(module._sought)

    def add(self, user: Kernel) -> None:
        """Adds a kernel that switches with the others."""
        self._kernels.add(user)

    def add_operation(self, operation: OpKernel) -> None:
        """Adds an operation that switches with the others."""
        self._operations.add(operation)

    def look(self) -> None:
        """Adopts the new version if the files changed. An edit that does not work gives one KomputeWarning.

        Raises OutOfMemoryError and DeviceLostError; the next check tries again.
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
                # The error comes first: for a compile error it is a report of several lines.
                warn(f"{where}{error}\nThe last working version stays in use.", again=True)

    def reload(self) -> bool:
        """Adopts the current version of the files; returns whether it differs.

        If it raises, nothing has changed.
        """
        with self.lock:
            return self._take()

    def _watch(self, sought: list[tuple[str, bytes]]) -> WatchedFiles:
        return WatchedFiles((os.path.join(self._home, path), mark) for path, mark in sought)

    def _compile(self) -> ShaderModule:
        source, options = self._source, dict(self._options)
        if current_folder() != self._home:
            path = path_of(source)
            if path is not None:
                source = os.path.join(self._home, path)
            if options.get("include_dirs"):
                options["include_dirs"] = [os.path.join(self._home, d) for d in options["include_dirs"]]
        return ShaderModule(
            source,
            **options,
            name=self._module.name,
            stacklevel=outside() + 1,
            _setting=self._manager._setting,
        )

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
            # Without a traceback, because its frames would keep recorded objects alive. Libraries such as
            # tblib make copies that have one, and errors that led to it.
            self.error = copy.copy(error).with_traceback(None)
            self.error.__cause__ = self.error.__context__ = None
            raise
        self._files = self._watch(sought)
        self.error = None
        return fresh

    def _change_over(self, module: ShaderModule) -> None:
        native = module._on(self._manager._native)
        differences = changed_bindings(self._module.signature, module.signature)
        if differences:
            raise InvalidArgumentError(
                f"The edit changes the bindings, which recordings cannot adopt: {'; '.join(differences)}. "
                "Create a new kernel with mgr.kernel() for them"
            )
        # Everything that can fail.
        kernels = [(kernel, kernel._prepare_version(module, native)) for kernel in list(self._kernels)]
        versions = {id(kernel): version for kernel, version in kernels}
        operations = [
            (operation, operation._prepare_version(versions[id(operation.kernel)]))
            for operation in list(self._operations)
            if operation._is_alive()
        ]
        # Cannot fail.
        for kernel, version in kernels:
            kernel._take_version(version)
        for operation, prepared in operations:
            operation._take_version(*prepared)
        self._module = module


def reloader_for(
    manager: Device, source: Any, options: Mapping[str, Any], module: ShaderModule, watch: bool
) -> Reloader | None:
    """A Reloader if the source is in files, by itself or through its includes; else None.

    Raises InvalidArgumentError if the source is not in a file and should be watched.
    """
    is_text = isinstance(source, str) and not is_assembly(source)
    if (is_text or isinstance(source, os.PathLike)) and module._sought:
        return Reloader(manager, source, options, module)
    if to_flag(watch, "watch"):
        raise InvalidArgumentError(
            f"watch=True needs a shader in a file: {module.name} is "
            f"{'text that includes no file' if is_text else f'{kind_of(source)}'}. Give its path"
        )
    return None


def not_in_a_file(name: str) -> FailedPreconditionError:
    """The error of `reload` for kernels without a file."""
    return FailedPreconditionError(
        f"{name} was not created from a file, so it cannot be reloaded. Give mgr.kernel() a path"
    )


def changed_bindings(old: Signature, new: Signature) -> list[str]:
    """Describes the differences of the bindings. Accesses may differ, because barriers are rebuilt."""
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
