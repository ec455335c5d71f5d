"""Operations as users write them, with the public interface only."""

from __future__ import annotations

import kompute_py as kp


@kp.CustomOp.register
class softmax(kp.CustomOp):
    """The softmax of `x` along an axis: exp(x - max) over its sum."""

    signature = "softmax(Tensor x, int axis=-1) -> Tensor"
    in_place = True  # an invocation reads its row before it writes it

    def select(self, ksel):
        x = ksel.arg_tensor("x")
        axis = ksel.attr_int("axis").v
        if not -x.ndim <= axis < x.ndim:
            raise kp.InvalidArgumentError(f"softmax: x has {x.ndim} axes; axis is {axis}")
        if x.shape[axis] > 2**20:  # drivers of processors end longer loops
            raise kp.InvalidArgumentError(f"softmax: axis {axis} has {x.shape[axis]} elements, above 2**20")
        if x.dtype.kind in "biuc":
            raise kp.ArgumentTypeError(f"softmax: x is of {x.dtype}; give floats")
        ksel.return_new_tensor(x.shape, x.dtype)

    def generate(self, ksel, kb):
        x = kb.arg_value("x")
        axis = ksel.attribute("axis") % x.ndim
        kb.groups(x.size // x.shape[axis])
        kb.declare("shared float part[64];")
        kb.emit(f"""
            uint lane = gl_LocalInvocationID.x, n = x_dim{axis}, step = x_stride{axis};
            uint first = gl_WorkGroupID.x / step * step * n + gl_WorkGroupID.x % step;
            float most = float(x_load(first)), sum = 0;
            for (uint k = lane; k < n; k += 64) most = max(most, float(x_load(first + k * step)));
            part[lane] = most;
            barrier();
            for (uint other = 0; other < 64; ++other) most = max(most, part[other]);
            barrier();
            for (uint k = lane; k < n; k += 64) sum += exp(float(x_load(first + k * step)) - most);
            part[lane] = sum;
            barrier();
            sum = 0;
            for (uint other = 0; other < 64; ++other) sum += part[other];
            for (uint k = lane; k < n; k += 64)
                result_store(first + k * step, exp(float(x_load(first + k * step)) - most) / sum);
        """)


@kp.CustomOp.register
class compact(kp.CustomOp):
    """The elements of `x` where `keep` is true, in their order, at the front of the first result, zeros after
    them; and how many they are.
    """

    signature = "compact(Tensor x, Tensor keep) -> (Tensor values, Tensor count)"

    def select(self, ksel):
        x, keep = ksel.arg_tensor("x"), ksel.arg_tensor("keep")
        if x.ndim != 1 or keep.shape != x.shape:
            raise kp.InvalidArgumentError(
                f"compact: x and keep have one axis of one length, not the shapes {x.shape} and {keep.shape}"
            )
        ksel.return_new_tensor(x.shape, x.dtype)
        ksel.return_new_tensor((), "uint32")

    def generate(self, ksel, kb):
        x, block = kb.arg_value("x"), 4096
        blocks = kb.largest(kb.ceil_div(x.size, block), 1)  # one for the count, also of nothing
        kb.scratch("counts", blocks, "uint32")
        # The blocks that keep something, and where their elements begin in the result.
        kb.scratch("full", blocks, "uint32")
        kb.scratch("starts", blocks, "uint32")
        todo = kb.scratch("todo", 4, "uint32")  # groups of the last dispatch, and the number of full blocks
        kb.begin_dispatch("count")
        kb.grid(blocks)
        kb.emit(f"""
            uint b = gl_GlobalInvocationID.x, n = 0;
            if (b >= counts_size) return;
            for (uint k = b * {block}; k < min(x_size, (b + 1) * {block}); ++k) {{
                n += keep_load(k) ? 1 : 0;
                values_store(k, {x.type}(0));
            }}
            counts_store(b, n);
        """)
        kb.begin_dispatch("plan")
        kb.groups(1)
        kb.emit("""
            if (gl_GlobalInvocationID.x > 0) return;
            uint all = 0, blocks = 0;
            for (uint b = 0; b < counts_size; ++b) {
                if (counts_load(b) == 0) continue;
                full_store(blocks, b);
                starts_store(blocks++, all);
                all += counts_load(b);
            }
            count_store(0, all);
            todo_store(0, min((blocks + 63) / 64, 65535)); todo_store(1, 1); todo_store(2, 1);
            todo_store(3, blocks);
        """)
        kb.begin_dispatch("move")
        kb.groups(indirect=todo)
        kb.emit(f"""
            for (uint i = gl_GlobalInvocationID.x; i < todo_load(3); i += gl_NumWorkGroups.x * 64) {{
                uint at = starts_load(i), first = full_load(i) * {block};
                for (uint k = first; k < min(x_size, first + {block}); ++k)
                    if (keep_load(k)) values_store(at++, x_load(k));
            }}
        """)


@kp.CustomOp.register
class bilateral(kp.CustomOp):
    """A picture (height, width): each pixel is the mean of those near it and like it."""

    signature = "bilateral(Tensor x, int radius=2, float sigma_space=2.0, float sigma_value=0.1) -> Tensor"

    def select(self, ksel):
        x = ksel.arg_tensor("x")
        if x.ndim != 2:
            raise kp.InvalidArgumentError(
                f"bilateral: x is a picture (height, width), not of shape {x.shape}"
            )
        ksel.attr_int("radius")
        ksel.arg_float("sigma_space")
        ksel.arg_float("sigma_value")
        ksel.return_new_tensor(x.shape, x.dtype)

    def generate(self, ksel, kb):
        x, radius = kb.arg_value("x"), ksel.attribute("radius")
        kb.workgroup(8, 8)
        kb.grid(x.shape[1], x.shape[0])
        kb.declare("float weight(float d, float sigma) { return exp(-d * d / (2.0 * sigma * sigma)); }")
        kb.emit(f"""
            ivec2 p = ivec2(gl_GlobalInvocationID.xy), size = ivec2(x_dim1, x_dim0);
            if (p.x >= size.x || p.y >= size.y) return;
            float centre = x_load(x_at(p.y, p.x)), sum = 0.0, weights = 0.0;
            for (int dy = -{radius}; dy <= {radius}; ++dy)
                for (int dx = -{radius}; dx <= {radius}; ++dx) {{
                    ivec2 q = clamp(p + ivec2(dx, dy), ivec2(0), size - 1);
                    float v = x_load(x_at(q.y, q.x));
                    float w = weight(length(vec2(dx, dy)), sigma_space) * weight(v - centre, sigma_value);
                    sum += w * v;
                    weights += w;
                }}
            result_store(x_at(p.y, p.x), sum / weights);
        """)
