"""JMESPath expressions of a pack's settings: where to find an id, a kind, a lane in a payload.

An expression sees the item's members, and under the names `headers` (by name, in any case) and `body` the request's headers and
the whole body. Numbers are exact, in literals and functions too, and keep their digits through `to_string`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import reduce
from typing import Any, ClassVar, Final

import jmespath
from jmespath import functions
from jmespath.exceptions import JMESPathError, ParseError
from jmespath.lexer import Lexer
from jmespath.parser import ParsedResult, Parser

from connectors.identity_texts import identity_text
from connectors.pack import Headers, Item, Unreadable
from projection import exact_json

HEADERS: Final = "headers"
BODY: Final = "body"
LONGEST: Final = 1000
"""Characters of an expression: a longer one nests deeper than its evaluation can follow."""


_EXACT: Final = ("ExactNumber", "Decimal")
"""Names of the types that numbers with a fraction have here, and JMESPath does not know."""
_SUMS: Final = Context(prec=1000)
"""Digits of a sum: more than numbers of payloads have, and bounded."""
_LONGEST_ADJUSTED: Final = 1000
"""A number of more digits before its point stays a Decimal: as an integer it could fill the memory (`1e999999999`)."""


class _ExactFunctions(functions.Functions):
    """JMESPath's functions over exact numbers: nothing becomes a float, and `to_string` writes numbers as they were received."""

    @functions.signature({"types": []})
    def _func_to_string(self, value: Any) -> str:
        return value if isinstance(value, str) else exact_json.dump(value)

    @functions.signature({"types": []})
    def _func_to_number(self, value: Any) -> Any:
        if isinstance(value, str):
            try:
                value = exact_json.parse(value)
            except exact_json.NotJson:
                return None
        return value if isinstance(value, int | Decimal) and not isinstance(value, bool) else None

    @functions.signature({"types": []})
    def _func_type(self, value: Any) -> str:
        return str(self._convert_to_jmespath_type(type(value).__name__))

    @functions.signature({"types": ["number"]})
    def _func_abs(self, value: Any) -> Any:
        return value.copy_abs() if isinstance(value, Decimal) else abs(value)

    @functions.signature({"types": ["number"]})
    def _func_ceil(self, value: Any) -> Any:
        return _whole(value, ROUND_CEILING)

    @functions.signature({"types": ["number"]})
    def _func_floor(self, value: Any) -> Any:
        return _whole(value, ROUND_FLOOR)

    @functions.signature({"types": ["array-number"]})
    def _func_sum(self, values: Any) -> Any:
        return sum(values) if all(isinstance(value, int) for value in values) else reduce(_SUMS.add, values)

    @functions.signature({"types": ["array-number"]})
    def _func_avg(self, values: Any) -> Any:
        return Decimal(self._func_sum(values)) / len(values) if values else None

    def _get_allowed_pytypes(self, types: Any) -> tuple[list[str], list[tuple[str, ...]]]:
        allowed, inside = super()._get_allowed_pytypes(types)  # type: ignore[misc]  # the library's types leave it out
        return [*allowed, *_numbers_beside(allowed)], [(*names, *_numbers_beside(names)) for names in inside]

    def _convert_to_jmespath_type(self, name: str) -> str:
        known: str = super()._convert_to_jmespath_type(name)  # type: ignore[misc]  # the library's types leave it out
        return "number" if name in _EXACT else known


def _numbers_beside(names: Sequence[str]) -> Sequence[str]:
    return _EXACT if "int" in names else ()


def _whole(value: int | Decimal, rounding: str) -> int | Decimal:
    if isinstance(value, int):
        return value
    whole = value.to_integral_value(rounding)
    return whole if whole.adjusted() > _LONGEST_ADJUSTED else int(whole)


class _ExactLexer(Lexer):
    """Reads literals such as `10.1` as numbers of payloads are read."""

    _position: int
    _length: int
    _current: str | None
    _expression: str

    def _consume_literal(self) -> dict[str, Any]:
        start = self._position
        token: dict[str, Any] = super()._consume_literal()  # type: ignore[misc]  # the library's types leave it out
        end = self._position - 1 if self._current is not None else self._length - 1
        with suppress(exact_json.NotJson):
            token["value"] = exact_json.parse(self._expression[start + 1 : end].replace("\\`", "`"))
        return token


class _ExactParser(Parser):
    """JMESPath's parser with the lexer above; what it has parsed is kept by nobody else."""

    _CACHE: ClassVar[dict[str, Any]] = {}
    _expression: Callable[..., Any]
    _current_token: Callable[[], str]
    _lookahead_token: Callable[[int], Any]

    def _parse(self, expression: str) -> ParsedResult:
        self._tokens = list(_ExactLexer().tokenize(expression))
        self._index = 0
        parsed = self._expression(binding_power=0)
        if self._current_token() != "eof":
            token = self._lookahead_token(0)
            raise ParseError(token["start"], token["value"], token["type"], f"Unexpected token: {token['value']}")
        return ParsedResult(expression, parsed)


_OPTIONS: Final = jmespath.Options(custom_functions=_ExactFunctions())


