// The npm packages, exactly as package-lock.json has them.
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { npm, root, run, SetUpError, say, stamp, writeStamp } from "./step.mjs";
import { canInstallSystemPackages, installByName, systemPackages } from "./system-packages.mjs";

const step = "npm packages";
const minimumNode = [20, 19];

export function installNpmPackages() {
  refuseOldNode();
  // Native modules are built for one ABI of Node.js, so another version of Node.js means another installation.
  const lock = readFileSync(join(root, "package-lock.json"));
  const wanted = createHash("sha256").update(lock).update(process.versions.modules).digest("hex");
  if (stamp("packages") === wanted) return say(step, "up to date");
  if (agreesWithLock(JSON.parse(lock)) && nativeModulesLoad()) {
    writeStamp("packages", wanted);
    return say(step, "already installed as the lock has them");
  }
  say(step, "npm ci (a native module may have to be compiled: about a minute)");
  if (!npmCi() && !(installCompilers() && npmCi())) {
    throw new SetUpError(
      "npm ci failed; its own words are above",
      "if it could not reach the registry, mend that and start again; if package.json and the lock disagree, run npm install; if it could not compile better-sqlite3, install make, a C++ " +
        `compiler and python3 (Debian, Ubuntu: apt-get install -y ${systemPackages.compilers["apt-get"].join(" ")})`,
    );
  }
  writeStamp("packages", wanted);
}

function refuseOldNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > minimumNode[0] || (major === minimumNode[0] && minor >= minimumNode[1])) return;
  throw new SetUpError(
    `this is Node.js ${process.versions.node}, trialist needs ${minimumNode.join(".")} or newer`,
    "install a newer Node.js, see https://nodejs.org",
  );
}

function npmCi() {
  const [command, ...args] = npm("ci", "--include=dev", "--no-audit", "--no-fund");
  return run(command, args).ok;
}

/** What npm itself wrote down about its last installation, against the lock: somebody may have run npm ci by hand. */
function agreesWithLock(lock) {
  const record = join(root, "node_modules", ".package-lock.json");
  if (!existsSync(record)) return false;
  const installed = JSON.parse(readFileSync(record, "utf8")).packages;
  return Object.entries(lock.packages).every(([path, entry]) => {
    const found = installed[path];
    if (path === "" || (found === undefined && (entry.optional || entry.devOptional || entry.peer))) return true;
    return found?.version === entry.version && found?.integrity === entry.integrity;
  });
}

function nativeModulesLoad() {
  return run(process.execPath, ["-e", 'new (require("better-sqlite3"))(":memory:").close()'], { quiet: true }).ok;
}

function installCompilers() {
  if (run("c++", ["--version"], { quiet: true }).ok && run("make", ["--version"], { quiet: true }).ok) return false;
  if (!canInstallSystemPackages()) return false;
  say(step, "that failed and there is no compiler here: installing one, then once more");
  return installByName("compilers");
}
