import { needsPrograms } from '../skip.ts';
import { PROXIES, type ProxyName } from './examples.ts';
import { type GuardedSite, startGuardedSite } from './guarded-site.ts';

const PROGRAMS: Readonly<Record<ProxyName, string>> = {
  nginx: 'nginx',
  caddy: 'caddy',
  haproxy: 'haproxy',
  apache: 'apache2',
};

/** The same tests for each proxy, with the configuration of its example. */
export function describeEachProxy(
  title: string,
  options: Parameters<typeof startGuardedSite>[1],
  tests: (site: () => GuardedSite, name: ProxyName) => void,
): void {
  for (const name of Object.keys(PROXIES) as ProxyName[]) {
    describe(`${title} behind ${name}`, () => {
      let site: GuardedSite;
      before(async function () {
        needsPrograms(this, PROGRAMS[name]);
        site = await startGuardedSite(name, options);
      });
      after(() => site?.stop());
      tests(() => site, name);
    });
  }
}

/** A header with a key. */
export const withKey = (secret: string): [string, string] => ['Authorization', `Bearer ${secret}`];
