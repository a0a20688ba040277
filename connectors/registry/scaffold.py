"""A connector pack of the user's own, to begin with: a Django app that works and passes its own tests as it is written.

The texts stand under `pack_template/`; `$name` and the other names in them are those of `Names`.
"""

from __future__ import annotations

import importlib.util
import keyword
import os
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template
from typing import Final

from django.apps import apps

from connectors import pack

TEMPLATES: Final = Path(__file__).parent / "pack_template"
SUFFIX: Final = "-tpl"
"""So that no tool takes a text with holes for a module."""
LONGEST_NAME: Final = 40
_BOUND: Final = re.compile(r"^(?:class|import|from [\w.]+ import) ([^(:\n]+)", re.MULTILINE)
"""Names that a line of a template imports or defines."""
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)


class CannotStart(ValueError):
    """The package cannot be written; the message says why, and what to do instead. Nothing was left behind."""


@dataclass(frozen=True, slots=True)
class Names:
    """How a pack `acme_shop` is called: class `AcmeShop`, headers `X-Acme-Shop-…`, variables `ACME_SHOP_…`."""

    name: str
    class_name: str
    header: str
    variable: str

    @classmethod
    def of(cls, name: str) -> Names:
        words = [word.capitalize() for word in name.split("_")]
        return cls(name, "".join(words), "-".join(words), name.upper())


def write(name: str, into: Path) -> list[Path]:
    """Write the package `name` into folder `into`; the files, in order. Raises CannotStart."""
    _refuse_bad(name)
    if not into.is_dir():
        raise CannotStart(f"{into} is not a directory; create it first, or give another one with --into.")
    target = into / name
    if os.path.lexists(target):  # a dangling link too
        raise CannotStart(f"{target} already exists and was not changed; choose another name, or another folder with --into.")
    _refuse_taken(name)
    try:
        target.mkdir()
    except OSError as error:
        raise CannotStart(f"{target} cannot be created: {error.strerror}.") from None
    try:
        return _fill(target, Names.of(name))
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise CannotStart(f"{error.filename or target} cannot be written: {error.strerror}.") from None


def _refuse_bad(name: str) -> None:
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise CannotStart(
            f"{name!r} is not a valid pack name; use 1 to {LONGEST_NAME} characters of a-z, 0-9 and single _ between them,  "
            "the first one a letter, such as acme or acme_shop."
        )
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise CannotStart(f"{name!r} is a reserved Python keyword; choose another name.")
    class_name = Names.of(name).class_name
    if keyword.iskeyword(class_name) or class_name in _bound():
        raise CannotStart(
            f"the class of a pack {name!r} would be called {class_name}, a name that the template already uses; choose another name."
        )


def _bound() -> set[str]:
    """What the modules of a package import or define beside the class of its pack."""
    texts = (path.read_text(encoding="utf-8") for path in TEMPLATES.glob(f"*.py{SUFFIX}"))
    return {name for text in texts for found in _BOUND.findall(text) for name in re.findall(r"\w+", found)}


def _refuse_taken(name: str) -> None:
    if pack.find(name) is not None:
        raise CannotStart(f"pack {name!r} already exists; choose another name.")
    if any(name == config.label for config in apps.get_app_configs()):
        raise CannotStart(f"{name!r} is the name of an installed Django app; choose another name.")
    importlib.invalidate_caches()
    if importlib.util.find_spec(name) is not None:
        raise CannotStart(f"{name!r} is the name of a Python module that can be imported here; choose another name.")


def _fill(target: Path, names: Names) -> list[Path]:
    written = []
    for template in sorted(TEMPLATES.glob(f"*{SUFFIX}")):
        path = target / template.name.removesuffix(SUFFIX).replace("name", names.name)
        path.write_text(Template(template.read_text(encoding="utf-8")).substitute(asdict(names)), encoding="utf-8")
        written.append(path)
    return written
