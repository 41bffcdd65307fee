import { WireError } from "./traffic.js";

/** Largest reply, unpacked. */
const maxReplyBytes = 32 * 1024 * 1024;

/**
 * Reads a reply to its end and hands on its text, secrets removed; what was read of a reply that breaks off is handed on too.
 * @throws WireError for a reply that no answer can be read from
 */
export async function readReply(response: Response, redact: (text: string) => string, keep: (text: string) => void): Promise<void> {
  const { status } = response;
  if (status >= 300 && status < 400) {
    await response.body?.cancel();
    throw new WireError("redirected", `the server redirects elsewhere (status ${status}), which is not followed`);
  }
  const text = await readText(response, redact, keep);
  if (status < 200 || status > 599) throw new WireError("not_json", `the reply has status ${status}`);
  if (response.ok) assertJson(response, text);
}

async function readText(response: Response, redact: (text: string) => string, keep: (text: string) => void): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const text = (): string => redact(Buffer.concat(chunks).toString("utf8"));
  const reader = response.body?.getReader();
  try {
    for (;;) {
      const read = await reader?.read();
      if (read === undefined || read.done) break;
      bytes += read.value.byteLength;
      if (bytes > maxReplyBytes) {
        // Nothing of it is of use, and a record of it would only fill the disk.
        chunks.length = 0;
        await reader?.cancel();
        throw new WireError("too_large", `the reply is larger than ${maxReplyBytes} bytes`);
      }
      chunks.push(read.value);
    }
  } finally {
    if (chunks.length > 0) keep(text());
  }
  return text();
}

function assertJson(response: Response, text: string): void {
  const type = response.headers.get("content-type") ?? "no content type";
  const start = JSON.stringify(text.slice(0, 120));
  if (!/[/+]json\b/.test(type)) throw new WireError("not_json", `JSON was expected, ${type} came: ${start}`);
  try {
    JSON.parse(text);
  } catch (cause) {
    throw new WireError("not_json", `JSON was expected, what came cannot be read as such: ${start}`, { cause });
  }
}
