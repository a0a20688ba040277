"""Help: each word is explained once, each one has a key of its own, and what an empty page says leads on."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ops_ui.console.base import glossary, navigation
from tests.support import console_world
from tests.support.console_world import LISTS, World

pytestmark = pytest.mark.usefixtures("database")

LONGEST_TITLE = 130
LEADS_ON = re.compile(r"href=|<code>|ask an administrator|by itself")


def test_words_are_unique_and_short_enough_for_a_title() -> None:
    slugs = [word.slug for word in glossary.WORDS]
    assert len(slugs) == len(set(slugs))
    assert [word.word for word in glossary.WORDS if len(word.short) > LONGEST_TITLE] == []
    known = {one.name for one in navigation.ENTRIES}
    assert {word.page for word in glossary.WORDS if word.page} <= known
    assert {one.word for one in navigation.ENTRIES if one.word} <= set(slugs)


def test_no_two_pages_have_the_same_key() -> None:
    keys = [one.key for one in navigation.ENTRIES if one.key]
    assert len(keys) == len(set(keys))
    assert all(re.fullmatch("[a-z]", key) for key in keys)


def test_the_words_of_the_design_are_all_there() -> None:
    page = console_world.client("viewer").get("/admin/help/words/").content.decode()
    for word in (
        "generation",
        "successor",
        "lane",
        "settle",
        "work-item",
        "held",
        "quarantine",
        "replay",
        "receipt",
        "event",
        "route",
    ):
        assert f'<div id="{word}">' in page


def test_a_word_leads_only_where_its_reader_may_go() -> None:
    assert 'href="/admin/audit/"' in console_world.client("administrator").get("/admin/help/words/").content.decode()
    response: Any = console_world.client(None).get("/admin/help/words/")
    assert response.status_code == 403


def test_the_keys_are_those_of_the_rooms_that_one_may_enter() -> None:
    page = console_world.client("viewer").get("/admin/help/keys/").content.decode()
    assert "go to Dead letters" in page
    assert "go to Users" not in page
    assert page.count("go to Lanes") == 2  # on the page, and in the list that the key opens


def test_every_list_has_its_word_beside_its_heading() -> None:
    client = console_world.client("administrator")
    world = World(0, 0, 0, "", "", "", 0, 0)
    for one in navigation.ENTRIES:
        name = {"dead_letters": "dead-letters"}.get(one.name, one.name)
        if one.word and name in LISTS:
            page = client.get(world.paths[name]).content.decode()
            assert f'href="/admin/help/words/#{one.word}"' in page, name


@pytest.mark.parametrize("name", ["overview", *LISTS])
def test_an_empty_page_says_where_to_go_next(name: str) -> None:
    page = console_world.client("administrator").get(World(0, 0, 0, "", "", "", 0, 0).paths[name]).content.decode()
    empties = re.findall(r'<p class="empty">(.*?)</p>', page, re.DOTALL)
    assert any(LEADS_ON.search(text) for text in empties), empties
