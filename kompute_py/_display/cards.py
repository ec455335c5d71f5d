"""Representations of objects in notebooks, as HTML in the colours of the theme."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from .._base.text import binary_size
from . import graph

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .._device.device import Device
    from .._shaders.signature import Signature


def manager_card(manager: Device) -> str:
    """The device, and how much of it the Manager uses."""
    info = manager._info
    rows = [
        ("type", info["type"]),
        ("vendor", info["vendor_name"]),
        ("driver", f"{info['driver_name']} {info['driver_version']}"),
        ("Vulkan", info["api_version"]),
        ("device memory", binary_size(info["device_local_bytes"])),
        ("subgroups of", str(info["subgroup_size"])),
        (
            "largest workgroup",
            f"{info['max_work_group_invocations']} invocations, {times(info['max_work_group_size'])}",
        ),
    ]
    title = f"Manager: device {info['index']}, {info['device_name']}"
    if not manager.is_init():
        return card(title, rows, "destroyed")
    native = manager._native
    rows.append(("queues", str(native.queue_count)))
    rows.append(("validation", "on" if native.validation else "off"))
    heaps = manager.memory.heaps
    rows.append(("memory used", binary_size(sum(heap.used for heap in heaps))))
    rows.append(("memory reserved", binary_size(sum(heap.reserved for heap in heaps))))
    return card(title, rows)


def kernel_card(
    name: str, signature: Signature, constants: Mapping[str, Any], error: Exception | None
) -> str:
    """A kernel's signature, with bindings, push constants and the values of specialization constants."""
    bindings = [
        (f"{p.set}.{p.binding}", p.name, p.type, p.kind, p.access if p.used else "unused")
        for p in signature.parameters
    ]
    table = _table(("binding", "name", "type", "kind", "access"), bindings) if bindings else ""
    rows = [("local size", times(signature.local_size))]
    if signature.push is not None:
        rows.append(("push constants", f"{', '.join(signature.push.names)} ({signature.push.size} bytes)"))
    rows.extend((f"constant {name}", str(value)) for name, value in constants.items())
    needs = [c for c in signature.capabilities if c != "Shader"]
    if needs:
        rows.append(("needs", ", ".join(needs)))
    if error is not None:
        rows.append(("error", str(error)))
    return card(f"Kernel {signature.text(name)}", rows, "", table)


def sequence_bundle(native: graph.Recorded) -> dict[str, str]:
    """The graph by MIME type. HTML is left out, because front ends that draw Mermaid would prefer it.

    JupyterLab 4.1 and newer, nbconvert and GitHub draw Mermaid in Markdown; others show it as a block of
    code.
    """
    drawn = graph.graph_of(native)
    return {
        "text/plain": graph.as_text(drawn),
        "text/markdown": graph.as_markdown(drawn),
        "text/vnd.mermaid": graph.mermaid(drawn),
    }


def card(title: str, rows: list[tuple[str, str]], note: str = "", body: str = "") -> str:
    """A box with a title, named values, a drawing (`body`, HTML) and a remark.

    Everything but `body` is escaped.
    """
    named = "".join(
        f'<div style="opacity:.7">{html.escape(name)}</div><div>{html.escape(value)}</div>'
        for name, value in rows
    )
    parts = [f'<div style="font-weight:600;margin-bottom:4px">{html.escape(title)}</div>']
    if named:
        parts.append(
            f'<div style="display:grid;grid-template-columns:max-content auto;column-gap:16px">{named}</div>'
        )
    if body:
        parts.append(f'<div style="margin-top:6px">{body}</div>')
    if note:
        parts.append(f'<div style="margin-top:4px;opacity:.7;font-size:85%">{html.escape(note)}</div>')
    box = (
        "display:inline-block;border:1px solid rgba(128,128,128,.4);border-radius:6px;"
        "padding:8px 12px;max-width:100%"
    )
    return f'<div style="{box}">{"".join(parts)}</div>'


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    def row(cells: tuple[str, ...], tag: str) -> str:
        return (
            "<tr>"
            + "".join(f'<{tag} style="text-align:left">{html.escape(c)}</{tag}>' for c in cells)
            + "</tr>"
        )

    return f"<table>{row(head, 'th')}{''.join(row(r, 'td') for r in rows)}</table>"


def times(numbers: Any) -> str:
    return " × ".join(map(str, numbers))
