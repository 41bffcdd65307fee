"""Running a pack's programs as the engine would, without a sandbox: folders in environment variables, JSON out."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ENVIRONMENTS = Path(__file__).resolve().parents[2] / "environments"


def run_json(pack, arguments, question):
    """Runs a researcher of the pack and gives its answer."""
    command = [sys.executable, "-B", *arguments]
    done = subprocess.run(command, cwd=ENVIRONMENTS / pack, input=json.dumps(question), capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


def question(role, program, *, seed=1, round=1, violations=(), failure=None, memory=(), status=None, value=None):
    """A role call as researchers get it."""
    metric = {"name": "log_loss", "direction": "minimize"}
    return {
        "protocol": "trialist/role@1", "role": role, "seed": seed, "round": round, "violations": list(violations),
        "view": {
            "environment": {"name": "a pack", "description": "", "metrics": [metric], "editable": ["solution.py"]},
            "base": {"trial": "t1" if status else None, "status": status, "value": value, "files": {"solution.py": program}},
            "failure": failure, "memory": list(memory), "best": None, "trialsLeft": 10,
        },
    }


class Evaluation:
    """A pack's evaluator over made-up labels, in a temporary folder."""

    def __init__(self, pack, inloop, heldout):
        self.pack = pack
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.artifacts = self.root / "artifacts"
        self.artifacts.mkdir()
        for name, files in (("inloop", inloop), ("heldout", heldout)):
            (self.root / name).mkdir()
            for file, text in files.items():
                (self.root / name / file).write_text(text, encoding="utf-8")

    def write(self, name, content):
        """A declared output of the candidate."""
        path = self.artifacts / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def measure(self, *arguments, heldout=False):
        """The measurement, as JSON without NaN or Infinity; an evaluator that fails raises."""
        target = self.root / "measurement.json"
        target.unlink(missing_ok=True)
        environment = {
            **os.environ, "TRIALIST_SEED": "1", "TRIALIST_DATA": str(self.root), "TRIALIST_ARTIFACTS": str(self.artifacts),
            "TRIALIST_LABELS": str(self.root / ("heldout" if heldout else "inloop")), "TRIALIST_MEASUREMENT": str(target),
        }
        if heldout:
            environment["TRIALIST_INLOOP"] = str(self.root / "inloop")
        command = [sys.executable, "-B", "evaluate.py", *arguments, *(["--heldout"] if heldout else [])]
        subprocess.run(command, cwd=ENVIRONMENTS / self.pack, env=environment, check=True, capture_output=True, timeout=60)
        return json.loads(target.read_text(encoding="utf-8"), parse_constant=self.refuse)

    @staticmethod
    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    def close(self):
        self.folder.cleanup()
