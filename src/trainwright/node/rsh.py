"""The remote shell of MPI launchers: a program of its own, run as `rsh.py PODS [OPTION…] HOST COMMAND…`.

It finds the pod of the caller's job whose host name is HOST and lets the keeper of that pod start the
command: there it has the pod's variables, folder and namespaces, which nobody else may enter without
root, and here its streams. The command ends when this program does. Standard library only.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

OPTIONS_WITH_VALUE = "BbcDEeFIiJLlmOopQRSWw"
"""Of ssh, whose place this takes."""
GROUP_FILE, HOST_FILE = "job", "hostname"
PROTOCOL = 2
"""Keepers of this version start commands."""
LONGEST_WAIT_S = 60.0
"""For a busy machine to let the keeper come to it."""
CANNOT_REACH = 255
"""What ssh answers when it reaches nobody."""


def split_arguments(arguments: list[str]) -> tuple[str, list[str]]:
    """(host, command words), the options of ssh dropped; an empty host when there is none."""
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        option = arguments[index]
        takes_next = len(option) == 2 and option[1] in OPTIONS_WITH_VALUE
        index += 2 if takes_next else 1
    if index >= len(arguments):
        return "", []
    return arguments[index].rpartition("@")[2], arguments[index + 1 :]


def read_text(*path: str) -> str:
    """A small file's text, empty when it is not there."""
    try:
        with open(os.path.join(*path), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def find_run(pods: str, job: str, host: str) -> str:
    """The folder of the run of the job's pod that has the host name; empty when none runs."""
    short = host.partition(".")[0]
    for uid in os.listdir(pods):
        folder = os.path.join(pods, uid)
        if read_text(folder, HOST_FILE) != short or read_text(folder, GROUP_FILE) != job:
            continue
        run = find_running(os.path.join(folder, "containers"))
        if run:
            return run
    return ""


def find_running(containers: str) -> str:
    """The folder of the first container's newest run that is not over."""
    for name in sorted(os.listdir(containers)):
        runs = [run.split(".") for run in os.listdir(os.path.join(containers, name))]
        numbers = [(int(run[0]), int(run[1])) for run in runs if len(run) == 2]
        for attempt, number in sorted(numbers)[-1:]:
            run = os.path.join(containers, name, f"{attempt}.{number}")
            if read_text(run, "started.json") and not read_text(run, "exit.json"):
                return run
    return ""


def start_beside(run: str, argv: list[str]) -> int:
    """Let a run's keeper start a command with our streams, and wait for its exit code.

    Raises:
        OSError: the keeper cannot be asked, or does not answer.
    """
    if json.loads(read_text(run, "started.json"))["protocol"] < PROTOCOL:
        raise OSError("an older version started the pod; start the job anew")
    # Addresses of sockets are short; the name alone is.
    os.chdir(run)
    name = f"start.{os.urandom(8).hex()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(name)
        try:
            listener.listen(1)
            listener.settimeout(LONGEST_WAIT_S)
            tell_keeper(f"start {name}\n")
            connection, _ = listener.accept()
        finally:
            os.unlink(name)
    with connection:
        connection.settimeout(None)
        request = json.dumps({"argv": argv}).encode() + b"\n"
        sent = socket.send_fds(connection, [request], [0, 1, 2])
        connection.sendall(request[sent:])
        with connection.makefile("rb") as answers:
            answer = answers.readline()
    if not answer:
        raise OSError("the pod has ended")
    return int(json.loads(answer)["exitCode"])


def tell_keeper(text: str) -> None:
    """Write a line into the pipe from which the keeper of this folder takes commands."""
    pipe = os.open("control", os.O_WRONLY | os.O_NONBLOCK)
    try:
        os.write(pipe, text.encode())
    finally:
        os.close(pipe)


def main(pods: str, arguments: list[str]) -> int:
    """Run the command as ssh would, its words joined: the exit code is the command's."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    host, words = split_arguments(arguments)
    job = os.environ.get("TRAINWRIGHT_JOB", "")
    run = find_run(pods, job, host)
    if not run:
        sys.stderr.write(f"trainwright-rsh: no running pod of this job has the name {host}\n")
        return CANNOT_REACH
    try:
        return start_beside(run, ["sh", "-c", " ".join(words)])
    except OSError as error:
        sys.stderr.write(f"trainwright-rsh: {host} cannot be reached: {error}\n")
        return CANNOT_REACH


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
