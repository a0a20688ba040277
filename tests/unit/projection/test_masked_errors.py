"""What errors quote of masked fields is hidden, in each way of writing it; all else of the error stays."""

from __future__ import annotations

import pytest

from projection.masked_errors import CHARACTERS, UNTOLD, without_masked
from projection.masking import HIDDEN

PAYLOAD = '{"id":7,"email":"ada@example.com","pin":123,"note":"caf\\u00e9 \\"x\\"\\tb","amount":10.50,"name":"Ada","ok":true}'
MASKS = ("$.email", "$.pin", "$.note", "$.amount", "$.ok")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ValueError: none for ada@example.com: 'ada@example.com'", "ValueError: none for •••: '•••'"),
        ("ValueError: 'caf\\u00e9 \\\"x\\\"\\tb'", "ValueError: '•••'"),
        ("ValueError: café \"x\"\tb", "ValueError: •••"),
        ("ValueError: 'café \"x\"\\tb'", "ValueError: '•••'"),
        ("said (café \"x\" b)", "said (•••)"),
        ("KeyError: 123", "KeyError: •••"),
        ("at line 1234, 10.50 is too much", "at line 1234, ••• is too much"),
        ("ValueError: id 7 of Ada is true", "ValueError: id 7 of Ada is true"),
        ("said <td>ada&#64;example.com</td>", "said <td>•••</td>"),
        ("said ada&#x40;example&period;com, twice ada&amp;#64;example.com", "said •••, twice •••"),
        ("GET /find?who=ada%40example.com&x=1", "GET /find?who=•••&x=1"),
        ('said "ada\\u0040example.com"', 'said "•••"'),
        ("said caf%C3%A9+%22x%22%09b", "said •••"),
        ("said caf&eacute; &quot;x&quot;\tb", "said •••"),
        ("a + b is 100%25 and &lt;p&gt;", "a + b is 100%25 and &lt;p&gt;"),
        ("said ada@exam…", "said •••…"),
        ("said (ada@exampl...)", "said (•••...)"),
        ("", ""),
    ],
)  # fmt: skip
def test_each_way_of_writing_a_masked_value_is_hidden(text: str, expected: str) -> None:
    assert without_masked(text, [PAYLOAD], MASKS) == expected


def test_what_was_cut_of_a_long_value_is_hidden_too() -> None:
    value = "".join(f"{n:04}" for n in range(3_000))
    payload = f'{{"a":"{value}"}}'
    assert without_masked(f"sent {value[:100]}… and {value}", [payload], ("$.a",)) == f"sent {HIDDEN}… and {HIDDEN}"


def test_what_was_cut_in_front_of_a_value_leaves_nothing_of_its_end() -> None:
    value = "".join(f"{n:04}" for n in range(50))
    assert without_masked(f"…{value[-30:]}> sent", [f'{{"a":"{value}"}}'], ("$.a",)) == f"…{HIDDEN}> sent"


def test_a_path_with_escaped_slashes_is_hidden() -> None:
    text = 'ValueError: {"a":"https:\\/\\/example.com\\/ada"}'
    assert without_masked(text, ['{"a":"https://example.com/ada"}'], ("$.a",)) == f'ValueError: {{"a":"{HIDDEN}"}}'


def test_values_of_all_inputs_and_of_everything_under_a_mask_are_hidden() -> None:
    payloads = ['{"a":{"city":"Paris","n":[4711,"Lyon"]}}', '{"a":"Genova"}']
    text = "ValueError: Paris, 4711, Lyon, Genova, city"
    assert without_masked(text, payloads, ("$.a",)) == f"ValueError: {HIDDEN}, {HIDDEN}, {HIDDEN}, {HIDDEN}, city"


def test_a_value_within_another_leaves_nothing_of_the_longer_one() -> None:
    assert without_masked("x: adalovelace", ['{"a":"adal","b":"adalovelace"}'], ("$.a", "$.b")) == f"x: {HIDDEN}"


@pytest.mark.parametrize(
    ("payload", "masks"),
    [
        ("a=ada", ("$.a",)),
        ('{"a":1}', ("no mask",)),
        (f'"{"x" * CHARACTERS}"', ("$.a",)),
        ("[" * 200_000 + "]" * 200_000, ("$.a",)),
    ],
)
def test_where_values_cannot_be_found_the_type_alone_is_left(payload: str, masks: tuple[str, ...]) -> None:
    assert without_masked("acme.errors.Refused: ada", [payload], masks) == f"acme.errors.Refused: {UNTOLD}"
    assert without_masked("it was ada", [payload], masks) == UNTOLD


def test_without_masks_nothing_is_read() -> None:
    assert without_masked("ValueError: ada", ["no json"], ()) == "ValueError: ada"
