/**
 * A coding agent as small as can be, a program for Node.js without packages: it asks its model in the wire format of its
 * vendor, calls tools over MCP, and follows the words that it was started with. What it finds out it tells its model, in
 * base64, so that nothing on the way can take anything out of it.
 */
export const smallAgent = String.raw`
import { readFileSync, readdirSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";

const [vendor, ...words] = process.argv.slice(2);
const { env } = process;
const configuration = JSON.parse(readFileSync("mcp.json", "utf8")).mcpServers.trialist;
let session = null;
let id = 0;

async function rpc(method, params) {
  const headers = { ...configuration.headers, "content-type": "application/json", accept: "application/json, text/event-stream" };
  if (session !== null) headers["mcp-session-id"] = session;
  const notification = method.startsWith("notifications/");
  const body = JSON.stringify({ jsonrpc: "2.0", method, params, ...(notification ? {} : { id: ++id }) });
  const response = await fetch(configuration.url, { method: "POST", headers, body });
  session = response.headers.get("mcp-session-id") ?? session;
  const text = await response.text();
  if (!response.ok) throw new Error("mcp " + response.status + " " + text);
  if (notification) return null;
  const line = text.split("\n").find((each) => each.startsWith("data:"));
  return JSON.parse(line === undefined ? text : line.slice(5)).result;
}
async function tool(name, input = {}) {
  if (session === null) {
    await rpc("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "small", version: "1" } });
    await rpc("notifications/initialized");
  }
  const result = await rpc("tools/call", { name, arguments: input });
  return result.content[0].text;
}

async function ask(text, more = {}) {
  const ways = {
    anthropic: [env.ANTHROPIC_BASE_URL + "/v1/messages", { "x-api-key": env.ANTHROPIC_API_KEY, "anthropic-version": "2023-06-01" }, { max_tokens: 1000 }],
    openai: [env.OPENAI_BASE_URL + "/chat/completions", { authorization: "Bearer " + env.OPENAI_API_KEY }, {}],
    responses: [env.OPENAI_BASE_URL + "/responses", { authorization: "Bearer " + env.OPENAI_API_KEY }, {}],
  };
  const [url, headers, rest] = ways[vendor];
  const said = vendor === "responses" ? { input: text } : { messages: [{ role: "user", content: text }] };
  const body = JSON.stringify({ model: "another", ...rest, ...said, ...more });
  const response = await fetch(url, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body });
  return { status: response.status, text: await response.text() };
}
const tell = (value) => ask("FOUND " + Buffer.from(JSON.stringify(value)).toString("base64"));

function reaches(port, host) {
  return new Promise((resolve) => {
    const socket = connect({ port, host, timeout: 2000 }, () => resolve("reached"));
    socket.on("error", (error) => resolve(error.code));
    socket.on("timeout", () => resolve("timeout"));
  });
}
function seen(path) {
  try {
    return statSync(path).isDirectory() ? readdirSync(path) : readFileSync(path, "utf8").slice(0, 200);
  } catch (error) {
    return error.code;
  }
}
function texts(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    return [path, readFileSync(path, "utf8")];
  });
}

const steps = {
  async look(port, ...paths) {
    const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    await tell({
      env,
      environments: processes.map((pid) => seen("/proc/" + pid + "/environ")),
      files: Object.fromEntries([...texts(env.HOME), ...texts("/trialist")]),
      network: [await reaches(Number(port), "127.0.0.1"), await reaches(80, "192.0.2.1")],
      interfaces: Object.keys(networkInterfaces()),
      paths: Object.fromEntries(paths.map((path) => [path, seen(path)])),
    });
  },
  async submit(value) {
    writeFileSync("main.sh", "echo " + value + " > out.txt\n");
    const content = "echo $((" + value + " + TRIALIST_SEED % 97)) > $TRIALIST_OUTPUT/out.txt\n";
    const told = JSON.parse(await tool("submit_trial", { hypothesis: "print " + value, files: [{ path: "main.sh", content }] }));
    await tool("wait_for_trial", { trial: told.trial });
  },
  async read() {
    await tool("read_environment");
  },
  async ask(text, more) {
    const { status, text: reply } = await ask(text, more === undefined ? {} : JSON.parse(more));
    console.log(status, reply);
    if (status >= 400) process.exit(7);
  },
  async together(count) {
    await Promise.all(Array.from({ length: Number(count) }, (_, index) => ask("at once " + index)));
  },
  async hang() {
    await new Promise((resolve) => setTimeout(resolve, 600_000));
  },
  async insist() {
    for (;;) {
      const { status } = await ask("and again");
      if (status === 402) await new Promise((resolve) => setTimeout(resolve, 200));
    }
  },
  async fail() {
    console.error("I give up");
    process.exit(3);
  },
};
const split = words.join("\0").split("\0then\0");
for (const step of split) {
  const [name, ...given] = step.split("\0");
  await steps[name](...given);
}
`;
