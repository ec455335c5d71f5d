"""What ``print(kernel)`` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .kernel import Kernel


def describe(kernel: Kernel) -> str:
    """The signature, and below it what else there is to know for a call."""
    signature = kernel.signature
    names = {c["id"]: c["name"] or f"constant {c['id']}" for c in signature.spec_constants}
    sizes = [
        f"{size} ({names[i]})" if i in names else str(size)
        for size, i in zip(kernel.local_size, signature.local_size_ids, strict=True)
    ]
    lines = [signature.text(kernel.name), f"  local size  {' x '.join(sizes)}"]
    for p in signature.parameters:
        gaps = f" ({p.padded_stride} bytes apart)" if p.padded_stride else ""
        lines.append(f"  binding     {p.set}.{p.binding} {p.name}: {p.kind}, {p.type}{gaps}, {p.access}")
    if signature.push is not None:
        lines.append(f"  push        {signature.push.name}: {signature.push.size} bytes")
    lines += [f"  struct      {text}" for text in signature.structs()]
    for name, value in kernel.spec_constants.items():
        lines.append(f"  constant    {name} = {value}")
    if len(kernel.entry_points) > 1:
        others = [name for name in kernel.entry_points if name != signature.entry]
        lines.append(f"  entry       {signature.entry}; the module has {', '.join(others)}, too")
    needs = [c for c in signature.capabilities if c != "Shader"]
    if needs:
        lines.append(f"  needs       {', '.join(needs)}")
    return "\n".join(lines)
