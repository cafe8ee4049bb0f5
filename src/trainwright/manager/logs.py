"""What the manager says of itself: a line of text, or of JSON for those who collect logs."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import msgspec

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class JsonFormatter(logging.Formatter):
    """One JSON object a line, with the field names of Go controllers."""

    def format(self, record: logging.LogRecord) -> str:
        """Render a record."""
        line = {
            "level": record.levelname.lower(),
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
            "logger": record.name.removeprefix("trainwright."),
            "msg": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = str(record.exc_info[1])
            line["stacktrace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def configure_logging(form: str, level: str) -> None:
    """Send logs to standard error. `form` is `json` or `text`, `level` one of `LEVELS`."""
    handler = logging.StreamHandler(sys.stderr)
    if form == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=LEVELS[level], handlers=[handler], force=True)
