import { describe, expect, it } from "vitest";
import type { GpuPool } from "../../core/ports/gpus.js";
import { Slots, type SlotWish, type Taken } from "./slots.js";

const pool = (...numbers: number[]): GpuPool => ({
  numbers,
  models: [],
  assign: (assigned) => ({ numbers: assigned, devices: [], mounts: [], environment: {} }),
});

function wish(changes: Partial<SlotWish> = {}): SlotWish {
  return { cpus: 1, exclusive: false, execution: "m1.1/train-1", ...changes };
}

/** Null while it waits. */
async function now(taking: Promise<Taken>): Promise<Taken | null> {
  return Promise.race([taking, new Promise<null>((resolve) => setImmediate(() => resolve(null)))]);
}

describe("slots", () => {
  it("are given in the order of asking; an exclusive stage takes all", async () => {
    const slots = new Slots(2);
    const first = await slots.take(wish());
    const alone = slots.take(wish({ exclusive: true }));
    const last = slots.take(wish());
    expect([await now(alone), await now(last)]).toEqual([null, null]);
    first.release();
    first.release();
    const taken = await alone;
    expect(taken.gpus).toBeNull();
    expect(await now(last)).toBeNull();
    taken.release();
    expect(await now(last)).not.toBeNull();
  });

  it("with GPUs: nobody has one that another has, and it comes back", async () => {
    const slots = new Slots(8, pool(0, 2, 3));
    const taken = [await slots.take(wish({ gpus: 1 })), await slots.take(wish({ gpus: 2 }))];
    expect(taken.map(({ gpus }) => gpus?.numbers)).toEqual([[0], [2, 3]]);
    const waits = slots.take(wish({ gpus: 1 }));
    expect(await now(waits)).toBeNull();
    taken[1]?.release();
    expect((await waits).gpus?.numbers).toEqual([2]);
    expect((await slots.take(wish())).gpus).toBeNull();
    await expect(slots.take(wish({ gpus: 4 }))).rejects.toThrow(RangeError);
  });

  it("know what an owner before had started: it keeps its own, and others get none of it", async () => {
    const slots = new Slots(8, pool(0, 1, 2));
    slots.hold("m7.1/train-1", [1]);
    const letGo = slots.hold("s1.1.1/preflight-1", [2]);
    expect((await slots.take(wish({ gpus: 1 }))).gpus?.numbers).toEqual([0]);
    const adopted = await slots.take(wish({ gpus: 1, execution: "m7.1/train-1" }));
    expect(adopted.gpus?.numbers).toEqual([1]);
    const waits = slots.take(wish({ gpus: 2 }));
    letGo();
    letGo();
    expect(await now(waits)).toBeNull();
    adopted.release();
    expect((await waits).gpus?.numbers).toEqual([1, 2]);
  });

  it("of which an owner before had more, count what is here now", async () => {
    const slots = new Slots(8, pool(0));
    const letGo = slots.hold("m7.1/train-1", [0, 5]);
    const waits = slots.take(wish({ gpus: 1 }));
    letGo();
    expect((await waits).gpus?.numbers).toEqual([0]);
  });
});
