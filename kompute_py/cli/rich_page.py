"""The text of ``kompute-py info`` with colours."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table


class RichPage:
    """`Page` on a console of rich."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def line(self, label: str, text: str, style: str = "") -> None:
        """One line; `style` is the label's."""
        shown = f"[{style}]{escape(label)}[/{style}]" if style else escape(label)
        self._console.print(f"{shown}{escape(text)}", highlight=False)

    def device(self, title: str, is_default: bool, note: str, rows: Sequence[tuple[str, str]]) -> None:
        """A device, and its properties with their names."""
        end = "  [green]used by default[/green]" if is_default else ""
        if note:
            end = f"  {escape(note)}"
        self._console.print()
        self._console.print(f"[bold]{escape(title)}[/bold]{end}", highlight=False)
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, text in rows:
            table.add_row(f"   {name}", escape(text))
        self._console.print(table, highlight=False)
