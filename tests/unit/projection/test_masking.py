"""Masks hide exactly the value, whatever surrounds it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projection import masking
from projection.masking import HIDDEN, BadMask, mask, path


@pytest.mark.parametrize(
    ("text", "masks", "expected"),
    [
        ('{"a": 1.10, "b":  "x"}', ["$.b"], '{"a": 1.10, "b":  •••}'),
        ('{"a":{"b":[1,{"c":2}]},"d":1E+2}', ["$.a.b"], '{"a":{"b":•••},"d":1E+2}'),
        ('{"a":[{"c":1,"x":9007199254740993},{"c":"}]"}]}', ["$.a[*].c"], '{"a":[{"c":•••,"x":9007199254740993},{"c":•••}]}'),
        ('[ {"p":"\\"q"} , {"p":null} ]', ["$[*].p"], '[ {"p":•••} , {"p":•••} ]'),
        ('{"a":1,"a":2}', ["$.a"], '{"a":•••,"a":•••}'),
        ('{"\\u0061":1}', ["$.a"], '{"\\u0061":•••}'),
        ('{"a":{"b":1}}', ["$.a", "$.a.b"], '{"a":•••}'),
        ('{"a":1}', ["$.b", "$.a.b", "$[*]"], '{"a":1}'),
        ('{"who":[{"name":"x","k":1},{"name":"y"}]}', ["$.who.name"], '{"who":[{"name":•••,"k":1},{"name":•••}]}'),
        ('[{"who":{"name":"x"}}]', ["$.who.name"], '[{"who":{"name":•••}}]'),
        ('[[{"name":"x"}],"name"]', ["$.name"], '[[{"name":•••}],"name"]'),
        ('{"who":["x","y"]}', ["$.who"], '{"who":•••}'),
        ('{"who":{"name":"x"}}', ["$.who[*].name"], '{"who":{"name":•••}}'),
        ('{"who":"x"}', ["$.who[*]"], '{"who":•••}'),
        ('{"who":[["x"],"y"]}', ["$.who[*][*]"], '{"who":[[•••],•••]}'),
        ('{"name":"x"}', ["$[*].name"], '{"name":•••}'),
        ('{"a":[1,2]}', ["$.a.b"], '{"a":[1,2]}'),
        ("[]", ["$[*]"], "[]"),
        ('{"a":1}', [], '{"a":1}'),
        ("a=1&b=2", ["$.a"], HIDDEN),
        ("a=1&b=2", [], "a=1&b=2"),
        ('"x"', ["$.a"], '"x"'),
    ],
)
def test_only_the_value_is_hidden(text: str, masks: list[str], expected: str) -> None:
    assert mask(text, masks) == expected


def test_a_body_is_masked_wherever_its_items_lie() -> None:
    body = '{"n":2,"items":[{"email":"a@b","k":1},{"deep":{"email":["c"]}}]}'
    assert mask(body, ["$.email"], anywhere=True) == '{"n":2,"items":[{"email":•••,"k":1},{"deep":{"email":•••}}]}'
    assert mask(body, ["$.email"]) == body
    assert mask('{"items":[[{"who":[{"name":1}]}]]}', ["$.who.name"], anywhere=True) == '{"items":[[{"who":[{"name":•••}]}]]}'


def test_each_element_of_every_list_is_hidden_anywhere() -> None:
    assert mask('{"a":{"b":[1,{"c":[2]}]},"d":3}', ["$[*]"], anywhere=True) == '{"a":{"b":[•••,•••]},"d":3}'


def test_a_text_nested_without_end_is_hidden_whole() -> None:
    assert mask("[" * 100_000 + "]" * 100_000, ["$.a"], anywhere=True) == HIDDEN


@pytest.mark.parametrize("bad", ["", "$", "a.b", "$a", "$..a", "$.a[0]", "$.a b"])
def test_a_malformed_mask_is_refused(bad: str) -> None:
    with pytest.raises(BadMask, match=r"write it like|at character"):
        path(bad)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("secret"), inner),
    max_leaves=30,
)


@given(st.dictionaries(st.text().filter(lambda name: name != "secret"), JSON), JSON)
def test_nothing_but_the_masked_member_changes(others: dict[str, object], secret: object) -> None:
    text = json.dumps({**others, "secret": secret}, ensure_ascii=False)
    before = json.dumps({**others, "secret": "?"}, ensure_ascii=False).removesuffix('"?"}')
    assert mask(text, ["$.secret"]) == before + HIDDEN + "}"


def test_a_deep_body_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of it took two minutes when each level read everything below it again."""
    read: list[int] = []

    def counted(text: str, at: int) -> int:
        end = find_end(text, at)
        read.append(end - at)
        return end

    find_end = masking._end
    monkeypatch.setattr(masking, "_end", counted)
    body = "[" * 300 + '[], {"other": [[]], "email": "x"}' + "]" * 300
    assert '"email": •••}' in mask(body, ["$.email"], anywhere=True)
    assert sum(read) < len(body)