def _scope(value: Any, headers: Headers, envelope: Any) -> dict[str, Any]:
    scope = dict(value) if isinstance(value, Mapping) else {}
    scope[HEADERS] = headers
    scope[BODY] = value if envelope is None else envelope
    return scope


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression and the name of the setting that it came from."""

    setting: str
    text: str
    _parsed: Any

    @classmethod
    def of(cls, setting: str, text: Any) -> Expression:
        """Raises ValueError naming the setting."""
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{setting} must be a JMESPath expression, such as data.id")
        if len(text) > LONGEST:
            raise ValueError(f"{setting} has {len(text)} characters; a JMESPath expression may have at most {LONGEST}")
        try:
            return cls(setting, text, _ExactParser().parse(text))
        except JMESPathError as error:
            raise ValueError(f"{setting} is not a JMESPath expression: {str(error).splitlines()[0]}") from None
        except RecursionError:
            raise ValueError(f"{setting} is nested too deeply") from None

    def find(self, value: Any, headers: Headers, envelope: Any = None) -> Any:
        """What the expression yields; None = nothing there. Raises Unreadable when it does not fit the payload (a wrong type)."""
        try:
            return self._parsed.search(_scope(value, headers, envelope), _OPTIONS)
        except (JMESPathError, TypeError, ValueError, ArithmeticError) as error:
            raise Unreadable(f"{self.setting} ({self.text}) cannot be applied to this item: {error}") from None

    def is_there(self, value: Any, headers: Headers, envelope: Any = None) -> bool:
        """Whether a member stands where a plain path leads, be it null. False for an expression that is more than a plain path."""
        try:
            path = self.path()
        except ValueError:
            return False
        found: Any = _scope(value, headers, envelope)
        for step in path:
            known = found if isinstance(found, Mapping) else dict(enumerate(found)) if isinstance(found, list) else {}
            if step not in known:
                return False
            found = known[step]
        return bool(path)

    def path(self) -> tuple[str | int, ...]:
        """The expression as a plain path (`data.events`, `batches[0].items`, `@`), for exact slices. Raises ValueError if it is more."""
        return tuple(self._steps(self._parsed.parsed))

    def _steps(self, node: Mapping[str, Any]) -> Iterator[str | int]:
        kind, children = node["type"], node["children"]
        if kind == "current":
            return
        if kind in ("field", "index"):
            yield node["value"]
        elif kind in ("subexpression", "index_expression"):
            for child in children:
                yield from self._steps(child)
        elif kind == "projection" and children[1]["type"] == "identity":  # events[*] and events[] mean the array itself
            inner = children[0]
            yield from self._steps(inner["children"][0] if inner["type"] == "flatten" else inner)
        else:
            raise ValueError(f"{self.setting} must be a plain path such as data.events, so that each item keeps its exact text")

    def roots(self) -> set[str]:
        """Names of the outermost members that the expression starts from."""
        return set(_roots(self._parsed.parsed))

    def header_names(self) -> set[str]:
        """Lower-case names of the request headers that it reads."""
        return {name.lower() for name in _header_names(self._parsed.parsed)}


@dataclass(frozen=True, slots=True)
class Expressions:
    """The expressions of one pack, by the name of their setting. A name without an expression finds nothing."""

    _by_name: Mapping[str, Expression]

    @classmethod
    def of(cls, settings: Mapping[str, Any], names: Sequence[str], defaults: Mapping[str, str]) -> Expressions:
        """Those of `names` that the settings give, else the defaults. Raises ValueError naming the setting that is none."""
        chosen = dict(defaults) | {name: settings[name] for name in names if name in settings}
        return cls({name: Expression.of(name, text) for name, text in chosen.items()})

    def __iter__(self) -> Iterator[Expression]:
        return iter(self._by_name.values())

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Expression:
        return self._by_name[name]

    def get(self, name: str) -> Expression | None:
        return self._by_name.get(name)

    def find(self, name: str, item: Item) -> Any:
        """What the expression yields for an item; None = nothing there. Raises Unreadable."""
        expression = self._by_name.get(name)
        return expression.find(item.value, item.headers, item.envelope) if expression else None

    def text(self, name: str, item: Item) -> str | None:
        """As `find`, as the text of an id. Raises Unreadable for what cannot be one."""
        return identity_text(self.find(name, item))

    def header_names(self) -> set[str]:
        """Lower-case names of the request headers that they read."""
        return set().union(*(expression.header_names() for expression in self))


def _roots(node: Mapping[str, Any]) -> Iterator[str]:
    kind, children = node["type"], node["children"]
    if kind == "field":
        yield node["value"]
    elif kind in ("subexpression", "index_expression", "projection", "filter_projection", "value_projection", "pipe", "flatten"):
        yield from _roots(children[0])
    else:
        for child in children:
            if isinstance(child, Mapping):
                yield from _roots(child)


def _header_names(node: Mapping[str, Any]) -> Iterator[str]:
    children = [child for child in node["children"] if isinstance(child, Mapping)]
    if node["type"] == "subexpression" and children[0]["type"] == "field" and children[0]["value"] == HEADERS:
        yield children[1].get("value", "")
        return
    for child in children:
        yield from _header_names(child)
