"""Logs of the server as JSON lines, one for each answer and each problem."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

ACCESS = logging.getLogger("navigator.access")
_FACTS = ("method", "path", "status", "ms", "token")


class JsonLines(logging.Formatter):
    """`{ts, level, logger, msg, …}`: `path` is the pattern of an endpoint, `token` the id of a token. It contains
    nothing of a request's own text."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        body = {"ts": moment.replace("+00:00", "Z"), "level": record.levelname.lower(), "logger": record.name}
        body |= {"msg": record.getMessage()}
        body |= {name: getattr(record, name) for name in _FACTS if hasattr(record, name)}
        if record.exc_info:
            body["error"] = self.formatException(record.exc_info)
        return json.dumps(body, ensure_ascii=False)


def log_as_json() -> None:
    """Writes the log to stderr as JSON lines from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("navigator")
    logger.handlers[:] = [handler]
    logger.propagate = False
    ACCESS.setLevel(logging.INFO)


def log_answer(method: str, path: str, status: int, seconds: float, token: str) -> None:
    """Logs one line, if answers are logged."""
    if ACCESS.isEnabledFor(logging.INFO):
        facts = {"method": method, "path": path, "status": status, "ms": round(seconds * 1000, 1), "token": token}
        ACCESS.info("answered", extra=facts)
