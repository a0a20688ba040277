"""Loads the packs and flows of this process at start: the built-in ones, then those of the apps in HEADRACE_APPS."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterable, Iterator
from typing import Final

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

from connectors.pack import DuplicatePack
from projection.flows import DuplicateFlow, NotAFlow

BUILT_IN: Final = ("connectors.packs", "connectors.flows")
"""Found by name, as those of user apps are: packs and flows may import the registry, which therefore imports none of them."""


def load(user_apps: Iterable[str]) -> None:
    """Import every built-in pack and flow, and `<app>.packs` and `<app>.flows` of each user app (either may be absent).

    Raises ImproperlyConfigured, one sentence, for a pack or flow name that two modules define, and for a flow that would never run. An
    error inside a user's module is raised as it is: its traceback shows the user where.
    """
    try:
        for name in (*_built_in(), *_of_apps(user_apps)):
            importlib.import_module(name)
    except (DuplicateFlow, DuplicatePack) as error:
        raise ImproperlyConfigured(f"{error}; rename one of them; names must be unique across all apps of HEADRACE_APPS.") from None
    except NotAFlow as error:
        raise ImproperlyConfigured(f"{error}.") from None


def _built_in() -> Iterator[str]:
    for name in BUILT_IN:
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            yield module.name


def _of_apps(user_apps: Iterable[str]) -> Iterator[str]:
    for entry in user_apps:
        package = _package_of(entry)
        for name in (f"{package}.packs", f"{package}.flows"):
            if importlib.util.find_spec(name) is not None:
                yield name


def _package_of(entry: str) -> str:
    """The package of an entry as INSTALLED_APPS takes it: `acme_sync`, or `acme_sync.apps.AcmeSyncConfig`."""
    for config in apps.get_app_configs():
        if entry in (config.name, f"{type(config).__module__}.{type(config).__qualname__}"):
            return config.name
    raise ImproperlyConfigured(
        f"HEADRACE_APPS names {entry!r}, which is not an installed Django app; correct the name or install the package."
    )
