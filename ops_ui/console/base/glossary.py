"""The words of the console in our own words: one page, and a small link beside headings that use one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Word:
    """`slug` is its place on the page; `short` fits a title; `more` is what else one wants to know. `room` leads to where it is seen."""

    slug: str
    word: str
    short: str
    more: str = ""
    room: str = ""


WORDS: Final = (
    Word(
        "receipt",
        "Receipt",
        "One delivery as it arrived over HTTP: its exact bytes, the headers that may be kept, and its delivery id.",
        "It is stored before the provider gets its answer. It is pending until the router reads it; then it is routed, or says why not.",
        "receipts",
    ),
    Word(
        "event",
        "Event",
        "One fact that was taken from a receipt. A delivery may carry many; each is kept exactly and never changed.",
        "An event that no route takes is kept, too: it is unrouted, and can be routed later.",
        "events",
    ),
    Word(
        "admit",
        "Admit",
        "The step that makes a receipt's events and their work, in one transaction: all of it is there, or none.",
        "Each event gets the next ordinal of its namespace. Ordinals tell the order in which things were admitted.",
    ),
    Word(
        "source",
        "Source",
        "One record at the provider, such as contact 42. Its events are kept in order.",
        "",
        "sources",
    ),
    Word(
        "work-item",
        "WorkItem",
        "Something to run: a flow, with the events that it is given. Its WorkId is the same in logs, commands and calls to others.",
        "On a projection route it is a generation; on a per-event route there is one for each event.",
        "generations",
    ),
    Word(
        "generation",
        "Generation",
        "One run for a source on a projection route: it takes all events that came since the one before, in order.",
        "At most one is active at a time. Ten changes of a contact within the settling time are ten events, and one run that gets all ten.",
        "generations",
    ),
    Word(
        "successor",
        "Successor",
        "The one generation that waits behind an active one. It gathers what comes in meanwhile, and becomes active when that has ended.",
        "There is never more than one: what comes later joins it.",
        "generations",
    ),
    Word(
        "settle",
        "Settle",
        "The time for which a generation waits for more events of its burst before it runs. The first event fixes its end.",
        "Later events never move the end, so a source that never rests is still served.",
        "routes",
    ),
    Word(
        "lane",
        "Lane",
        "A queue of work that must keep its order, mostly that of one source. One item of a lane runs at a time.",
        "Lanes do not wait for each other. An item that waits to be tried again keeps its lane: what is behind it stays behind it.",
        "lanes",
    ),
    Word(
        "held",
        "Held",
        "An operator stopped this lane. Nothing of it is started until somebody releases it, or its own end comes.",
        "What runs already is not broken off, and new events still gather.",
        "lanes",
    ),
    Word(
        "blocked",
        "Blocked",
        "It waits for work before it in its lane, or it is the successor of an active generation.",
        "It goes on by itself. The page of its lane says what it waits for.",
        "lanes",
    ),
    Word(
        "claim",
        "Claim",
        "A worker takes an item, for a limited time (its lease). A worker that is gone loses the lease, and another one takes the item.",
        "",
        "workers",
    ),
    Word(
        "retry",
        "Retry",
        "An attempt failed, and the item waits for the next one; its route says how long and how often.",
        "“Retry now” ends that wait. It adds no attempt.",
        "generations",
    ),
    Word(
        "dead-letter",
        "Dead letter",
        "Work whose attempts are used up, or whose flow said that it can never succeed. Nothing is lost: it waits for a person.",
        "Replay runs it again; discard says that nobody will.",
        "dead_letters",
    ),
    Word(
        "replay",
        "Replay",
        "New work that is given exactly the events of a dead letter, in the same order. The dead one stays as it was.",
        "Newer generations of the source may have run since; the preview warns where state could go back.",
        "replays",
    ),
    Word(
        "quarantine",
        "Quarantine",
        "A receipt that could not be admitted again and again is set aside, so that those behind it go on.",
        "It keeps its bytes. When the cause is mended, re-route it on its page.",
        "receipts",
    ),
    Word(
        "route",
        "Route",
        "The rule that makes work of events: which kinds it takes, in which mode, and which flow runs. A change is a new version.",
        "Work keeps the version under which it was made, also when the route is retired.",
        "routes",
    ),
    Word(
        "projection",
        "Projection",
        "The mode of a route that keeps state in step with a record: bursts become one generation. The other mode is per event.",
        "",
        "routes",
    ),
    Word(
        "flow",
        "Flow",
        "The code that does the work: built in (record_table, http_forward, log) or your own.",
        "",
        "routes",
    ),
    Word(
        "pack",
        "Pack",
        "What knows one provider: how to check a delivery's signature, and how to read events out of it.",
        "An upgrade is a new incarnation: ids of the one before are never mixed up with its own.",
        "packs",
    ),
    Word(
        "endpoint",
        "Endpoint",
        "One URL that a provider posts to, with its secrets. Two of them are live while you rotate.",
        "",
        "endpoints",
    ),
    Word(
        "destination",
        "Destination",
        "What a flow calls. One that is away is parked: its work waits, without using up attempts, while one item tries.",
        "",
        "destinations",
    ),
    Word(
        "audit",
        "Audit",
        "The command that proves on the rows that nothing is lost or doubled; its last result is on the overview.",
        "The audit trail is another thing: what people did here, and why.",
        "audit",
    ),
)
BY_SLUG: Final = {word.slug: word for word in WORDS}


@dataclass(frozen=True, slots=True)
class Key:
    """Keys as they are pressed, and what they do. None of them changes anything that is stored."""

    keys: tuple[str, ...]
    does: str


KEYS: Final = (
    Key(("?",), "show these keys"),
    Key(("/",), "search: trace an id"),
    Key(("j",), "the next row of a list"),
    Key(("k",), "the row before"),
    Key(("Enter",), "open the row"),
    Key(("x",), "tick the row, or take the tick away"),
    Key(("Esc",), "close this list, or leave the search"),
)
