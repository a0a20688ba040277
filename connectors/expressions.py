"""JMESPath expressions of a pack's settings: where to find an id, a kind, a lane in a payload.

An expression sees the item's members, and under the names `headers` (by name, in any case) and `body` the request's headers and
the whole body. Numbers keep their digits, also through `to_string`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jmespath
from jmespath import functions
from jmespath.exceptions import JMESPathError

from connectors.identity_texts import identity_text
from connectors.pack import Headers, Item, Unreadable
from projection import exact_json

HEADERS: Final = "headers"
BODY: Final = "body"
LONGEST: Final = 1000
"""Characters of an expression: a longer one nests deeper than its evaluation can follow."""


class _ExactFunctions(functions.Functions):
    """JMESPath's functions; `to_string` writes numbers as they were received."""

    @functions.signature({"types": []})
    def _func_to_string(self, value: Any) -> str:
        return value if isinstance(value, str) else exact_json.dump(value)


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
            return cls(setting, text, jmespath.compile(text))
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
