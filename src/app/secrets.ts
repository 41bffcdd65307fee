import { existsSync } from "node:fs";

/** Secrets of this process's environment, which must get nowhere else. */
export interface Secrets {
  /** A text without the secrets in it. */
  readonly redact: (text: string) => string;
  /** Value of an environment variable. */
  readonly variable: (name: string) => string | undefined;
  /** A secret that did not come from the environment. */
  readonly learn: (secret: string) => void;
}

/** Names of variables whose values are secrets. */
const secretName = /key|token|secret|passw|credential|auth(?!or)/i;
/** A shorter value would be found in every text. Characters. */
const shortest = 8;

/** Where something lies, such as a socket or a file with a key; a key may begin with a slash too. */
function isPath(value: string): boolean {
  return value.startsWith("/") && existsSync(value);
}

/** The variables that neither are a secret nor hold one: for programs of the operator that need none of ours. */
export function withoutSecrets(variables: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const { redact } = secretsOf(variables);
  const open = Object.entries(variables).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && redact(entry[1]) === entry[1] && (!secretName.test(entry[0]) || isPath(entry[1])),
  );
  return Object.fromEntries(open);
}

/** Finds the secrets among the variables by their names. */
export function secretsOf(variables: Readonly<Record<string, string | undefined>>): Secrets {
  const known = new Set<string>();
  const learn = (secret: string): void => {
    if (secret.length >= shortest) known.add(secret);
  };
  for (const [name, value] of Object.entries(variables)) {
    // A path or a number under such a name is where something lies, not the thing.
    if (secretName.test(name) && value !== undefined && !/^\d+$/.test(value) && !isPath(value)) learn(value);
  }
  return {
    // The longest first: a secret may hold another one.
    redact: (text) => [...known].sort((a, b) => b.length - a.length).reduce((rest, secret) => rest.replaceAll(secret, "[redacted]"), text),
    variable: (name) => variables[name],
    learn,
  };
}
