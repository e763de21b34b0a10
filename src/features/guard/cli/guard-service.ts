import { doorOf } from '../../sessions/index.ts';
import type { Config } from '../../../config/config.ts';
import { type AskedRequirement, type GuardRules, readRequirements, readUpstreams } from '../access.ts';
import { type GuardOptions, serveGuard } from '../guard.ts';
import type { Catalog } from '../../../keys/permissions/index.ts';
import type { Log } from '../../../log.ts';
import type { Route, Upstream } from '../../routes/index.ts';
import type { OpenedService, StartService } from '../../../service/configured-server.ts';

/** A guard as described by flags. */
export type AskedGuard = AskedRequirement &
  Omit<GuardOptions, 'maxConnections' | 'log'> & {
    readonly upstream: Upstream | undefined;
    /** A given flag that only a guard has, such as `--any-key`. */
    readonly flag?: string | undefined;
    /** Has no sign-in pages. */
    readonly hasNoDoor?: boolean;
  };

/** Refuses an impossible combination before anything is opened. @throws KeysError USAGE, CONFIG_INVALID */
export function checkGuard(
  asked: AskedGuard,
  { routes, upstreams }: Pick<Config, 'routes' | 'upstreams'>,
  catalog: Catalog,
): void {
  readRequirements(asked, { routes, catalog });
  readUpstreams(upstreams, asked.upstream, routesThatDecide(asked, routes));
}

/** Serves a guard. It throws KeysError as `serveGuard`. */
export const guardService =
  (asked: AskedGuard, log: Log): StartService =>
  async (opened, server) => {
    const { allFeatures } = await import('../../index.ts');
    const rulesBy = ({
      keys,
      config: { routes, credentials, trust, limits, upstreams, signIn, people, publicUrl, title },
    }: OpenedService): GuardRules => {
      const hasNoDoor = signIn === 'off' || asked.hasNoDoor;
      const loadDoor = hasNoDoor ? undefined : doorOf(allFeatures(), signIn === 'on' || people !== undefined);
      return {
        keys,
        upstreams: readUpstreams(upstreams, asked.upstream, routesThatDecide(asked, routes)),
        requirements: readRequirements(asked, { routes, catalog: keys.catalog }),
        credentials,
        trust,
        failedCredentials: limits.failedCredentials,
        people,
        publicUrl,
        hosts: routes.map(({ host }) => host),
        loadDoor: loadDoor && (async (parts) => (await loadDoor()).open({ ...parts, title })),
      };
    };
    const running = await serveGuard({ ...asked, log }, rulesBy(opened), server);
    return {
      server: running,
      prepare: async (changed) => running.prepareRules(rulesBy(changed)),
      stop: () => running.stop(),
    };
  };

/** The routes, unless the flags say who is allowed. */
function routesThatDecide({ permissions, anyKey, resource }: AskedGuard, routes: readonly Route[]) {
  return permissions || anyKey || resource !== undefined ? undefined : routes;
}
