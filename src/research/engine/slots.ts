import { type GpuAssignment, type GpuPool, noGpuPool } from "../../core/ports/gpus.js";

export interface SlotWish {
  readonly cpus: number;
  readonly exclusive: boolean;
  readonly gpus?: number | undefined;
  /** Id of the execution that it is for: one that an owner before started has its GPUs already. */
  readonly execution: string;
}

export interface Taken {
  /** Null for a stage that has none. */
  readonly gpus: GpuAssignment | null;
  /** Gives all of it back; a second call does nothing. */
  release(): void;
}

interface Waiting {
  readonly cpus: number;
  readonly gpus: number;
  readonly grant: (gpus: readonly number[]) => void;
}

/**
 * CPU slots and GPUs of this machine. A stage takes as many as its limits say, in the order of asking; an exclusive stage
 * takes all CPU slots, since a neighbour would distort its wall clock. No two stages have the same GPU.
 */
export class Slots {
  private free: number;
  private freeGpus: readonly number[];
  /** By execution: what stages of the owner before use. */
  private readonly held = new Map<string, readonly number[]>();
  private readonly waiting: Waiting[] = [];

  constructor(
    readonly total: number,
    private readonly pool: GpuPool = noGpuPool,
  ) {
    this.free = total;
    this.freeGpus = pool.numbers;
  }

  /** Keeps GPUs from others while an execution runs that an owner before started. Returns how to end that, if nobody took it over. */
  hold(execution: string, gpus: readonly number[]): () => void {
    this.freeGpus = this.freeGpus.filter((number) => !gpus.includes(number));
    this.held.set(execution, gpus);
    return () => {
      if (this.held.delete(execution)) this.giveBack(0, gpus);
    };
  }

  /** @throws RangeError for more GPUs than there are: whoever starts a run has refused that */
  async take({ cpus, exclusive, gpus = 0, execution }: SlotWish): Promise<Taken> {
    if (gpus > this.pool.numbers.length && !this.held.has(execution))
      throw new RangeError(`${execution} asks for ${gpus} GPUs of ${this.pool.numbers.length}`);
    const wanted = exclusive ? this.total : Math.min(cpus, this.total);
    const granted = await this.granted(wanted, this.held.has(execution) ? 0 : gpus);
    const adopted = this.held.get(execution) ?? [];
    this.held.delete(execution);
    const all = [...adopted, ...granted];
    let returned = false;
    return {
      gpus: all.length === 0 ? null : this.pool.assign(all),
      release: () => {
        if (returned) return;
        returned = true;
        this.giveBack(wanted, all);
      },
    };
  }

  private granted(cpus: number, gpus: number): Promise<readonly number[]> {
    return new Promise((grant) => {
      this.waiting.push({ cpus, gpus, grant });
      this.serve();
    });
  }

  private giveBack(cpus: number, gpus: readonly number[]): void {
    this.free += cpus;
    this.freeGpus = this.pool.numbers.filter((number) => this.freeGpus.includes(number) || gpus.includes(number));
    this.serve();
  }

  private serve(): void {
    for (let next = this.waiting[0]; next !== undefined; next = this.waiting[0]) {
      if (next.cpus > this.free || next.gpus > this.freeGpus.length) return;
      this.waiting.shift();
      this.free -= next.cpus;
      const gpus = this.freeGpus.slice(0, next.gpus);
      this.freeGpus = this.freeGpus.slice(next.gpus);
      next.grant(gpus);
    }
  }
}
