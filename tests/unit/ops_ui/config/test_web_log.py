"""gunicorn's messages say what kind of mistake a request was, and nothing that its sender wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import InvalidHeader, InvalidHeaderName, InvalidRequestLine, InvalidRequestMethod, ObsoleteFolding

from ops_ui import gunicorn_conf
from ops_ui.config.web_log import WebLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[WebLog]:
    config = Config()
    config.set("errorlog", str(tmp_path / "log"))
    made = WebLog(config)
    yield made
    for handler in made.error_log.handlers:
        handler.close()


def lines(tmp_path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("error", [InvalidHeader, InvalidHeaderName, InvalidRequestLine, InvalidRequestMethod, ObsoleteFolding])
@pytest.mark.parametrize("text", ["Bearer hush", "a: hush", 'it\'s "hush"', "two\nlines hush"])
def test_a_line_that_could_not_be_read_is_not_repeated(log: WebLog, tmp_path: Path, error: type[Exception], text: str) -> None:
    log.warning(f"Invalid request from ip=192.0.2.7: {error(text)}")
    (line,) = lines(tmp_path)
    assert line["text"].startswith("Invalid request from ip=192.0.2.7: ")
    assert len(line["text"]) > len("Invalid request from ip=192.0.2.7: ") + 5
    assert "hush" not in line["text"]
    assert (line["level"], line["event"]) == ("warning", "log")


def test_other_warnings_stay_whole(log: WebLog, tmp_path: Path) -> None:
    log.warning("Worker with pid %s was terminated: %s", 7, "it's gone")
    assert lines(tmp_path)[0]["text"] == "Worker with pid 7 was terminated: it's gone"


def test_a_failed_request_is_told_without_its_query(log: WebLog, tmp_path: Path) -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("Error handling request %s %s", "POST", "/ingress/default/code?token=hush")
    (line,) = lines(tmp_path)
    assert line["text"] == "Error handling request POST /ingress/default/code"
    assert "ValueError: broken" in line["error"]
    assert "hush" not in json.dumps(line)


def test_the_web_server_uses_it() -> None:
    assert gunicorn_conf.logger_class == f"{WebLog.__module__}.{WebLog.__qualname__}"
