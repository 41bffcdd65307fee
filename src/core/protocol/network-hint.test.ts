import { describe, expect, it } from "vitest";
import { networkHint, networkHintOf } from "./network-hint.js";

/** As the programs print them in a sandbox without network; the end of each. */
const printed: Readonly<Record<string, string>> = {
  "Python's urllib": "    raise URLError(err)\nurllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>\n",
  "Python's urllib, by address": "urllib.error.URLError: <urlopen error [Errno 101] Network is unreachable>\n",
  requests: `requests.exceptions.ConnectionError: HTTPSConnectionPool(host='example.org', port=443): Max retries exceeded with url: / (Caused by NameResolutionError("HTTPSConnection(host='example.org', port=443): Failed to resolve 'example.org' ([Errno -3] Temporary failure in name resolution)"))\n`,
  "requests, by address": `requests.exceptions.ConnectionError: HTTPConnectionPool(host='10.0.0.1', port=80): Max retries exceeded with url: / (Caused by NewConnectionError("HTTPConnection(host='10.0.0.1', port=80): Failed to establish a new connection: [Errno 101] Network is unreachable"))\n`,
  huggingface_hub:
    "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub and we cannot find the requested files in the local cache. Please check your connection and try again or make sure your Internet connection is on.\n",
  "huggingface_hub, a snapshot":
    "An error happened while trying to locate the files on the Hub, and we cannot find the appropriate snapshot folder for the specified revision on the local disk. Please check your internet connection and try again.\n",
  "huggingface_hub, off line":
    "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/models/gpt2: offline mode is enabled. To disable it, please unset the `HF_HUB_OFFLINE` environment variable.\n",
  torchvision: "RuntimeError: Dataset not found. You can use download=True to download it\n",
  curl: "curl: (6) Could not resolve host: example.org\n",
  "curl, by address": "curl: (7) Failed to connect to 10.0.0.1 port 80 after 0 ms: Couldn't connect to server\n",
  wget: "Resolving example.org (example.org)... failed: Temporary failure in name resolution.\nwget: unable to resolve host address ‘example.org’\n",
  git: "Cloning into 'x'...\nfatal: unable to access 'https://example.org/x.git/': Could not resolve host: example.org\n",
  "Node.js": "  errno: -3001,\n  code: 'EAI_AGAIN',\n  syscall: 'getaddrinfo',\n  hostname: 'example.org'\n}\n\nNode.js v20.20.2\n",
  npm: "npm error code EAI_AGAIN\nnpm error syscall getaddrinfo\nnpm error errno EAI_AGAIN\n",
  pip: "ERROR: Could not find a version that satisfies the requirement six (from versions: none)\nERROR: No matching distribution found for six\n",
  bash: "bash: line 1: example.org: Temporary failure in name resolution\nbash: line 1: /dev/tcp/example.org/80: Invalid argument\n",
  "bash, by address": "bash: connect: Network is unreachable\n",
  perl: "cannot: IO::Socket::INET: Bad hostname 'example.org:80' Invalid argument at -e line 1.\n",
};

/** Failures of other kinds: a program's own server, files, words that only sound alike. */
const others: Readonly<Record<string, string>> = {
  "a server of its own that is not there": "urllib.error.URLError: <urlopen error [Errno 111] Connection refused>\n",
  "curl to itself": "curl: (7) Failed to connect to localhost port 9 after 0 ms: Couldn't connect to server\n",
  "curl to itself, by address": "curl: (7) Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server\n",
  "a missing file": "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'\n",
  "a network that is a model": "RuntimeError: the network diverged: loss is nan\n",
  nothing: "",
};

describe("networkHintOf", () => {
  it.each(Object.entries(printed))("knows %s", (_program, text) => {
    expect(networkHintOf(text)).toBe(networkHint);
    expect(networkHintOf(`${"epoch 1\n".repeat(20_000)}${text}`)).toBe(networkHint);
  });

  it.each(Object.entries(others))("says nothing of %s", (_what, text) => {
    expect(networkHintOf(text)).toBeNull();
  });

  it("looks at the end alone, and at hostile text in bounded time", () => {
    expect(networkHintOf(`${printed["curl"]}${"x".repeat(100_000)}`)).toBeNull();
    expect(networkHintOf("Could not find a version that satisfies the requirement ".repeat(5000))).toBeNull();
  });
});
