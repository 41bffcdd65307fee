"""Whether every repeat brought the result; the engine times them."""

import hashlib
import json
import os
from pathlib import Path

wanted = hashlib.pbkdf2_hmac("sha256", b"work", b"salt", 700_000).hex()
results = [path.read_text() for path in sorted(Path(os.environ["TRIALIST_ARTIFACTS"]).glob("repeat-*/result.txt"))]
if set(results) == {wanted}:
    measurement = {"metrics": {"right": 1}}
else:
    measurement = {"invalid": "a result is wrong"}
Path(os.environ["TRIALIST_MEASUREMENT"]).write_text(json.dumps(measurement) + "\n")
