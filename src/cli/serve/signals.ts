export const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** What stops a server. */
export interface StopSignal {
  /** Resolves with the reason once the server is to stop. A second signal ends the process at once. */
  readonly received: Promise<string>;
  /** Says that there may be requests to finish from now on. Until then, a signal ends the process at once. */
  serving(): void;
}

/** Listens to SIGINT and SIGTERM, on which the first process of a container would do nothing by itself. */
export function listenForStop(): StopSignal {
  let isServing = false;
  const received = new Promise<string>((resolve) => {
    const stop = (signal: NodeJS.Signals) => {
      if (!isServing) process.exit(0);
      for (const name of STOP_SIGNALS) {
        process.off(name, stop);
        process.once(name, () => process.exit(name === 'SIGINT' ? 130 : 143));
      }
      resolve(signal);
    };
    for (const name of STOP_SIGNALS) process.on(name, stop);
  });
  return {
    received,
    serving() {
      isServing = true;
    },
  };
}
