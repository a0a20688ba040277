"""Help: the words of the console, and its keys. Reads nothing."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponseBase

from ops_ui.console.base import glossary, navigation
from ops_ui.console.pages import Urls, page, show


@page(navigation.WORDS)
def words(request: HttpRequest) -> HttpResponseBase:
    """The glossary; each word leads to the page on which it is seen, where this person may enter it."""
    may_open = {one.name: one for _, several in navigation.sections(request.user) for one in several}
    lines = [(word, may_open.get(word.page)) for word in sorted(glossary.WORDS, key=lambda word: word.word.lower())]
    return show(request, "console/help/words.html", navigation.WORDS.title, lines=lines)


@page(navigation.KEYS)
def keys(request: HttpRequest) -> HttpResponseBase:
    """The keys, and the switch that turns them off in this browser."""
    return show(request, "console/help/keys.html", navigation.KEYS.title)


URLS: Final[Urls] = (
    ("help/words/", words, "words"),
    ("help/keys/", keys, "keys"),
)
