"""What the tests of the compiler share: shaders, and running one."""

from __future__ import annotations

import kompute_py as kp

HEAD = (
    "#version 450\n"
    "layout(local_size_x = 1) in;\n"
    "layout(set = 0, binding = 0) buffer Data { float data[]; };\n"
)
HLSL = """RWStructuredBuffer<float> target : register(u0);
[numthreads(1, 1, 1)] void fill(uint3 id : SV_DispatchThreadID) { target[id.x] = 7; }
"""


def shader(body: str, before: str = "") -> str:
    return f"{HEAD}{before}\nvoid main() {{ {body} }}\n"


def run(mgr: kp.Manager, spirv: bytes, size: int = 1) -> list[float]:
    tensor = mgr.zeros(size)
    algorithm = mgr.algorithm([tensor], spirv)
    mgr.sequence().record(kp.OpSyncDevice([tensor])).record(kp.OpAlgoDispatch(algorithm)).record(
        kp.OpSyncLocal([tensor])
    ).eval()
    return tensor.numpy().tolist()
