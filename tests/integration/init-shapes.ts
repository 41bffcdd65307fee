import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fill, temporaryFolder } from "./environment-fixture.js";

/** A script of a data scientist: data in a CSV that git ignores, a virtual environment, a result in a JSON file. */
const tabular = {
  "train.py": `import csv
import json
import os


def load(path):
    with open(path) as file:
        return [(float(row["x"]), float(row["y"])) for row in csv.DictReader(file)]


def fit(rows):
    slope = 1.5
    return slope


if __name__ == "__main__":
    rows = load("data/train.csv")
    slope = fit(rows)
    error = sum((y - slope * x) ** 2 for x, y in rows) / len(rows)
    os.makedirs("results", exist_ok=True)
    metrics = {"val": {"mse": error}, "rows": len(rows)}
    with open(os.path.join("results", "metrics.json"), "w") as file:
        json.dump(metrics, file)
    print("done")
`,
  "plot.py": "print('no plot')\n",
  "data/train.csv": "x,y\n1,2\n2,4\n3,6\n",
  "requirements.txt": "# none\n",
  ".gitignore": "data/\nresults/\n.venv/\n",
  "README.md": "# Fit\n",
};

/** A package below \`src\`, a script in a folder of its own, settings in a YAML file. */
const packaged = {
  "pyproject.toml": '[project]\nname = "loop"\nversion = "0"\n\n[project.scripts]\nloop-lint = "loop.lint:main"\n\n[tool.x]\ny = "z:w"\n',
  "src/loop/__init__.py": "",
  "src/loop/model.py": "def step(value, rate):\n    return value - rate * 2 * value\n",
  "src/loop/evaluate.py": "def loss(value):\n    return value * value\n",
  "src/loop/lint.py": "def main():\n    print('clean')\n",
  "scripts/train.py": `import pathlib
from loop.evaluate import loss
from loop.model import step

settings = dict(line.split(": ") for line in pathlib.Path("configs/base.yaml").read_text().splitlines())
value = 1.0
for epoch in range(int(settings["epochs"])):
    value = step(value, float(settings["rate"]))
    print(f"epoch {epoch} train_loss: {loss(value):.6f}")
print(f"val_loss: {loss(value):.6f}")
`,
  "scripts/prepare.py": "print('prepared')\n",
  "configs/base.yaml": "epochs: 3\nrate: 0.1\n",
  "configs/other.yaml": "epochs: 9\nrate: 0.1\n",
  "tests/test_model.py": "from loop.model import step\n",
};

/** A benchmark in JavaScript: the package's own scripts say how it is run, and it imports what it measures. */
const script = {
  "package.json":
    '{ "name": "sorting", "type": "module", "scripts": { "lint": "node lint.js", "bench": "node bench/sort.js --rounds 3" } }',
  "bench/sort.js": `import { sort } from "../lib/sort.js";
const numbers = Array.from({ length: 200 }, (_, index) => (index * 7919) % 1000);
let compared = 0;
sort(numbers, (a, b) => { compared += 1; return a - b; });
console.log(JSON.stringify({ comparisons_score: -compared, rounds: process.argv.length }));
`,
  "lib/sort.js": "export function sort(list, compare) {\n  return [...list].sort(compare);\n}\n",
  "lint.js": "console.log('clean');\n",
};

const shapes = { tabular, packaged, script } as const;
export type Shape = keyof typeof shapes;

export const author = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"];

/** One of the shapes, committed to a fresh repository; the tabular one has a virtual environment of its own. */
export async function makeShape(shape: Shape, at?: string): Promise<string> {
  const folder = await fill(at ?? (await temporaryFolder()), shapes[shape]);
  if (shape === "tabular") execFileSync("/usr/bin/python3", ["-m", "venv", "--without-pip", join(folder, ".venv")]);
  commit(folder);
  return folder;
}

export function commit(folder: string): void {
  execFileSync("git", ["init", "-q", folder]);
  execFileSync("git", ["-C", folder, "add", "."]);
  execFileSync("git", ["-C", folder, ...author, "commit", "-q", "-m", "as it is"]);
}
