"""From arguments to a launch, or to a refusal that says the line to add.

A launch is right if running more invocations would change nothing. The rules:

1. *Which grid.* The grid follows the first array or image that the code writes (`grid`). Code that counts
   one axis (``gl_GlobalInvocationID.x``) runs one invocation for each element; code that counts several
   runs the reversed shape; code that counts none runs one workgroup. If the number of axes differs, or a
   workgroup's number is used as it is, ``grid=`` or ``groups=`` has to be given.
2. *Whether it is right* (`grid.judge`). No invocation beyond the default grid may write the array:
   because its element lies beyond the end (``b[i]``, ``b[2 * i + k]``, ``b[n - 1 - i]``), or because of a
   comparison in the code (``if (i < n)``). On several axes, the elements may also be the rows of the
   shape: ``b[y * w + x]``. Any other index (``b[i / 2]``, ``b[i & 3]``, ``b[place[i]]``, ``b[0]``) does
   not tell the number of invocations. The default grid then runs only if another array has one element,
   ``a[i]``, for each of its invocations; otherwise ``grid=`` has to be given.
3. *Rows* (`beyond`). A grid is rounded up to whole groups. If an axis does not fill its groups, and
   invocations beyond it would write elements of others (x = 20 of ``b[y * 20 + x]``), the code has to
   compare its number on that axis: ``if (x >= w) return;``. This also holds for grids that are given.
4. *Sizes* (`sizes`). Arrays that the code uses at the same index belong together: one that ends before
   the invocations do is refused.
5. *Outputs* (`outputs`) that are left out have the shape of the arguments at the same index, or that of
   the grid.

Indices and bounds are followed as sums of products of the invocation's number with what the host knows:
constants, push constants, lengths, sizes (`values`). A number from memory counts as unknown, but not as
negative unless it is signed. `code` reads them, with the comparisons that guard each access, from
optimized SPIR-V (native/core/spirv/reach.hpp).
"""
