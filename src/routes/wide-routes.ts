import type { Permission } from '../keys/permissions/catalog.ts';
import { PermissionSet } from '../keys/permissions/permission-set.ts';
import { checkAllow } from './decide.ts';
import { type Allow, type Match, parsedPatterns, segmentsOf } from './route-tree.ts';
import type { Router } from './router.ts';

/** A route that decides in place of one that needs more, where a service has a front controller. */
export interface WideRoute {
  readonly match: Match;
  /** A path that the service may take for that of the narrower route. */
  readonly path: string;
  readonly narrower: Match;
}

/** The front controller that is looked for: what decides about it mostly does so about any other name. */
const FRONT_CONTROLLER = 'index.php';

/**
 * Finds the routes that let a request pass by the path of a front controller, `/index.php/admin`, to what another route
 * needs more for. Each is named once for a narrower one.
 */
export function findWideRoutes(router: Router): WideRoute[] {
  return router.routes.flatMap((route, index) => {
    const { host, path } = parsedPatterns(route);
    const segments = segmentsOf(path).map((segment) => (segment.startsWith('*') ? 'x' : segment));
    const wide = new Map<number, WideRoute>();
    for (let at = 0; at < segments.length; at += 1)
      for (const method of route.methods ?? ['GET', 'POST']) {
        const reached = `/${segments.toSpliced(at, 0, FRONT_CONTROLLER).join('/')}`;
        const match = router.find({ method, host: host.replace('*', 'x'), path: reached });
        if (match && 'route' in match && needsMore(route.allow, match.route.allow) && !wide.has(match.index))
          wide.set(match.index, { match, path: reached, narrower: { route, index } });
      }
    return [...wide.values()];
  });
}

/**
 * Whether one requirement is more than another: a key that just satisfies that is refused. Who may change a resource is
 * taken to be one who may read it as well: files have routes to read beneath those to change, too.
 */
function needsMore(allow: Allow, than: Allow): boolean {
  if (allow.kind === 'open' || than.kind === 'open') return allow.kind !== 'open';
  return leastOf(than).some((held) => {
    const read = held.map((permission) => permission.replace(/:[A-Z]+_/, ':READ_') as Permission);
    return checkAllow(allow, new PermissionSet([...held, ...read])).outcome === 'forbidden';
  });
}

/** The fewest permissions by which a key passes, in each way. */
function leastOf(allow: Allow): readonly (readonly Permission[])[] {
  if (!('permissions' in allow)) return [[]];
  return allow.kind === 'all' ? [allow.permissions] : allow.permissions.map((permission) => [permission]);
}
