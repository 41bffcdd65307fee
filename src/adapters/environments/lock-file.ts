/** A line of a lock file that cannot be used. */
export interface LockFault {
  /** 1-based. */
  readonly line: number;
  readonly what: string;
  readonly expected: string;
  readonly found: string;
  readonly todo: string;
}

const registryOption = /^(--index-url|--extra-index-url|--find-links|--trusted-host|--no-index|-i|-f)\b/;
const relock = "write the lock with hashes, for example: uv pip compile --generate-hashes requirements.in -o LOCK";

/** Joins continued lines (`\` at the end) and drops comments; keeps the number of the first line. */
export function logicalLines(text: string): { line: number; text: string }[] {
  const joined: { line: number; text: string }[] = [];
  let open: { line: number; text: string } | null = null;
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const plain = raw.replace(/(^|\s)#.*$/, "").trim();
    const current: { line: number; text: string } = open ?? { line: index + 1, text: "" };
    const continued = plain.endsWith("\\");
    current.text = `${current.text} ${continued ? plain.slice(0, -1) : plain}`.trim();
    open = continued ? current : null;
    if (!continued && current.text !== "") joined.push(current);
  }
  if (open !== null && open.text !== "") joined.push(open);
  return joined;
}

function faultOf(line: { line: number; text: string }): LockFault | null {
  const found = line.text.length > 120 ? `${line.text.slice(0, 120)}…` : line.text;
  if (registryOption.test(line.text)) {
    return {
      line: line.line,
      what: "the lock names a package registry",
      expected: "packages with hashes only: where they come from is each machine's own setting",
      found: line.text.split(/[\s=]/)[0] ?? found,
      todo: "remove the line; set the registry in pip's or uv's own configuration",
    };
  }
  if (line.text.startsWith("-")) {
    if (/^(--require-hashes|--only-binary|--no-binary|--prefer-binary)\b/.test(line.text)) return null;
    return { line: line.line, what: "the lock holds an option", expected: "packages with hashes only", found, todo: relock };
  }
  if (!/(^|\s)--hash=[a-z0-9]+:[0-9a-f]+/.test(line.text)) {
    return { line: line.line, what: "a package without a hash", expected: "NAME==VERSION --hash=sha256:…", found, todo: relock };
  }
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*(\[[^\]]*\])?\s*(==|@)/.test(line.text)) {
    return { line: line.line, what: "a package without an exact version", expected: "NAME==VERSION --hash=sha256:…", found, todo: relock };
  }
  return null;
}

/** Everything in a lock file that would make the runtime unfrozen or tied to one machine. */
export function lockFaults(text: string): LockFault[] {
  return logicalLines(text).flatMap((line) => faultOf(line) ?? []);
}

/** Whether the lock names any package at all; an empty one stands for the bare interpreter. */
export function namesPackages(text: string): boolean {
  return logicalLines(text).some((line) => !line.text.startsWith("-"));
}
