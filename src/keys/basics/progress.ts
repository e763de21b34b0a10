/** Takes how much was done, again and again, and of how much, where that is known. The work waits for it. */
export type ProgressReport = (done: number, total?: number) => Promise<void>;
