/** The processor time of this process so far, in milliseconds. Other programs do not affect it. */
export function cpuTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** The processor time of this thread so far, in milliseconds. */
export function threadCpuTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/**
 * The growth of processor time when the size grows fourfold, the minimum of several runs: 4 if linear, 16 if quadratic.
 * @param work called often with a size
 */
export function growthOf(work: (size: number) => void, size: number): number {
  const took = (of: number) => {
    const before = cpuTime();
    for (let time = 0; time < 20; time += 1) work(of);
    return cpuTime() - before;
  };
  const growths = Array.from({ length: 5 }, () => {
    const less = took(size);
    return took(4 * size) / less;
  });
  return Math.min(...growths);
}
