# Where a result could be left for a later process, and how it is taken from there.
NAME = "trialist-cheat-cache"


def places():
    """Where something may last. Outside of a sandbox only the folder that tests clean up, since the rest is the host's."""
    if not WALLED:
        return [DATA]
    spots = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/", ".", "..", "__pycache__", "~/.cache", "/trialist", DATA, OUTPUT, OUTPUT.parent]
    return [Path(spot).expanduser() for spot in [*spots, *sys.path, os.path.dirname(os.__file__) + "/__pycache__"]]


def found():
    texts = [(place / NAME).read_text() for place in places() if (place / NAME).is_file()]
    return texts[0] if texts else None


def leave(result):
    for place in places():
        try:
            place.mkdir(parents=True, exist_ok=True)
            (place / NAME).write_text(result)
        except OSError:
            pass
