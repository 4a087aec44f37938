"""The pages that docs/hooks.py makes: every option of every command, and no reference to another address."""

import importlib.util
from types import SimpleNamespace

import pytest
from boundaries import ROOT
from mkdocs.exceptions import PluginError

from syncheck.cli import COMMANDS


@pytest.fixture
def hooks(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")  # which the hooks set
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_line_page_has_the_help_of_every_command(hooks):
    page = SimpleNamespace(file=SimpleNamespace(src_uri="command-line.md"))
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    made = hooks.on_page_markdown(text, page, None, None)
    for name in COMMANDS:
        assert f"### {name}\n" in made and f"usage: syncheck {name} " in made
    assert "--fail-under SCORE" in made


@pytest.mark.parametrize(
    "fetched", ['<script src="https://x.org/a.js">', "<img src=//x.org/a.png>", "@import '//x.org'"]
)
def test_a_site_that_fetches_from_elsewhere_is_refused(hooks, tmp_path, fetched):
    (tmp_path / "index.html").write_text('<a href="https://x.org">a link</a><img src="a.png">', encoding="utf-8")
    config = SimpleNamespace(site_dir=str(tmp_path))
    hooks.on_post_build(config)
    (tmp_path / "index.html").write_text(fetched, encoding="utf-8")
    with pytest.raises(PluginError, match="index.html"):
        hooks.on_post_build(config)
