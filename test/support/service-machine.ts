import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathWithCli, runBlock } from './pages.ts';
import type { Finished } from './process.ts';
import { tempFolder } from './temp.ts';

/** The service's user. */
export const NOBODY = 65_534;

/** A machine with svc-api as a service of the user `nobody`. Needs root. */
export function serviceMachine() {
  const folder = tempFolder();
  const [home, store] = [join(folder, 'home'), join(folder, 'store')];
  for (const path of [home, store]) mkdirSync(path);
  chmodSync(folder, 0o755);
  chownSync(store, NOBODY, NOBODY);
  chmodSync(store, 0o700);
  const env = { HOME: home, XDG_CACHE_HOME: undefined, PATH: `${pathWithCli(folder)}:/usr/sbin` };
  /** A text of a page, with the paths and the user of this machine. */
  const here = (text: string) =>
    text
      .replaceAll('/var/lib/svc-api', store)
      .replaceAll('/usr/local/bin', join(folder, 'bin'))
      .replaceAll('/etc/systemd/system', join(folder, 'units'))
      .replaceAll('/etc/svc-api', join(folder, 'etc/svc-api'))
      .replaceAll('XDG_CONFIG_HOME=/etc', `XDG_CONFIG_HOME=${join(folder, 'etc')}`)
      .replaceAll(/runuser -u svc-api\b|chown -R svc-api:/g, (text) => text.replace('svc-api', 'nobody'));
  const run = (script: string, variables: NodeJS.ProcessEnv = {}): Promise<Finished> =>
    runBlock(here(script), folder, { ...env, ...variables });
  return { folder, home, store, database: join(store, 'keys.sqlite'), here, run, env };
}
