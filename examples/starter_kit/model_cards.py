"""Sections of model cards that a script measures; the others are written by hand."""

from __future__ import annotations

import re
from pathlib import Path


def write_section(card: Path, title: str, body: str) -> None:
    """Replace the section ``## title`` of a card, or append it where the card has none."""
    text = card.read_text(encoding="utf-8") if card.exists() else "# Model card\n"
    section = f"## {title}\n\n{body.strip()}\n"
    pattern = rf"^## {re.escape(title)}\n.*?(?=^## |\Z)"
    if re.search(pattern, text, flags=re.M | re.S):
        text = re.sub(pattern, lambda _: section + "\n", text, flags=re.M | re.S)
    else:
        text += "\n" + section
    card.write_text(text.rstrip() + "\n", encoding="utf-8")
