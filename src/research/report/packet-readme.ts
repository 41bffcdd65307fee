import type { Packet } from "../../core/protocol/packet.js";
import { markdown, markdownCode } from "./hostile-text.js";
import { bytes, coverage, duration, money, plural, range, signed, significant } from "./numbers.js";
import { resultWords } from "./opening.js";

/** `README.md` of a packet: what it claims, what it holds, what it lacks, and how to check it. */
export function packetReadme(packet: Omit<Packet, "files">): string {
  const { run, trial, environment, spend, host, ledger, heldoutLooks, leftOut } = packet;
  return `# ${markdown(run)}, trial ${trial.id}

${trial.hypothesis === "" ? "No hypothesis is recorded." : markdown(trial.hypothesis, 2000)}

## What it claims

${claims(packet)
  .map((line) => `- ${line}`)
  .join("\n")}

## What it stands on

- Environment ${markdownCode(environment.name)}, digest ${markdownCode(environment.digest)}.
- Seeds: ${packet.seeds.environment} for every first measurement; ${packet.seeds.confirmations.length === 0 ? "no confirmation" : `${packet.seeds.confirmations.join(", ")} for the confirmation`}.
- ${plural(spend.searched, "searched trial")}, ${duration(spend.computeMs)} CPU, ${duration(spend.activeMs)} active, ${money(spend.costUsd)}, ${spend.tokens} tokens.
- Looks at the held-out data: ${heldoutLooks}. What they showed is not here.
- Measured on ${markdown(host.cpuModel)}, ${host.cpus} CPUs, ${bytes(host.memoryBytes)}, ${markdown(host.platform)}; ${Object.entries(
    host.versions,
  )
    .map(([name, version]) => `${markdown(name)} ${markdown(version)}`)
    .join(", ")}.
- Ledger of the run: chain ${markdownCode(ledger.chain)} after ${plural(ledger.events, "event")}. It is no signature: compare it with what the sender's \`trialist verify\` prints.

## What is in it

| path | holds |
|---|---|
| \`packet.json\` | all of this for programs, with the SHA-256 of every other file |
| \`candidate/\`, \`baseline/\`${packet.comparator === "t0" ? "" : ", `comparator/`"} | the files that were compared |
| \`environment/inventory.json\` | the frozen contract, and the digest of every file of the environment |
| \`environment/pack/\` | those files: evaluator, preparation, lock files |
| \`data/\` | data, where it is included |
| \`ledger.jsonl\` | the run's whole ledger, where it is included: \`trialist import\` reads it |

## What is not

${leftOut.length === 0 ? "Nothing was left out." : leftOut.map(({ what, why }) => `- ${markdown(what)}: ${markdown(why)}.`).join("\n")}

## Measure it again

\`\`\`sh
trialist rescore PACKET
\`\`\`

unpacks it, makes the environment ready, and measures the candidate beside what it was compared with, on these seeds and on fresh
ones, in a sandbox. Its evaluator and its candidate are programs of whoever sent you this.
`;
}

function claims(packet: Omit<Packet, "files">): string[] {
  const { verdict, estimate, trial, promotion, noise } = packet;
  const values = Object.entries(estimate ?? {}).map(([name, value]) => `${markdownCode(name, 60)} ${significant(value, 7)}`);
  const bounds =
    verdict === null || (verdict.lower === null && verdict.upper === null)
      ? "no interval"
      : `${coverage(verdict.level)} interval ${range(verdict.lower, verdict.upper, signed)}`;
  return [
    `Status ${trial.status}${trial.retracted ? ", **RETRACTED since**" : ""}.`,
    `Values: ${values.length === 0 ? "none" : values.join(", ")}${trial.selfReported ? ", **self-reported by the candidate**" : ""}.`,
    verdict === null
      ? "No verdict: it was never judged."
      : `${resultWords[verdict.result]}: gain ${signed(verdict.gain)} over ${packet.comparator}, ${bounds}.`,
    `Gain over the baseline: ${signed(packet.gainOverBaseline)}${noise === null ? "" : `; baseline ${significant(noise.mean, 7)} over ${plural(noise.n, "repetition")}`}.`,
    `Rule ${promotion.rule}, level ${promotion.level}.`,
    ...(packet.sandbox === "none" ? ["**Measured without a sandbox: no value here is proof.**"] : []),
    ...(trial.restsOnRetracted.length === 0 ? [] : [`**Rests on ${trial.restsOnRetracted.join(", ")}, retracted since.**`]),
  ];
}
