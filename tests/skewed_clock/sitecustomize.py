"""Python imports this before anything else where its folder is on PYTHONPATH: the clock of the host is off, and the host has a name.

SKEW_FILE names a file with the seconds by which it is, read at each look, so that the clock can be set in the middle of something. What
measures durations (`monotonic`, `perf_counter`) is right, as on a real host.
"""

import datetime as module
import os
import socket
import time
from pathlib import Path

_real_datetime, _real_date = module.datetime, module.date
_real = {name: getattr(time, name) for name in ("time", "time_ns", "localtime", "gmtime", "strftime")}
_file = Path(os.environ["SKEW_FILE"])


def _skew():
    return float(_file.read_text())


def _time():
    return _real["time"]() + _skew()


def _time_ns():
    return _real["time_ns"]() + int(_skew() * 1e9)


def _localtime(seconds=None):
    return _real["localtime"](_time() if seconds is None else seconds)


def _gmtime(seconds=None):
    return _real["gmtime"](_time() if seconds is None else seconds)


def _strftime(form, moment=None):
    return _real["strftime"](form, _localtime() if moment is None else moment)


class _LikeTheReal(type):
    """What C code made is an instance too."""

    def __instancecheck__(cls, one):
        return isinstance(one, cls.__mro__[1])


class _Date(_real_date, metaclass=_LikeTheReal):
    @classmethod
    def today(cls):
        return cls.fromtimestamp(_time())


class _DateTime(_real_datetime, metaclass=_LikeTheReal):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(_time(), tz)

    @classmethod
    def utcnow(cls):
        return cls.fromtimestamp(_time(), module.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls):
        return cls.fromtimestamp(_time())


for _made, _name in ((_Date, "date"), (_DateTime, "datetime")):
    _made.__module__, _made.__name__, _made.__qualname__ = (
        "datetime",
        _name,
        _name,
    )  # so that they are pickled as what they stand for
    setattr(module, _name, _made)
time.time, time.time_ns, time.localtime, time.gmtime, time.strftime = _time, _time_ns, _localtime, _gmtime, _strftime
socket.gethostname = lambda: os.environ["SKEW_HOST"]
