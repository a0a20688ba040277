"""The user's own tests of their flows: a made generation, no database, no worker."""

import httpx
import pytest

from acme_sync import flows
from projection.flows import Skip


def test_an_article_that_is_not_stocked_is_skipped(make_generation, monkeypatch):
    monkeypatch.setenv("ACME_STOCK_URL", "https://stock.example.com/")
    monkeypatch.setattr(flows.httpx, "post", lambda *_, **__: httpx.Response(404))
    generation = make_generation('{"id":"7"}', source=("order", "7"))
    with pytest.raises(Skip, match="not a stocked article"):
        flows.stock(generation)
    assert not generation.completed
