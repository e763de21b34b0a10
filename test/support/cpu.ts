/** The processor time of this process so far, in milliseconds: what else the machine does is not in it. */
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
 * How many times more processor time four times as much takes, the least of several: 4 where it is linear, 16 where it
 * is quadratic.
 * @param work is given a size, often
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
