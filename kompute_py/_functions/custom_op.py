"""CustomOp: the class that users derive from, and the function that it becomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, overload

from .._base.errors import ArgumentTypeError, UnimplementedError, kind_of, shown
from .._custom.declaration import parse
from .._custom.selection import FunctionSelection
from .function import Function
from .library import OpLibrary

if TYPE_CHECKING:
    from .._custom.builder import FunctionBuilder

Operation = Function  # its older name


class CustomOp:
    """Base of custom operations. A class derives from it and is registered, which makes it a callable.

    ::

        @kp.CustomOp.register
        class scale(kp.CustomOp):
            "Each element of `x` times `factor`."

            signature = "scale(Tensor x, float factor=2.0) -> Tensor"

            def select(self, ksel):
                x = ksel.arg_tensor("x")
                ksel.arg_float("factor")
                ksel.return_new_tensor(x.shape, x.dtype)

            def generate(self, ksel, kb):
                kb.yield_results("x_load(i) * factor")

        scale(np.arange(4, dtype=np.float32))

    `select` decides for each call: what specializes the kernels, and what the results are. `generate` writes
    the kernels, once for each specialization. `eager_execute` may answer in Python instead: it gets the
    arguments as `select` does, and returns the results, or NotImplemented to run the kernels.

    >>> @kp.CustomOp.register
    ... class add_one(kp.CustomOp):
    ...     signature = "add_one(Tensor x) -> Tensor"
    ...     def select(self, ksel):
    ...         x = ksel.arg_tensor("x")
    ...         ksel.return_new_tensor(x.shape, x.dtype)
    ...     def generate(self, ksel, kb):
    ...         kb.yield_results("x_load(i) + 1")
    >>> add_one(mgr.tensor([0, 1, 2])).tolist()
    [1.0, 2.0, 3.0]
    """

    __module__ = "kompute_py"

    signature: ClassVar[str]
    """Name, parameters and results: ``"softmax(Tensor x, int axis=-1) -> Tensor"``."""
    single_dispatch: ClassVar[bool] = False
    """Whether one dispatch is all that `generate` may write."""

    reads_parts: ClassVar[bool] = False
    """Whether the kernels find the elements of parts of tensors that are not dense, such as ``t[:, 0]``, with
    the ``offset`` and ``strides`` of a `TensorArg`. Else such arguments are copied."""

    makes_images: ClassVar[bool] = False
    """Whether results are Images if an argument is one, where an image can have their shape and dtype. Else
    they are Tensors."""

    in_place: ClassVar[bool] = False
    """Whether results may be in the memory of dense arguments of their shape: no invocation reads an element
    that another one writes. Else arguments that share memory with `out` are copied."""

    takes_structs: ClassVar[bool] = False
    """Whether arguments may have structured dtypes. The kernels move such elements whole, from ``x_load`` to
    ``y_store``, and cannot look into them. Else such arguments are refused."""

    _eager: ClassVar[bool] = False
    _has_variants: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._eager = cls.eager_execute is not CustomOp.eager_execute
        cls._has_variants = cls.variants is not CustomOp.variants

    def select(self, ksel: FunctionSelection) -> None:
        """Declares each argument and the results of a call on `ksel`.

        Raises UnimplementedError unless a subclass defines it.
        """
        raise UnimplementedError(f"{type(self).__name__} does not define select(self, ksel)")

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes the kernels of a specialization with `kb`.

        Raises UnimplementedError unless a subclass defines it.
        """
        raise UnimplementedError(f"{type(self).__name__} does not define generate(self, ksel, kb)")

    def variants(self, ksel: FunctionSelection) -> list[str]:
        """The ways to generate the kernels for this call that are worth a try on this device, the best guess
        first. `generate` finds the chosen one in ``ksel.variant``.

        ::

            def variants(self, ksel):
                if ksel.device is None or ksel.device["type"] == "cpu":
                    return ["run"]
                return ["subgroups", "shared"] if ksel.has("computeFullSubgroups") else ["shared"]

            def generate(self, ksel, kb):
                if ksel.variant == "run":
                    ...

        If there are several, the first call with tensors of such dtypes, axes and about such size measures
        each on copies of what it writes (the option `tuning` says when), and keeps the choice for later calls
        and processes; `kp.tune` measures at leisure. ``my_op.variant("run")`` is the operation with one
        variant. `ksel.device` is None for portable programs: return what any device can run.

        By default there is one, "". Raises ArgumentTypeError unless `ksel` is a FunctionSelection.
        """
        if not isinstance(ksel, FunctionSelection):
            raise ArgumentTypeError(f"variants takes a FunctionSelection, not {kind_of(ksel)}")
        return [ksel.variant]

    def trials(self, ksel: FunctionSelection) -> list[str]:
        """Those of `variants` that the first call of a size measures, by default all of them. Leave out what
        works but takes too long to try; `kp.tune` measures all."""
        return self.variants(ksel)

    def eager_execute(self, *arguments: Any) -> Any:
        """The results of a call, computed in Python, or NotImplemented to run the kernels (the default)."""
        return NotImplemented

    @overload
    @staticmethod
    def register(op_class: Callable[[], CustomOp], /) -> Function: ...
    @overload
    @staticmethod
    def register(*, library: OpLibrary | None = None) -> Callable[[Callable[[], CustomOp]], Function]: ...
    @staticmethod
    def register(op_class: Any = None, /, *, library: OpLibrary | None = None) -> Any:
        """Decorates a class that derives from CustomOp: makes the callable. With `library`, the callable is
        also found there, by its name.

        Raises SignatureError if the signature cannot be read, ArgumentTypeError for anything but such a
        class, FailedPreconditionError if the library has an operation of that name.
        """

        if library is not None and not isinstance(library, OpLibrary):
            raise ArgumentTypeError(f"register: library is {kind_of(library)}; give one: kp.op_library(name)")

        def make(given: Any) -> Function:
            if not isinstance(given, type) or not issubclass(given, CustomOp) or given is CustomOp:
                raise ArgumentTypeError(
                    f"register decorates a class that derives from kp.CustomOp, not {shown(given)}"
                )
            text = getattr(given, "signature", None)
            if text is None:
                raise ArgumentTypeError(
                    f'{given.__name__} has no signature: signature = "{given.__name__}(Tensor x) -> Tensor"'
                )
            function = Function(given(), parse(text))
            if library is not None:
                library._add(function)
            return function

        return make if op_class is None else make(op_class)
