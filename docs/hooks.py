"""Makes the pages of the site that no file holds, and refuses a site that refers to anything outside itself.

The home page is README.md; the options of the commands come from their parsers, the reference of the public names from
their docstrings. ``mkdocs.yml`` names this file.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
os.environ["COLUMNS"] = "100"

OUTSIDE = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?(?:src|data)=["']?(?:https?:)?//[^"'\s>]*"""
    r"""|<link\b(?![^>]*rel=["']?(?:canonical|next|prev))[^>]*?href=["']?(?:https?:)?//[^"'\s>]*"""
    r"""|(?:@import|url\()\s*["']?(?:https?:)?//[^"')\s]*"""
)
"""What a browser would fetch from elsewhere when it opens a page; a link that a reader may follow is none of it."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the home page, the changelog and a page of reference for each table of public names."""
    made = {"index.md": _page_of_the_site("README.md"), "changelog.md": _page_of_the_site("CHANGELOG.md")}
    for title, names in _public_names():
        listed = "\n\n".join(f"::: {name}" for name in names)
        made[f"reference/{_slug(title)}.md"] = f"# {title}: public names\n\n[All public names](../api.md)\n\n{listed}\n"
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write what the repository's pages leave to the code."""
    path = page.file.src_uri
    if path == "command-line.md":
        return markdown.replace("<!-- options of all commands -->", "".join(_commands()))
    if path == "api.md":
        return re.sub(r"^\| `([\w.]+)`", r"| [`\1`][\1]", markdown, flags=re.M)
    return re.sub(r"```mermaid\n(.*?)```\n", _arrows, markdown, flags=re.S)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Remove the roles of Sphinx, which docstrings have for editors."""
    return re.sub(r":(?:attr|class|data|exc|func|meth|mod):(?=<code>)", "", content)


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site of which a page or style sheet refers to another address."""
    found = [
        f"{path.relative_to(config.site_dir)}: {reference.group()}"
        for path in sorted(Path(config.site_dir).rglob("*"))
        if path.suffix in (".html", ".css")
        for reference in OUTSIDE.finditer(path.read_text(encoding="utf-8"))
    ]
    if found:
        raise PluginError("the site must hold all that its pages show, but they refer to\n" + "\n".join(found))


def _page_of_the_site(name: str) -> str:
    """Read a page of the repository's root, with links as they lead from docs/."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.sub(r"\]\(docs/", "](", text).replace("](CHANGELOG.md)", "](changelog.md)")


def _public_names() -> Iterator[tuple[str, list[str]]]:
    """Yield each heading of docs/api.md with the first name of each row below it."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for title, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S):
        yield title, re.findall(r"^\| `([\w.]+)`", body, flags=re.M)


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")


def _commands() -> Iterator[str]:
    from syncheck.cli import parser

    (subparsers,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in subparsers.choices.items():
        yield f'### {name}\n\n<pre class="help"><code>{html.escape(command.format_help())}</code></pre>\n\n'


def _arrows(drawn: re.Match[str]) -> str:
    """Return a flowchart as a table of its arrows: drawing it would take a script of several megabytes."""
    labels = {name: re.sub(r"<br>", ": ", label) for name, label in re.findall(r'(\w+)\["(.*?)"\]', drawn[1])}
    arrows = re.findall(r'^ *(\w+)(?:\[".*?"\])? -->\|"(.*?)"\| (\w+)', drawn[1], flags=re.M)
    rows = [f"| {labels[start]} | {passed} | {labels[end]} |" for start, passed, end in arrows]
    return "\n".join(["| from | what is passed | to |", "| --- | --- | --- |", *rows, ""])
