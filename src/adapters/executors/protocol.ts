import type { Socket } from "node:net";
import type { StageExecution } from "../../core/ports/executor.js";
import type { WireError } from "./errors.js";

/** Raised whenever a message changes its meaning: a client does not talk to a supervisor of another protocol. */
export const protocolVersion = 1;

/** Client to supervisor, one JSON document a line. Every request gets one reply with its `seq`. */
export type Request = { readonly seq: number } & (
  | { readonly op: "hello" }
  | { readonly op: "start"; readonly execution: StageExecution }
  /** Replied with the end when it is written; with null, and at once, when the execution is not running. */
  | { readonly op: "wait"; readonly id: string }
  /** Kills, then replies as `wait` does. */
  | { readonly op: "stop"; readonly id: string }
  /** Null when the execution is not running. */
  | { readonly op: "output"; readonly id: string }
);

export interface Hello {
  readonly protocol: number;
  readonly pid: number;
}

/** Captured bytes in base64: head and tail of standard output, then of standard error. */
export type WireOutput = readonly [string, string, string, string];

export type Reply = { readonly seq: number } & ({ readonly ok: unknown } | { readonly error: WireError });

/** Where a client finds the supervisor of a folder; `supervisor.json` in the executor's root. */
export interface SupervisorAddress {
  readonly socket: string;
  readonly runtimeFolder: string;
}

export function send(socket: Socket, message: Request | Reply): void {
  if (!socket.destroyed) socket.write(`${JSON.stringify(message)}\n`);
}

/** Calls back with each complete document. Anything that is not one ends the connection. */
export function onMessages<Message>(socket: Socket, handle: (message: Message) => void): void {
  let pieces: string[] = [];
  socket.setEncoding("utf8");
  socket.on("data", (text: string) => {
    const lines = text.split("\n");
    for (const line of lines.slice(0, -1)) {
      const document = pieces.join("") + line;
      pieces = [];
      try {
        handle(JSON.parse(document) as Message);
      } catch (error) {
        socket.destroy(error instanceof Error ? error : new Error(String(error)));
        return;
      }
    }
    const rest = lines[lines.length - 1];
    if (rest) pieces.push(rest);
  });
}
