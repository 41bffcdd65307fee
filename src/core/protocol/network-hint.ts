/** What programs print when they look for something that is not on this machine, by who prints it. One line of the table per text. */
const signs: readonly (readonly [program: string, text: RegExp])[] = [
  ["the C library's resolver: Python, bash, wget, Ruby", /Temporary failure in name resolution/i],
  ["the same, where a resolver is configured", /(Name or service not known|No address associated with hostname)/i],
  ["any program that opens a connection", /Network is unreachable/i],
  ["Node.js, npm, pnpm, yarn", /\b(getaddrinfo (EAI_AGAIN|ENOTFOUND)|code:? '?(EAI_AGAIN|ENOTFOUND|ENETUNREACH)\b)/],
  ["Node.js, by address", /connect ENETUNREACH/],
  ["curl, git over https, R", /Could not resolve host(name)?\b/i],
  ["curl, by address", /curl: \(7\) Failed to connect to (?!127\.|localhost|::1|\[::1)/],
  ["wget", /unable to resolve host address/i],
  ["urllib3, requests", /\bNameResolutionError\b|Failed to resolve '/],
  ["huggingface_hub", /An error happened while trying to locate the files? on the Hub/],
  ["huggingface_hub, transformers", /We couldn't connect to '?https?:|offline mode is enabled\b|\bOfflineModeIsEnabled\b/i],
  ["torchvision", /Dataset not found( or corrupted)?\. You can use download=True/],
  ["pip, without an index", /Could not find a version that satisfies the requirement .{1,200}\(from versions: none\)/],
  ["apt", /Temporary failure resolving '/],
  ["Go", /dial (tcp|udp):? lookup /],
  ["Java", /java\.net\.UnknownHostException/],
  ["Rust", /failed to lookup address information/i],
  ["Perl", /IO::Socket::INET\S*: Bad hostname/],
  ["ssh, git over ssh", /ssh: Could not resolve hostname/i],
];

/** Characters of an output's end that are looked at: a failed download is among the last things that a program says. */
const lookedAt = 64 * 1024;

/** What to do about a program that looked for a network; the sandbox never has one. */
export const networkHint =
  "its output speaks of a network, and the sandbox has none: name the data under `mounts` or `data` in environment.yaml";

/** `networkHint` when a failed program's output looks like a download that found no network; else null. It changes no status. */
export function networkHintOf(output: string): string | null {
  const end = output.slice(-lookedAt);
  return signs.some(([, text]) => text.test(end)) ? networkHint : null;
}
