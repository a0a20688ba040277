"""The glossary of console and docs, read from glossary.toml beside this file, and the keys of the console."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("glossary.toml")


@dataclass(frozen=True, slots=True)
class Word:
    """`slug` is its place on the page; `short` fits a title; `more` is what else one wants to know. `page` is where it is seen."""

    slug: str
    word: str
    short: str
    more: str = ""
    page: str = ""


def _read() -> tuple[Word, ...]:
    return tuple(Word(**entry) for entry in tomllib.loads(SOURCE.read_text(encoding="utf-8"))["words"])


WORDS: Final = _read()
BY_SLUG: Final = {word.slug: word for word in WORDS}


def as_markdown() -> str:
    """The text of docs/glossary.md: the same words in the order of the alphabet, each under an anchor of its slug."""
    entries = [
        f'<a id="{word.slug}"></a>\n\n**{word.word}**: {word.short}{f" {word.more}" if word.more else ""}'
        for word in sorted(WORDS, key=lambda word: word.word.lower())
    ]
    note = "Made from `ops_ui/console/base/glossary.toml`, which the console reads too. Change the words there, then run"
    head = f"# Glossary\n\n{note}\n`python -m ops_ui.console.base.glossary > docs/glossary.md`."
    return "\n\n".join([head, *entries]) + "\n"


@dataclass(frozen=True, slots=True)
class Key:
    """Keys as they are pressed, and what they do. None of them changes anything that is stored."""

    keys: tuple[str, ...]
    does: str


KEYS: Final = (
    Key(("?",), "show this list"),
    Key(("/",), "search: trace an id"),
    Key(("j",), "next row of the list"),
    Key(("k",), "previous row"),
    Key(("Enter",), "open the row"),
    Key(("x",), "select or deselect the row"),
    Key(("Esc",), "close this list or leave the search"),
)


if __name__ == "__main__":
    sys.stdout.write(as_markdown())
