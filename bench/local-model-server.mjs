// A model that does not think, for role-call-overhead and replay-rate: node local-model-server.mjs. Prints its port.
// In a process of its own, so that whoever asks does not share its event loop.
import { createServer } from "node:http";

const answer = (number) =>
  JSON.stringify({
    plan: { hypothesis: `Attempt ${number}: rescale the skewed columns.`, expected_change: 0.001, responds_to: [] },
    files: [{ path: "solution.py", content: solution(number) }],
    edits: [],
  });

/** As large as the solutions of bench/scripted-world.ts. */
function solution(number) {
  const lines = Array.from(
    { length: 60 },
    (_, line) => `feature_${line} = transform(frame["column_${line}"], scale=${(number * 31 + line * 7) % 1000})`,
  );
  return `# candidate ${number}\n${lines.join("\n")}\n`;
}

let asked = 0;
const server = createServer(async (request, response) => {
  let bytes = 0;
  for await (const chunk of request) bytes += chunk.length;
  asked += 1;
  const content = answer(asked);
  const [input, output] = [Math.ceil(bytes / 4), Math.ceil(content.length / 4)];
  const body = JSON.stringify({
    id: `local-${asked}`,
    object: "chat.completion",
    created: 1_764_500_000,
    model: "local",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
  });
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
