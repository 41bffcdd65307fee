"""The null control: proposes the base again with another harmless last line, so nothing that it gains is a gain.

    python3 playbook/null_change.py < question.json > answer.json

It knows nothing of its environment, and the same file serves in every one. A new line it must be, since the same content
twice is refused as a duplicate.
"""

import json
import random
import re
import sys

#: What begins a comment, by the end of a file's name. A file of another kind is left alone.
MARKS = {".py": "#", ".sh": "#", ".r": "#", ".R": "#", ".jl": "#", ".rb": "#", ".js": "//", ".mjs": "//", ".ts": "//", ".c": "//", ".cpp": "//"}


def unchanged(program, mark):
    """The program without the line that an earlier answer of ours may have added."""
    return re.sub(rf"(?:\A|(?<=\n)){re.escape(mark)} null change [0-9a-f]{{8}}\n?\Z", "", program)


def main():
    question = json.load(sys.stdin)
    if question.get("protocol") != "trialist/role@1":
        sys.exit("this researcher speaks trialist/role@1")
    generator = random.Random(f"{question['seed']}/{question.get('round', 1)}")
    files = question["view"]["base"].get("files", {})
    known = [(path, mark) for path in sorted(files) for end, mark in MARKS.items() if path.endswith(end)]
    if not known:
        sys.exit("no file of the base takes a comment that this researcher knows")
    path, mark = known[0]
    program = unchanged(files[path], mark)
    end = "" if program == "" or program.endswith("\n") else "\n"
    changed = f"{program}{end}{mark} null change {generator.getrandbits(32):08x}\n"
    plan = {"hypothesis": "Nothing changes: the same program with another last comment.", "expected_change": 0}
    json.dump({"plan": plan, "files": {path: changed}}, sys.stdout)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
