/** Called repeatedly with the amount done and, if known, the total. The work waits for it. */
export type ProgressReport = (done: number, total?: number) => Promise<void>;
