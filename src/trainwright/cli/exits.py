"""Exit codes, the same for every command, and which error ends in which."""

from __future__ import annotations

import asyncio
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class Exit(IntEnum):
    """What the shell sees."""

    OK = 0
    JOB_FAILED = 1
    USAGE = 2
    INVALID = 3
    NOT_FOUND = 4
    REFUSED = 5
    UNREACHABLE = 10
    STOPPED = 20
    TIMEOUT = 124
    INTERRUPTED = 130


def fail(code: Exit, message: str) -> NoReturn:
    """Print one error and end."""
    print(f"error: {message}", file=sys.stderr)
    raise typer.Exit(code)


def run_command(main: Callable[[], Coroutine[Any, Any, Exit | None]]) -> NoReturn:
    """Run an async command to its end and exit with its code, or with that of its error."""
    from trainwright.base.errors import TrainwrightError

    try:
        code = asyncio.run(main())
    except TrainwrightError as error:
        fail(find_exit(error), describe_error(error))
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone, as with `| head`
        raise typer.Exit(Exit.OK) from None
    raise typer.Exit(code or Exit.OK)


def describe_error(error: Exception) -> str:
    """The sentence for an error: its own, and what to do where a server cannot know."""
    from trainwright.base.errors import Unauthorized

    if isinstance(error, Unauthorized):
        return (
            f"the server does not accept the token of the kubeconfig ({error}); for the laptop's plane "
            "take the file of `trainwright status --kubeconfig-path`, for a cluster log in again"
        )
    return str(error)


def find_exit(error: Exception) -> Exit:
    """The exit code for an error."""
    from trainwright.base import errors

    if isinstance(error, errors.Forbidden):
        # A quota refuses what is valid; every other rule that answers 403 is about the object.
        return Exit.REFUSED if "exceeded quota" in error.message else Exit.INVALID
    table: tuple[tuple[type[Exception] | tuple[type[Exception], ...], Exit], ...] = (
        (errors.Unreachable, Exit.UNREACHABLE),
        (errors.NotFound, Exit.NOT_FOUND),
        ((errors.Invalid, errors.BadRequest, errors.RequestTooLarge), Exit.INVALID),
        (errors.Unauthorized, Exit.UNREACHABLE),
        (errors.Timeout, Exit.TIMEOUT),
        (errors.ApiError, Exit.REFUSED),
        (errors.LocalRunError, Exit.REFUSED),
        (errors.Unsupported, Exit.REFUSED),
        (ValueError, Exit.INVALID),
    )
    return next((code for kinds, code in table if isinstance(error, kinds)), Exit.REFUSED)
