"""Help: the words of the console, and its keys. Reads nothing."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponseBase

from ops_ui.console.base import glossary, navigation
from ops_ui.console.pages import Urls, page, show


@page(navigation.WORDS)
def words(request: HttpRequest) -> HttpResponseBase:
    """The glossary; each word leads to the page on which it is seen, where this person may enter it."""
    open_rooms = {room.name: room for _, several in navigation.sections(request.user) for room in several}
    lines = [(word, open_rooms.get(word.room)) for word in sorted(glossary.WORDS, key=lambda word: word.word.lower())]
    return show(request, "console/help/words.html", navigation.WORDS.title, lines=lines)


@page(navigation.KEYS)
def keys(request: HttpRequest) -> HttpResponseBase:
    """The keys, and the switch that turns them off in this browser."""
    return show(request, "console/help/keys.html", navigation.KEYS.title)


URLS: Final[Urls] = (
    ("help/words/", words, "words"),
    ("help/keys/", keys, "keys"),
)
