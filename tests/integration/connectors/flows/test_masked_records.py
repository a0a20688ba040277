"""Masks are written for payloads; what a live record took out of them is hidden all the same."""

from __future__ import annotations

import pytest

from connectors.flows.record_fold import SetValue, properties_text
from connectors.models import Record
from ops_ui.console.sources.records import properties
from tests.support import console_world, factories

pytestmark = pytest.mark.usefixtures("database")

SECRET = "ada@example.com"


def record(values: dict[str, str], *masks: str) -> Record:
    """A record of such properties (exact JSON texts), fed by a route with such masks."""
    world = console_world.build(masks=masks)
    found = Record.objects.get(id=world.record)
    found.properties = properties_text({name: SetValue(text, 1) for name, text in values.items()})
    found.save()
    return found


def shown(found: Record) -> dict[str, str]:
    return {one.name: one.value for one in properties(found)}


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("$.user.email", '{"email":•••,"id":1}'),
        ("$.issue.user.email", '{"email":•••,"id":1}'),
        ("$.issue.user", "•••"),
        ("$.user", "•••"),
        ("$.user[*].email", '{"email":•••,"id":1}'),
        ("$.email", f'{{"email":"{SECRET}","id":1}}'),
    ],
)
def test_a_mask_holds_from_the_step_that_names_the_property(database: None, mask: str, expected: str) -> None:
    found = record({"user": f'{{"email":"{SECRET}","id":1}}', "n": "1.10"}, mask)
    assert shown(found) == {"user": expected, "n": "1.10"}


def test_a_mask_of_elements_hides_each_of_them(database: None) -> None:
    found = record({"cards": f'["{SECRET}",2]', "items": f'[{{"card":"{SECRET}"}}]'}, "$.cards[*]", "$.order.items[*].card")
    assert shown(found) == {"cards": "[•••,•••]", "items": '[{"card":•••}]'}


@pytest.mark.parametrize("mask", ["$.data", "$.properties", "$.object.properties", "$.propertyValue", "$.contact", "not a mask"])
def test_a_mask_of_what_holds_the_properties_hides_them_all(database: None, mask: str) -> None:
    found = record({"email": f'"{SECRET}"', "n": "1"})
    factories.models.Route.objects.update(masks=f'["{mask}"]')
    assert found.source_type == "contact"
    assert shown(found) == {"email": "•••", "n": "•••"}
    client = console_world.client("viewer")
    for path in (f"/admin/records/{found.id}/", f"/admin/sources/one/?namespace=default&type=contact&id={found.source_id}"):
        assert SECRET not in client.get(path).content.decode(), path
