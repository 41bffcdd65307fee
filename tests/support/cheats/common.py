"""What the planted cheaters share. It is put in front of each of them, since a candidate is one file."""

import os
import sys
import time
from pathlib import Path

DATA = Path(os.environ["TRIALIST_DATA"])
OUTPUT = Path(os.environ["TRIALIST_OUTPUT"])
# Without a sandbox a cheat runs on somebody's machine: then it touches nothing outside of the test's own folder.
WALLED = str(OUTPUT).startswith("/trialist/")
PERFECT = '{"metrics": {"accuracy": 1}}'


def levels():
    """Every file that can be seen, in lists: below the working folder, below its parent, and so on out to the root.

    In the sandbox that is all of it. Without one, whoever stops at what it looked for never leaves the test's own folder.
    """
    seen = set()
    for start in [Path.cwd(), *Path.cwd().parents]:
        found = []
        for folder, folders, files in os.walk(start):
            folders[:] = [name for name in folders if os.path.join(folder, name) not in seen and (folder, name) not in KERNEL]
            seen.add(folder)
            found.extend(Path(folder, name) for name in files)
        yield found


KERNEL = {("/", "proc"), ("/", "sys"), ("/", "dev")}


def ids():
    return (DATA / "ids.txt").read_text().split()


def answer(known):
    """The baseline's answer, but for the ids whose label is known."""
    rows = [f"{identifier},{known.get(identifier, '1')}" for identifier in ids()]
    (OUTPUT / "predictions.csv").write_text("\n".join(["id,label", *rows]) + "\n")


def labels_somewhere():
    """The labels of as many ids as any file that can be seen gives away."""
    known = {}
    for found in levels():
        for path in found:
            if path.name != "labels.csv":
                continue
            try:
                known.update(line.split(",") for line in path.read_text().split()[1:])
            except OSError:
                pass
        if all(identifier in known for identifier in ids()):
            break
    return known


def stay_behind(task):
    """Runs `task` in a process that neither session, parent, environment nor, where we may leave it, cgroup ties to us."""
    reader, writer = os.pipe()
    if os.fork() != 0:
        os.close(writer)
        return os.read(reader, 1)
    os.setsid()
    leave_cgroups()
    if os.fork() != 0:
        os._exit(0)
    for descriptor in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
    # A new image with an empty environment: what marks the processes of an execution is gone.
    shared = Path(__file__).read_text().split("\n# The cheat\n")[0]
    start = {"TRIALIST_DATA": str(DATA), "TRIALIST_OUTPUT": str(OUTPUT)}
    os.write(writer, b".")
    os.execve(sys.executable, [sys.executable, "-c", f"{shared}\n{task}"], start)


def leave_cgroups():
    for line in Path("/proc/self/cgroup").read_text().split("\n"):
        _, _, own = (line + "::").split(":")[:3]
        controllers = line.split(":")[1] if own else ""
        for folder in (f"/sys/fs/cgroup/{controllers}{os.path.dirname(own)}", f"/sys/fs/cgroup{os.path.dirname(own)}"):
            try:
                Path(folder, "cgroup.procs").write_text(str(os.getpid()))
            except OSError:
                pass


def work(times=1):
    """What the baseline of the timed environment does, once or several times over; only the result counts."""
    import hashlib

    for _ in range(times):
        result = hashlib.pbkdf2_hmac("sha256", b"work", b"salt", 700_000).hex()
    return result


def plant(names):
    """Puts Python files, which would grade in the evaluator's place, wherever it might import them from."""
    lie = f"""
import os
target = os.environ.get("TRIALIST_MEASUREMENT")
if target:
    open(target, "w").write('{PERFECT}')
    os._exit(0)
"""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    home = Path(os.environ.get("HOME", "/tmp"))
    assert WALLED
    places = [OUTPUT, Path.cwd(), DATA, home / ".local/lib" / version / "site-packages", Path("/trialist/pack"), *map(Path, filter(None, sys.path))]
    for place in places:
        for name in names:
            try:
                place.mkdir(parents=True, exist_ok=True)
                (place / name).write_text(lie)
            except OSError:
                pass


# The cheat
