/** How long what repeats itself is only counted. */
const PERIOD_MS = 60_000;

/** Calls `work` once the present period is over; it must not keep the process alive. */
export type AtPeriodEnd = (work: () => void) => void;

/** What is to be done at the ends of periods that are not over. */
const open = new Set<() => void>();

/** Calls `work` after a minute, or when the process ends, if that is sooner and no signal kills it. */
export const atPeriodEnd: AtPeriodEnd = (work) => {
  // One listener for all: a host may have many middlewares.
  if (open.size === 0) process.on('exit', endAll);
  const end = () => {
    clearTimeout(timer);
    open.delete(end);
    if (open.size === 0) process.off('exit', endAll);
    work();
  };
  const timer = setTimeout(end, PERIOD_MS).unref();
  open.add(end);
};

function endAll(): void {
  for (const end of open) end();
}
