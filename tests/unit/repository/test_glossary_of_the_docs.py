"""docs/glossary.md is made from the console's glossary: the two say the same."""

from __future__ import annotations

from pathlib import Path

from ops_ui.console.base import glossary

ROOT = Path(__file__).parents[3]


def test_the_docs_have_the_words_of_the_console() -> None:
    written = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert written == glossary.as_markdown(), "run: python -m ops_ui.console.base.glossary > docs/glossary.md"
