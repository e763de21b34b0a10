/** Is told how much was done, again and again, and of how much, where that is known. It is waited for. */
export type ProgressReport = (done: number, total?: number) => Promise<void>;
