import { z } from "zod";
import { maxEventLength } from "./event-record.js";

/** Names the format in the first line of an export. */
export const formatName = "trialist-ledger";
/** Version of the format that is written; every version up to it is read. */
export const formatVersion = 1;

/** Bytes of a blob on one line; a larger blob takes several. A multiple of 3, so that parts of base64 join. */
export const blobPartBytes = 768 * 1024;

/** Longest line that an import takes. */
export const maxLineLength = maxEventLength * 2 + 64 * 1024;

const digest = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.number().int().nonnegative();

/** First line. */
export const headerLine = z.strictObject({
  format: z.literal(formatName),
  version: z.number().int().positive(),
  /** Name of the run that was exported: for people, an import never makes a path of it. */
  run: z.string().max(200),
  head: count,
  chain: digest,
  /** Whether blobs follow the events. */
  blobs: z.boolean(),
});
export type HeaderLine = z.infer<typeof headerLine>;

/** One event, in order. */
export const eventLine = z.strictObject({
  event: z.strictObject({
    sequence: z.number().int().positive(),
    at: z.number().int(),
    type: z.string(),
    version: z.number().int().positive(),
    data: z.unknown(),
    chain: digest,
  }),
});

/** Part of one blob; all parts of a blob follow each other, numbered from 0. */
export const blobLine = z.strictObject({
  blob: digest,
  bytes: count,
  part: count,
  parts: z.number().int().positive(),
  base64: z.base64().max(blobPartBytes * 2),
});
export type BlobLine = z.infer<typeof blobLine>;

/** Last line: without it the file was cut. */
export const endLine = z.strictObject({ end: z.literal(true), events: count, blobs: count });
