import type { Background, BackgroundContext, Feature } from '../feature.ts';
import type { OpenedService, StartService } from './configured-server.ts';

/** Serves, with the work of features beside it: that begins before requests, and ends after them. */
export const withBackground =
  (
    start: StartService,
    features: readonly Feature[],
    context: Omit<BackgroundContext, keyof Pick<OpenedService, 'keys' | 'config'>>,
  ): StartService =>
  async (opened, server) => {
    const running: Background[] = [];
    const stop = async () => {
      await Promise.all(
        running.map((each) => each.stop().catch((error: unknown) => context.log.error({ err: error }, NOT_STOPPED))),
      );
    };
    try {
      for (const { background } of features)
        if (background) running.push(await background({ ...context, keys: opened.keys, config: opened.config }));
      const served = await start(opened, server);
      return {
        ...served,
        async prepare(changed) {
          const steps = [await served.prepare(changed)];
          for (const each of running) if (each.prepare) steps.push(await each.prepare(changed));
          return async () => {
            for (const step of steps) await step();
          };
        },
        async stop() {
          await served.stop();
          await stop();
        },
      };
    } catch (error) {
      await stop();
      throw error;
    }
  };

const NOT_STOPPED = 'work in the background did not stop as it should';
