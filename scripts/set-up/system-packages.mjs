// What npm cannot bring: bubblewrap (the sandbox), libgomp (LightGBM and XGBoost need it) and a Python that can make a venv.
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { run, SetUpError, say } from "./step.mjs";

const step = "system packages";

/** Package names, by what is wanted and by package manager. */
export const systemPackages = {
  bubblewrap: { "apt-get": ["bubblewrap"], dnf: ["bubblewrap"], zypper: ["bubblewrap"], pacman: ["bubblewrap"], apk: ["bubblewrap"] },
  libgomp: { "apt-get": ["libgomp1"], dnf: ["libgomp"], zypper: ["libgomp1"], pacman: ["gcc-libs"], apk: ["libgomp"] },
  python: { "apt-get": ["python3", "python3-venv"], dnf: ["python3"], zypper: ["python3"], pacman: ["python"], apk: ["python3"] },
  compilers: {
    "apt-get": ["make", "g++", "python3"],
    dnf: ["make", "gcc-c++", "python3"],
    zypper: ["make", "gcc-c++", "python3"],
    pacman: ["base-devel", "python"],
    apk: ["build-base", "python3"],
  },
};

const managers = {
  "apt-get": { refresh: ["update"], install: ["install", "-y", "--no-install-recommends"] },
  dnf: { install: ["install", "-y"] },
  zypper: { install: ["--non-interactive", "install"] },
  pacman: { install: ["-Sy", "--noconfirm", "--needed"] },
  apk: { install: ["add", "--no-cache"] },
};

const present = {
  bubblewrap: () => onPath("bwrap"),
  libgomp: () => sharedLibrary("libgomp.so.1"),
  python: () => pythonForRuntimes() !== null,
};

export function installSystemPackages() {
  if (process.platform !== "linux") {
    throw new SetUpError(
      `candidates run in bubblewrap, which needs Linux; this is ${process.platform}`,
      "use a Linux machine, a virtual machine or a container that allows user namespaces",
    );
  }
  const missing = Object.keys(present).filter((name) => !present[name]());
  if (missing.length === 0) return say(step, "bubblewrap, libgomp and python3 are here");
  if (!canInstallSystemPackages()) throw cannotInstall(missing);
  say(step, `installing what is missing: ${missing.join(", ")}`);
  const failed = installByName(...missing) ? missing.filter((name) => !present[name]()) : missing;
  if (failed.length > 0) throw cannotInstall(failed);
}

/** Bubblewrap that is installed may still not be allowed to work: containers and hardened kernels forbid user namespaces. */
export function proveSandbox() {
  const probe = run("bwrap", ["--unshare-all", "--unshare-user", "--die-with-parent", "--ro-bind", "/", "/", "true"], { quiet: true });
  if (probe.ok) return say("sandbox", "bubblewrap can isolate a process here");
  throw new SetUpError(
    `bubblewrap is installed but cannot isolate a process on this machine: ${probe.output}`,
    "allow user namespaces. In a container: start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined (or as " +
      "privileged). On Ubuntu 24.04 and later: an AppArmor profile for bwrap, or sysctl kernel.apparmor_restrict_unprivileged_userns=0. " +
      "Elsewhere: sysctl user.max_user_namespaces must be above 0",
  );
}

/** The interpreter that runtimes are made from: the system's own before any other, because a sandbox sees /usr and not a home folder. */
export function pythonForRuntimes() {
  const candidates = ["/usr/bin/python3", "python3"];
  return candidates.find((python) => run(python, ["-c", "import ensurepip, venv"], { quiet: true }).ok) ?? null;
}

/** Never sudo: only a process that is root already may install. */
export function canInstallSystemPackages() {
  return process.getuid?.() === 0 && manager() !== null;
}

export function installByName(...wanted) {
  const name = manager();
  const { refresh, install } = managers[name];
  const packages = wanted.flatMap((each) => systemPackages[each][name]);
  const environment = { DEBIAN_FRONTEND: "noninteractive" };
  // A failed refresh is not the end: another source may be broken while the packages are there.
  if (refresh !== undefined) report(run(name, refresh, { environment, quiet: true }));
  return report(run(name, [...install, ...packages], { environment, quiet: true }));
}

function report(result) {
  if (!result.ok) process.stderr.write(`${result.output}\n`);
  return result.ok;
}

function cannotInstall(missing) {
  const name = manager() ?? "apt-get";
  const packages = missing.flatMap((each) => systemPackages[each][name]).join(" ");
  const { refresh, install } = managers[name];
  const command = `${refresh ? `${name} ${refresh.join(" ")} && ` : ""}${name} ${install.join(" ")} ${packages}`;
  const why = manager() === null ? "no known package manager is here" : "that needs root";
  return new SetUpError(
    `missing on this machine: ${missing.join(", ")}; set-up could not install it`,
    canInstallSystemPackages()
      ? `see the package manager's words above; the command was: ${command}`
      : `${why}, so install it yourself, then start again. As root: ${command}`,
  );
}

function manager() {
  return Object.keys(managers).find(onPath) ?? null;
}

function onPath(program) {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => folder !== "" && existsSync(join(folder, program)));
}

function sharedLibrary(name) {
  const folders = ["/lib64", "/usr/lib64", "/lib", "/usr/lib", `/usr/lib/${multiarch()}-linux-gnu`, `/lib/${multiarch()}-linux-gnu`];
  return folders.some((folder) => existsSync(join(folder, name)));
}

function multiarch() {
  return { x64: "x86_64", arm64: "aarch64" }[process.arch] ?? process.arch;
}
