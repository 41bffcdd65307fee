// The floors of the house, one rule per edge. Imports only ever point down:
//
//   interfaces → app → research → core          adapters → core
//                app → adapters
//
// Each comment says why the edge is forbidden and what to do instead. Unit tests sit beside their sources and may reach
// anything, so they are left out.

/** What the core may use of npm: schemas, and small libraries that compute and do nothing else. */
const pureLibraries = ["zod", "jstat", "picomatch"];
const anyPureLibrary = `(^|/)node_modules/(@types/)?(${pureLibraries.join("|")})/`;

const sealedFile = "^src/adapters/ledger/sealed([.-]|/)";

export default {
  forbidden: [
    // ── core ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    {
      name: "core-stands-alone",
      severity: "error",
      comment:
        "The core is the ground floor: whatever it imported from above could change what a recorded run means. " +
        "Declare a port in src/core/ports and let an adapter implement it, or move the pure part of the code into the core.",
      from: { path: "^src/core/" },
      to: { path: "^(src|web|bench|tests)/", pathNot: "^src/core/" },
    },
    {
      name: "core-uses-pure-libraries-only",
      severity: "error",
      comment:
        "decide and evolve must give the same events on every machine, for ever; a library that touches the host cannot promise that. " +
        "Use it in an adapter behind a port. A library that only computes may be added to pureLibraries in this file.",
      from: { path: "^src/core/" },
      to: { dependencyTypes: ["npm", "npm-dev", "npm-optional", "npm-peer", "npm-no-pkg", "npm-unknown"], pathNot: anyPureLibrary },
    },
    {
      name: "core-has-no-io",
      severity: "error",
      comment:
        "No file system, process, network or clock in the core: it is replayed byte by byte. " +
        "Let the value arrive in a command, or declare a port and do the work in an adapter.",
      from: { path: "^src/core/" },
      to: { dependencyTypes: ["core"], pathNot: "^(node:)?crypto$" },
    },
    {
      name: "core-hashes-in-one-place",
      severity: "error",
      comment:
        "Equal values must have equal names, so there is one canonical JSON and one hash over it. " +
        "Import digest functions from src/core/protocol/canonical.ts instead of node:crypto.",
      from: { path: "^src/core/", pathNot: "^src/core/protocol/canonical\\.ts$" },
      to: { dependencyTypes: ["core"], path: "^(node:)?crypto$" },
    },
    {
      name: "protocol-is-the-lowest-floor",
      severity: "error",
      comment:
        "The protocol is the language that old ledgers are written in; it must not depend on what is done with it. " +
        "Move the shared type into src/core/protocol, or the logic out of it.",
      from: { path: "^src/core/protocol/" },
      to: { path: "^src/core/", pathNot: "^src/core/(protocol|ports)/" },
    },
    {
      name: "ports-speak-protocol-only",
      severity: "error",
      comment:
        "A port is what an adapter implements; it must not know how the harness or an organization thinks. " +
        "Put the type that both need into src/core/protocol.",
      from: { path: "^src/core/ports/" },
      to: { path: "^src/core/", pathNot: "^src/core/(protocol|ports)/" },
    },
    {
      name: "statistics-know-no-policy",
      severity: "error",
      comment: "Intervals and draws are arithmetic; what follows from them is the harness's affair. Pass numbers in and give numbers back.",
      from: { path: "^src/core/statistics/" },
      to: { path: "^src/core/", pathNot: "^src/core/(protocol|statistics)/" },
    },
    // ── adapters ─────────────────────────────────────────────────────────────────────────────────────────────────────
    {
      name: "adapters-look-down-only",
      severity: "error",
      comment:
        "An adapter fulfils a port and knows nothing of who uses it. " +
        "Take what is needed as an argument from src/app, or add it to the port in src/core/ports.",
      from: { path: "^src/adapters/" },
      to: { path: "^src/(research|app|interfaces)/" },
    },
    {
      name: "adapters-do-not-know-each-other",
      severity: "error",
      comment:
        "Adapters are exchangeable one by one only while none names another. " +
        "Depend on the port in src/core/ports and let src/app pass the other adapter in.",
      from: { path: "^src/adapters/([^/]+)/" },
      to: { path: "^src/adapters/", pathNot: ["^src/adapters/$1/", "^src/adapters/sandbox/"] },
    },
    {
      name: "sandbox-for-those-that-run-untrusted-code",
      severity: "error",
      comment:
        "Executors, researchers and environments start other people's code and therefore use the sandbox; nothing else starts any. " +
        "Go through the executor port.",
      from: { path: "^src/adapters/", pathNot: "^src/adapters/(sandbox|executors|researchers|environments)/" },
      to: { path: "^src/adapters/sandbox/" },
    },
    // ── research ─────────────────────────────────────────────────────────────────────────────────────────────────────
    {
      name: "research-names-no-adapter",
      severity: "error",
      comment:
        "The runner and the engine work with any ledger, executor and researcher, and their tests with fakes. " +
        "Take a port from src/core/ports as an argument; src/app chooses what fulfils it.",
      from: { path: "^src/research/" },
      to: { path: "^src/adapters/" },
    },
    {
      name: "research-looks-down-only",
      severity: "error",
      comment:
        "Research does not know how it is wired or shown. Return a value or publish an event; app and interfaces take it from there.",
      from: { path: "^src/research/" },
      to: { path: "^src/(app|interfaces)/" },
    },
    // ── app ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    {
      name: "app-knows-no-screen",
      severity: "error",
      comment: "The same use case serves the command line, the server and MCP. Return data, or take a listener as an argument.",
      from: { path: "^src/app/" },
      to: { path: "^src/interfaces/" },
    },
    {
      name: "executors-are-made-in-one-place",
      severity: "error",
      comment: "Which executor runs the stages is chosen once for all use cases. Take it from src/app/executors.ts.",
      from: { path: "^src/app/", pathNot: "^src/app/executors\\.ts$" },
      to: { path: "^src/adapters/executors/[^/]+\\.ts$", pathNot: "/abandoned\\.ts$" },
    },
    {
      name: "ledgers-are-opened-in-one-place",
      severity: "error",
      comment: "Which ledger a run has is chosen once for all use cases. Open it with src/app/ledgers.ts.",
      from: { path: "^src/app/", pathNot: "^src/app/ledgers\\.ts$" },
      to: { path: "^src/adapters/ledger/sqlite-ledger\\.ts$" },
    },
    // ── interfaces ───────────────────────────────────────────────────────────────────────────────────────────────────
    {
      name: "interfaces-name-no-adapter",
      severity: "error",
      comment:
        "Only src/app chooses concrete adapters, so that every interface gets the same ones. Add a function to src/app and call that.",
      from: { path: "^src/interfaces/" },
      to: { path: "^src/adapters/" },
    },
    {
      name: "interfaces-go-through-app",
      severity: "error",
      comment:
        "A command, route or tool parses, calls one use case and shows the answer; logic in it would be missing from its siblings. " +
        "Add a function to src/app. Types of the protocol come from src/core; pure renderings of a state from research/report.",
      from: { path: "^src/interfaces/" },
      to: { path: "^src/research/", pathNot: "^src/research/report/" },
    },
    // ── held-out data ────────────────────────────────────────────────────────────────────────────────────────────────
    {
      name: "sealed-opened-by-heldout-only",
      severity: "error",
      comment:
        "Held-out results lie in a file that a run never opens; whoever can import its reader can leak it into a decision. " +
        "Ask src/app/heldout for what an operator may see.",
      from: { pathNot: ["^src/app/heldout", sealedFile] },
      to: { path: sealedFile },
    },
    {
      name: "a-run-cannot-reach-sealed",
      severity: "error",
      comment:
        "Not even in several steps: what a run is made of must have no path to the held-out results. " +
        "Find the import in the middle of the reported chain and cut it there.",
      from: {
        path: "^src/(core|research|app/(own-run|create-run|list-run|record-start|run-configuration|perform|tool-sessions|researchers|agents|optimizers|known-calibration|known-gate))",
      },
      to: { path: sealedFile, reachable: true },
    },
    // ── everywhere ───────────────────────────────────────────────────────────────────────────────────────────────────
    {
      name: "no-cycles",
      severity: "error",
      comment:
        "Files in a circle can only be understood all at once, and loading order decides what they see. " +
        "Move what both need into a third file below them.",
      from: {},
      to: { circular: true },
    },
    {
      name: "no-orphans",
      severity: "error",
      comment:
        "Nobody imports this file and it imports nobody: it is a leftover, or a line in a registry is missing. Delete it or register it.",
      from: { orphan: true, pathNot: ["^src/interfaces/cli/main\\.ts$", "\\.d\\.ts$"] },
      to: {},
    },
    {
      name: "source-does-not-need-tests",
      severity: "error",
      comment: "What is shipped cannot import what is not. Move the shared part into src.",
      from: { path: "^src/" },
      to: { path: "^(tests|bench|scripts|examples)/" },
    },
    {
      name: "dependencies-are-declared",
      severity: "error",
      comment:
        "A package that is installed only because another one needs it, or only for development, is missing on a user's machine. " +
        "Add it to dependencies in package.json, and a line to docs/decisions/0001-dependencies.md.",
      from: { path: "^src/" },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"], pathNot: "(^|/)node_modules/@types/" },
    },
    {
      name: "imports-resolve",
      severity: "error",
      comment: "The imported file or package is not there. Correct the path (with its .js ending), or install the package.",
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: "(^|/)node_modules/" },
    exclude: { path: "\\.test\\.ts$" },
    // Types count too: an interface imported from above is a dependency on the floor above.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default", "types"] },
  },
};
