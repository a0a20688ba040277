"""The list of dead letters: its filters, its pages, the heat table above it, and the count of what is open."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from connectors.operations.work_filters import WorkFilter
from ops_ui.console.dead_letters import reads as dead_reads
from ops_ui.console.dead_letters.filter import select
from ops_ui.console.lists import keyset
from projection.database.clock import now
from projection.models import WorkItem
from projection.states import State
from tests.support import console_world, factories, rows

pytestmark = pytest.mark.usefixtures("database")

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PATH = "/admin/dead-letters/"


def dead(source: str = "1", route: Any = rows.PAGES, **columns: Any) -> WorkItem:
    return rows.work_row(rows.event_row(route, source_id=source), State.DEAD, **columns)


def listed(query: dict[str, str] | None = None, group: str = "viewer") -> Any:
    """The context of the list."""
    client = console_world.client(group)
    response = client.get(PATH, query or {})
    assert response.status_code == 200
    return response.context


def ids(query: dict[str, str] | None = None) -> list[int]:
    console_world.User.objects.all().delete()
    return [row.id for row in listed(query)["found"].rows]


class TestFilters:
    def test_the_list_begins_with_what_is_open(self) -> None:
        opened, replayed, discarded = dead("1"), dead("2"), dead("3", discarded_at=now())
        rows.replay_row(replayed, "pending")
        assert ids() == [opened.id]
        assert ids({"show": "replayed"}) == [replayed.id]
        assert ids({"show": "discarded"}) == [discarded.id]
        assert ids({"show": "all"}) == [discarded.id, replayed.id, opened.id]

    def test_a_replay_that_died_stands_for_what_it_replays(self) -> None:
        first = dead("1")
        second = rows.replay_row(first, State.DEAD)
        assert ids() == [second.id]

    @pytest.mark.parametrize("source", ["7", "contact:7"])
    def test_a_source_is_found_by_id_and_by_lane(self, source: str) -> None:
        wanted = dead("7")
        dead("77")
        assert ids({"source": source}) == [wanted.id]

    def test_routes_packs_errors_and_times(self) -> None:
        facts = factories.route(factories.install("github"), "orders")
        wanted = dead("1", facts, error_fingerprint="a" * 64, last_error="Timeout: slow\nat line 3", terminal_at=NOON)
        factories.route(factories.install("generic"), "other")
        standard = factories.route(factories.install("standard_webhooks"), "third")
        dead("2", standard, error_fingerprint="b" * 64, last_error="KeyError", terminal_at=NOON + timedelta(hours=1))
        for query in (
            {"route": "orders"},
            {"pack": "github"},
            {"fingerprint": "a" * 64},
            {"error": "Timeout"},
            {"error": "at line 3"},
            {"error": "a" * 12},
            {"until": "2026-01-01T12:30Z"},
            {"since": "2026-01-01T12:00Z", "until": "2026-01-01T12:00:00.000001Z"},
            {"route": "orders", "error": "Timeout", "source": "1", "since": "9999d"},
        ):
            assert ids(query) == [wanted.id], query
        for query in ({"route": "other"}, {"fingerprint": "a" * 63}, {"error": "timeout"}, {"until": "2026-01-01T12:00Z"}):
            assert ids(query) == [], query

    @pytest.mark.parametrize("value", ["yesterday", "2026-13-01", "é", "99999999999999999999d", "\x00"])
    def test_a_malformed_time_is_told_and_filters_nothing(self, value: str) -> None:
        item = dead()
        context = listed({"since": value})
        assert [row.id for row in context["found"].rows] == [item.id]
        assert context["filter"].form.errors["since"]

    def test_names_and_boxes_are_for_those_who_may(self) -> None:
        dead()
        for group in ("viewer", "operator"):
            content = console_world.client(group).get(PATH).content.decode()
            assert ('name="work"' in content) is (group == "operator")
            assert ("Discard all…" in content) is (group == "operator")


class TestPages:
    def test_rows_with_equal_times_are_on_exactly_one_page_both_ways(self) -> None:
        made = [dead(str(number), terminal_at=NOON) for number in range(120)]
        for item in made[::3]:
            rows.replay_row(item, "processed")
        wanted = [item.id for number, item in enumerate(made) if number % 3][::-1]
        client = console_world.client("viewer")
        seen: list[list[int]] = []
        at = ""
        while True:
            found = client.get(PATH, {"at": at}).context["found"]
            seen.append([row.id for row in found.rows])
            if found.next is None:
                break
            at = str(found.next)
        assert [row for page in seen for row in page] == wanted
        assert len(seen) == 2
        back = client.get(PATH, {"at": str(found.previous)}).context["found"]
        assert [row.id for row in back.rows] == seen[0]

    def test_a_search_stops_at_its_window_and_goes_on_from_there(self) -> None:
        made = [dead(str(number), terminal_at=NOON + timedelta(seconds=number // 3)) for number in range(40)]
        for item in made:
            if item.id % 10:
                WorkItem.objects.filter(id=item.id).update(discarded_at=NOON)
        chosen = select(WorkFilter())
        seen: list[int] = []
        cursor: keyset.Cursor | None = None
        stops = 0
        while True:
            edge = keyset.edge_of(chosen.among, dead_reads.BY_DEATH, cursor, window=7)
            page = keyset.searched(chosen.rows, dead_reads.BY_DEATH, cursor, edge, size=3)
            seen += [row.id for row in page.rows]
            stops += page.searched_at is not None
            if page.next is None:
                break
            cursor = keyset.Cursor.parse(str(page.next))
        assert seen == [item.id for item in reversed(made) if not item.id % 10]
        assert stops == 5
        before: list[int] = []
        cursor = keyset.Cursor("before", made[0].id, made[0].terminal_at)
        while cursor is not None:
            edge = keyset.edge_of(chosen.among, dead_reads.BY_DEATH, cursor, window=7)
            page = keyset.searched(chosen.rows, dead_reads.BY_DEATH, cursor, edge, size=3)
            before = [row.id for row in page.rows] + before
            cursor = page.previous
        assert before == [row for row in seen if row != made[0].id]

    def test_the_page_says_how_far_it_looked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made = [dead(str(number), terminal_at=NOON + timedelta(minutes=number)) for number in range(6)]
        monkeypatch.setattr(keyset.edge_of, "__defaults__", (3,))
        content = console_world.client("viewer").get(PATH, {"fingerprint": "f" * 64}).content.decode()
        assert "No match so far" in content
        assert "Keep searching" in content
        assert "12:03:00" in content
        assert made[3].terminal_at == NOON + timedelta(minutes=3)

    def test_a_page_reads_as_many_times_whatever_there_is(self) -> None:
        client = console_world.client("operator")
        counted = []
        for round_of in range(2):
            for number in range(30):
                item = dead(f"{round_of} {number}", error_fingerprint=f"{number:064}", last_error="x")
                if number % 3 == 0:
                    rows.replay_row(item)
            with CaptureQueriesContext(connection) as queries:
                client.get(PATH)
            counted.append(len(queries))
        assert counted[0] == counted[1]
        assert counted[0] <= 20


class TestOpen:
    def test_replayed_and_discarded_ones_are_not_counted(self) -> None:
        replayed = dead("1")
        rows.replay_row(replayed, "processed")
        dead("2", discarded_at=now())
        dead("3")
        assert str(dead_reads.open_now().count) == "1"
        (card,) = [card for card in console_world.client("viewer").get("/admin/").context["cards"] if card.title == "Dead letters"]
        assert (str(card.count), card.note) == ("1", "not replayed or discarded")
        assert str(listed(group="operator")["open"]) == "1"

    def test_the_count_looks_no_further_than_one_page_searches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(5):
            dead(str(number))
        monkeypatch.setattr(keyset.edge_of, "__defaults__", (3,))
        assert str(dead_reads.open_now().count) == "3+"

    def test_the_errors_of_the_overview_are_those_of_open_ones(self) -> None:
        replayed = dead("1", error_fingerprint="a" * 64, last_error="gone")
        rows.replay_row(replayed, "processed")
        dead("2", error_fingerprint="b" * 64, last_error="still there")
        groups = console_world.client("viewer").get("/admin/").context["dead_groups"]
        assert [(group.error, group.items) for group in groups] == [("still there", 1)]

    def test_the_overview_says_how_many_it_groups_where_there_are_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        dead("1")
        monkeypatch.setattr(dead_reads, "NEWEST", 1)
        client = console_world.client("viewer")
        assert "the newest 1</span>" not in client.get("/admin/").content.decode()
        dead("2")
        assert "the newest 1</span>" in client.get("/admin/").content.decode()


def test_the_page_of_a_dead_letter_leads_to_its_connection() -> None:
    pack = factories.install("generic")
    plain, posting = (factories.route(pack, key, **extra) for key, extra in (("plain", {}), ("posting", {"connection": "shop"})))
    client = console_world.client("viewer")
    pages = [client.get(f"{PATH}{dead(str(route.id), route).work_id}/").content.decode() for route in (plain, posting)]
    assert ["<dt>Connection</dt>" in text for text in pages] == [False, True]
    shown = pages[1].partition("<dt>Connection</dt>")[2].partition("</dd>")[0]
    assert 'href="/admin/connections/"' in shown
    assert "shop" in shown


class TestHeat:
    def at(self, hours: float) -> datetime:
        return now().replace(minute=30, second=0, microsecond=0) - timedelta(hours=hours)

    def many(self) -> None:
        for number, (error, hours) in enumerate((("a", 1), ("a", 1), ("a", 3), ("b", 3), ("b", 30), ("c", 24 * 20))):
            dead(str(number), error_fingerprint=error * 64, last_error=f"{error}: no\nsecond", terminal_at=self.at(hours))

    def test_deaths_are_counted_by_error_and_hour(self) -> None:
        self.many()
        heat = listed()["heat"]
        assert [(row.error, row.total) for row in heat.rows] == [("a: no", 3), ("b: no", 1)]
        assert [cell.count for cell in heat.rows[0].cells] == [0] * 20 + [1, 0, 2, 0]
        assert [cell.shade for cell in heat.rows[0].cells][-4:] == [3, 0, 5, 0]
        assert heat.sentence.startswith("4 dead letters with 2 different errors in the last 24 hours; the most in one hour: 2 (")

    def test_deaths_are_counted_by_day(self) -> None:
        self.many()
        heat = listed({"by": "days"})["heat"]
        assert [(row.error, row.total) for row in heat.rows] == [("a: no", 3), ("b: no", 2)]
        assert len(heat.begins) == 14
        assert sum(cell.count for row in heat.rows for cell in row.cells) == 5

    def test_a_cell_leads_to_what_it_counts(self) -> None:
        self.many()
        client = console_world.client("viewer")
        replayed = WorkItem.objects.order_by("id")[0]
        rows.replay_row(replayed, "processed")
        for by in ("hours", "days"):
            heat = client.get(PATH, {"by": by}).context["heat"]
            for row in heat.rows:
                assert len(client.get(PATH, row.query).context["found"].rows) == row.total
                for cell in row.cells:
                    if cell.count:
                        assert len(client.get(PATH, cell.query).context["found"].rows) == cell.count

    def test_the_table_follows_route_and_pack(self) -> None:
        facts = factories.route(factories.install("github"), "orders")
        dead("1", facts, error_fingerprint="a" * 64, last_error="x")
        dead("2", error_fingerprint="b" * 64, last_error="y")
        client = console_world.client("viewer")
        for query in ({"route": "orders"}, {"pack": "github"}):
            (row,) = client.get(PATH, query).context["heat"].rows
            assert row.error == "x"
            assert query.items() <= row.query.items()

    def test_an_error_without_fingerprint_has_a_row_without_links(self) -> None:
        dead("1")
        response = console_world.client("viewer").get(PATH)
        (row,) = response.context["heat"].rows
        assert (row.error, row.fingerprint, row.total) == ("no error recorded", "", 1)
        links = [part for part in response.content.decode().split('href="')[1:] if part.startswith("?fingerprint=")]
        assert links == []

    def test_a_quiet_day_has_no_table(self) -> None:
        dead("1", terminal_at=NOON)
        assert listed()["heat"] is None

    def test_rare_errors_are_counted_below(self) -> None:
        for number in range(13):
            dead(str(number), error_fingerprint=f"{number:064}", last_error=f"error {number}")
        response = console_world.client("viewer").get(PATH)
        assert (len(response.context["heat"].rows), response.context["heat"].more_errors) == (10, 3)
        assert "and 3 more errors with fewer dead letters" in response.content.decode()

    def test_a_cut_table_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.many()
        monkeypatch.setattr(dead_reads, "MOST_DEATHS", 2)
        content = console_world.client("viewer").get(PATH).content.decode()
        assert "Only the newest 50,000 are counted" in content

    def test_the_period_keeps_the_filter(self) -> None:
        dead("1", error_fingerprint="a" * 64)
        content = console_world.client("viewer").get(PATH, {"fingerprint": "a" * 64}).content.decode()
        links = [part.split('"')[0] for part in content.split('href="')[1:]]
        (link,) = [link for link in links if "by=days" in link and "show" not in link]
        assert parse_qs(urlsplit(link.replace("&amp;", "&")).query) == {"fingerprint": ["a" * 64], "by": ["days"]}
