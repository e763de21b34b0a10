const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Resolves on the first signal to stop; a second one ends the process at once. */
export function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const stop = (signal: NodeJS.Signals) => {
      for (const name of STOP_SIGNALS) {
        process.off(name, stop);
        process.once(name, () => process.exit(name === 'SIGINT' ? 130 : 143));
      }
      resolve(signal);
    };
    for (const name of STOP_SIGNALS) process.on(name, stop);
  });
}
