import type { Background, BackgroundContext, OwnFeature, TelemetryMetrics } from '../feature.ts';
import { type AddedMetric, invalidFeature, isAdded, requireMetrics, workOf } from '../keys/added/index.ts';
import { inTime } from '../keys/basics/index.ts';
import type { OpenedService, StartService } from './configured-server.ts';

/**
 * Wraps a service with the background work of features, which starts before requests and ends after them.
 * @param exported exports metrics of that work
 */
export const withBackground =
  (
    start: StartService,
    context: Omit<BackgroundContext, keyof Pick<OpenedService, 'keys' | 'config'> | 'measure'>,
    exported?: TelemetryMetrics,
  ): StartService =>
  async (opened, server) => {
    const running: { feature: OwnFeature; work: Background }[] = [];
    const stop = async () => {
      await Promise.all(
        running.map(async ({ feature, work }) => {
          try {
            const stopped = work.stop();
            await (isAdded(feature) ? inTime(stopped, STOP_MS) : stopped);
          } catch (error) {
            context.log.error({ err: error, feature: feature.name }, NOT_STOPPED);
          }
        }),
      );
    };
    try {
      for (const feature of context.features) {
        const { name, background } = feature;
        if (!background) continue;
        const measure = (metrics: readonly AddedMetric[]) => {
          if (isAdded(feature)) requireMetrics(name, metrics);
          exported?.add(name, metrics);
        };
        const given = { ...context, keys: opened.keys, config: opened.config, measure };
        const work = await workOf(feature, 'background', () => background(given));
        if (typeof work?.stop !== 'function') throw invalidFeature(name, 'Its "background" must return { stop() {} }.');
        running.push({ feature, work });
      }
      const served = await start(opened, server);
      return {
        ...served,
        async prepare(changed) {
          const goOn = await served.prepare(changed);
          const steps: { name: string; step: () => void | Promise<void> }[] = [];
          for (const { feature, work } of running) {
            if (!work.prepare) continue;
            const step = await workOf(feature, 'prepare', () => work.prepare!(changed));
            if (typeof step !== 'function') throw invalidFeature(feature.name, 'Its "prepare" must return a function.');
            steps.push({ name: feature.name, step });
          }
          return async () => {
            await goOn();
            for (const { name, step } of steps)
              try {
                await step();
              } catch (error) {
                context.log.error({ err: error, feature: name }, NOT_GONE_ON);
              }
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

/** How long the work of a plugin can take to stop, in milliseconds. A server ends soon after a signal. */
const STOP_MS = 5000;

const NOT_GONE_ON = 'background work did not take the changed configuration';
const NOT_STOPPED = 'work in the background did not stop as it should';
