import { listOf, printable } from '../../keys/text.ts';
import { countOf } from '../views/count.ts';
import type { WideRoute } from '../../routes/wide-routes.ts';
import type { DeclaredRoutes } from './declared-routes.ts';
import { atRoute, routeJson } from './route-view.ts';

/** How many routes a line names. */
const MAX_NAMED = 3;

/** What is there to say about routes whose expectations hold, as JSON and as text. */
export async function checkRoutes({ file, routes, expect }: DeclaredRoutes): Promise<{ json: object; text: string }> {
  const [{ findUnreachable }, { findWideRoutes }, { describeMatch }, { createRouter }] = await Promise.all([
    import('../../routes/unreachable.ts'),
    import('../../routes/wide-routes.ts'),
    import('../../routes/describe.ts'),
    import('../../routes/router.ts'),
  ]);
  const matchAt = (index: number) => ({ route: routes[index]!, index });
  const unreachable = findUnreachable(routes).map(({ index, behind }) => ({
    match: matchAt(index),
    behind: behind.map(matchAt),
  }));
  const expected = expect.length === 1 ? 'expectation, which holds' : 'expectations, which hold';
  const summary = `${countOf(routes.length, 'route', 'routes')}, and ${expect.length} ${expected}`;
  const lines = unreachable.map(({ match, behind }) => {
    const verb = behind.length === 1 ? 'decides' : 'decide';
    const others = listOf(behind.map(describeMatch));
    return atRoute(file, match, `${describeMatch(match)} can never match: ${others} ${verb} in its place`);
  });
  const wide = [...Map.groupBy(findWideRoutes(createRouter(routes)), ({ match }) => match.index).values()];
  const warnings = wide.map((found) => {
    const [{ match, path }] = found as [WideRoute];
    const narrower = found.slice(0, MAX_NAMED).map(({ narrower: other }) => describeMatch(other));
    if (found.length > MAX_NAMED) narrower.push(`${found.length - MAX_NAMED} more`);
    const verb = found.length === 1 ? 'needs' : 'need';
    return atRoute(
      file,
      match,
      `${describeMatch(match)} decides about ${path}, too: to a service with a front controller, that is the path of ` +
        `${listOf(narrower)}, which ${verb} more`,
    );
  });
  return {
    json: {
      file,
      routes: routes.length,
      expectations: expect.length,
      unreachable: unreachable.map(({ match, behind }) => ({ ...routeJson(match), behind: behind.map(routeJson) })),
      wide: wide.map((found) => ({
        ...routeJson(found[0]!.match),
        reached: found[0]!.path,
        narrower: found.map(({ narrower }) => routeJson(narrower)),
      })),
    },
    text: [`${printable(file, 200)}: ${summary}`, ...lines, ...warnings].join('\n'),
  };
}
