import { needsPrograms } from '../skip.ts';
import { type Configuration, CONFIGURATIONS } from './configurations.ts';
import { type GuardedSite, type SiteOptions, startGuardedSite } from './guarded-site.ts';

/** Runs the same tests for each configuration of a proxy. */
export function describeEachProxy(
  title: string,
  options: SiteOptions,
  tests: (site: () => GuardedSite, configuration: Configuration) => void,
  configurations: readonly Configuration[] = CONFIGURATIONS,
): void {
  for (const configuration of configurations) {
    describe(`${title} behind ${configuration.program} (${configuration.title})`, () => {
      let site: GuardedSite;
      before(async function () {
        needsPrograms(this, configuration.program);
        site = await startGuardedSite(configuration, options);
      });
      after(() => site?.stop());
      tests(() => site, configuration);
    });
  }
}
