/**
 * CPU slots of this machine. A stage takes as many as its limits say, in the order of asking; an exclusive stage takes
 * all of them, since a neighbour would distort its wall clock.
 */
export class Slots {
  private free: number;
  private readonly waiting: { readonly wanted: number; readonly grant: () => void }[] = [];

  constructor(readonly total: number) {
    this.free = total;
  }

  /** Resolves with how to give the slots back. */
  async take(cpus: number, exclusive: boolean): Promise<() => void> {
    const wanted = exclusive ? this.total : Math.min(cpus, this.total);
    if (this.waiting.length === 0 && this.free >= wanted) this.free -= wanted;
    else await new Promise<void>((grant) => this.waiting.push({ wanted, grant }));
    let returned = false;
    return () => {
      if (returned) return;
      returned = true;
      this.free += wanted;
      this.serve();
    };
  }

  private serve(): void {
    for (let next = this.waiting[0]; next !== undefined && next.wanted <= this.free; next = this.waiting[0]) {
      this.waiting.shift();
      this.free -= next.wanted;
      next.grant();
    }
  }
}
