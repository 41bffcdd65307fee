/** How a supervisor is started, handed over as JSON. */
export interface SupervisorOptions {
  readonly root: string;
  /** Time without a client and without a running execution after which it ends by itself. */
  readonly idleMs: number;
  /** False makes it do without cgroups even where there are some. */
  readonly cgroups: boolean;
}

/** Name of the file in the executor's root that says where its supervisor listens. */
export const addressFile = "supervisor.json";
