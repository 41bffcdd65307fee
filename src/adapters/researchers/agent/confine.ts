import type { ModelSettings } from "../model/settings.js";
import { isObject, type WireFormat } from "./wire-formats.js";

/** A request that may go out, and the most that it can use. */
export interface Confined {
  readonly body: Readonly<Record<string, unknown>>;
  readonly maxOutputTokens: number;
  /** What of it was changed, in words. */
  readonly changes: readonly string[];
}

/**
 * An agent's request held to its model, to a capped output, and to what stands in it: nothing that the provider would
 * fetch, run or remember for it. A text says why it cannot be held.
 */
export function confined(given: Readonly<Record<string, unknown>>, format: WireFormat, settings: ModelSettings): Confined | string {
  const body: Record<string, unknown> = { ...given, ...format.added(given), model: settings.model };
  const changes = given["model"] === settings.model ? [] : [`asked for the model ${String(given["model"]).slice(0, 100)}`];
  if (given["previous_response_id"] != null) return "a request must hold its whole conversation: previous_response_id is not served";
  if (["messages", "input", "system"].some((field) => holdsMedia(given[field])))
    return "images and files are not served: what they cost cannot be told ahead, nor from where the provider would fetch them";
  for (const field of format.withheld) {
    if (given[field] === undefined) continue;
    if (body[field] === given[field]) delete body[field];
    changes.push(`went without ${field}`);
  }
  const { tools } = given;
  if (Array.isArray(tools)) {
    const own = tools.filter((tool) => isObject(tool) && format.isOwnTool(tool["type"] as string | undefined));
    if (own.length < tools.length) changes.push(`went without ${tools.length - own.length} tools that the provider would perform`);
    if (own.length > 0) body["tools"] = own;
    else delete body["tools"];
  }
  const caps = format.caps(settings);
  const asked = caps.map((field) => given[field]).filter((value) => value != null);
  if (!asked.every((value) => typeof value === "number" && Number.isInteger(value) && value > 0))
    return `a whole number of ${caps[0]} is needed`;
  if (asked.length === 0) body[caps[0]] = settings.maxOutputTokens;
  return { body, maxOutputTokens: asked.length === 0 ? settings.maxOutputTokens : Math.max(...(asked as number[])), changes };
}

const media: ReadonlySet<unknown> = new Set([
  ...["image", "document", "image_url", "input_image", "input_file", "input_audio", "file", "container_upload"],
  // Something that lies at the provider.
  "item_reference",
]);

/** Whether a part of what is said is no text. A page or a picture may be more tokens than it has bytes. */
function holdsMedia(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(holdsMedia);
  if (!isObject(value)) return false;
  if (media.has(value["type"])) return true;
  // Not a tool's input: what an agent's own tools are given is no part that the provider reads.
  return ["content", "output"].some((field) => holdsMedia(value[field]));
}
