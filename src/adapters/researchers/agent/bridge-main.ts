// Runs inside the sandbox of an agent, as a file of its own that Node.js reads as it stands: no types are written in it. What
// the agent reaches at two ports of its own machine goes through two Unix sockets, the only way out that there is. Ends with
// the agent, and with whoever serves the sockets.
import { spawn } from "node:child_process";
import { connect, createServer } from "node:net";

const [folder = "", script = ""] = process.argv.slice(2);
const ports = { "model.sock": 4001, "mcp.sock": 4002 };

for (const [socket, port] of Object.entries(ports)) {
  const server = createServer({ allowHalfOpen: true }, (inner) => {
    const outer = connect({ path: `${folder}/${socket}`, allowHalfOpen: true });
    inner.on("error", () => outer.destroy());
    outer.on("error", () => inner.destroy());
    inner.pipe(outer).pipe(inner);
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", () => resolve(port));
  });
}

// Held open by trialist for as long as the session lasts: without it nobody would measure or pay for what the agent does.
const alive = connect(`${folder}/model.sock`, () => alive.write("GET /alive HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
// Its answer has no end and is thrown away; unread, it would hide that the other side is gone.
alive.resume();
alive.on("error", () => undefined);
alive.on("close", () => process.exit(70));

const agent = spawn("/bin/sh", [script], { stdio: "inherit" });
agent.on("exit", (code, signal) => process.exit(code ?? (signal === null ? 1 : 128)));
