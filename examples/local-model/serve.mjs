// A language model on this machine that speaks /v1/chat/completions: node serve.mjs LLAMA_FOLDER MODEL.gguf CONTEXT_TOKENS
// Prints its address; GET /counted says what it has read and written.
import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder = "", modelPath = "", context = "4096"] = process.argv.slice(2);
const contextTokens = Number(context);
// The package lies in the cache, where no import by name finds it.
const llamaModule = pathToFileURL(join(folder, "node_modules", "node-llama-cpp", "dist", "index.js")).href;
const { getLlama, LlamaGrammarEvaluationState } = await import(llamaModule);

// One thread is enough for so small a model. Several wait for each other by spinning, which is a hundred times slower as soon
// as another program wants one of the cores.
const threads = 1;
const llama = await getLlama({ build: "never", gpu: false, logLevel: "error", maxThreads: threads });
const model = await llama.loadModel({ modelPath });
const sequence = (await model.createContext({ contextSize: contextTokens, threads })).getSequence();

// Ends with whoever started it, however that ends.
process.stdin.resume().once("close", () => process.exit());

/** Tokens of every answered request: what a bill is held against. */
const counted = { requests: 0, refused: 0, input: 0, cachedInput: 0, output: 0 };
/** One sequence: whoever asks meanwhile waits for its turn. */
let turn = Promise.resolve();

const server = createServer((request, response) => {
  turn = turn.then(() => serve(request, response)).catch((error) => send(response, 500, { error: { message: String(error) } }));
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/v1`));

async function serve(request, response) {
  if (request.method === "GET" && request.url === "/counted") return send(response, 200, counted);
  if (request.method !== "POST" || request.url !== "/v1/chat/completions")
    return send(response, 404, { error: { message: `nothing is at ${request.url}` } });
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const { status, body } = await complete(JSON.parse(Buffer.concat(chunks).toString("utf8")));
  send(response, status, body);
}

function send(response, status, document) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(document));
}

async function complete({ messages, max_tokens: maxTokens = 300, temperature = 0.8, response_format: format, model: name }) {
  const tokens = model.tokenize(chatOf(messages), true);
  if (tokens.length + maxTokens > contextTokens) {
    counted.refused += 1;
    const message = `maximum context length is ${contextTokens} tokens: ${tokens.length} came and ${maxTokens} are to be written`;
    return { status: 400, body: { error: { code: "context_length_exceeded", message } } };
  }
  const { cached, written, ended } = await write(tokens, maxTokens, { temperature, schema: format?.json_schema?.schema });
  counted.requests += 1;
  counted.input += tokens.length;
  counted.cachedInput += cached;
  counted.output += written.length;
  const usage = {
    prompt_tokens: tokens.length,
    completion_tokens: written.length,
    total_tokens: tokens.length + written.length,
    prompt_tokens_details: { cached_tokens: cached },
  };
  const message = { role: "assistant", content: model.detokenize(written) };
  const choices = [{ index: 0, message, finish_reason: ended ? "stop" : "length" }];
  return { status: 200, body: { id: `local-${counted.requests}`, object: "chat.completion", model: name, choices, usage } };
}

/** The beginning that the prompt shares with the one before is not read again. */
async function write(tokens, maxTokens, { temperature, schema }) {
  await sequence.adaptStateToTokens(tokens.slice(0, -1), false);
  const cached = sequence.nextTokenIndex;
  const grammar = schema === undefined ? null : await llama.createGrammarForJsonSchema(schema);
  const rules = grammar === null ? {} : { grammarEvaluationState: new LlamaGrammarEvaluationState({ model, grammar }) };
  const written = [];
  // Another seed each time: a run that asks the same again, after it was suspended, is to get another answer.
  const options = { temperature, seed: counted.requests + 1, yieldEogToken: true, ...rules };
  for await (const token of sequence.evaluate(tokens.slice(cached), options)) {
    if (model.isEogToken(token)) return { cached, written, ended: true };
    written.push(token);
    if (written.length >= maxTokens) break;
  }
  return { cached, written, ended: false };
}

/** ChatML, which this model was trained with. */
function chatOf(messages) {
  const textOf = (content) => (typeof content === "string" ? content : content.map(({ text }) => text).join(""));
  const said = messages.map(({ role, content }) => `<|im_start|>${role}\n${textOf(content)}<|im_end|>\n`);
  return `${said.join("")}<|im_start|>assistant\n`;
}
