import { listOf, printable } from '../../keys/text.ts';
import { countOf } from '../views/count.ts';
import type { DeclaredRoutes } from './declared-routes.ts';
import { atRoute, routeJson } from './route-view.ts';

/** What is there to say about routes whose expectations hold, as JSON and as text. */
export async function checkRoutes({ file, routes, expect }: DeclaredRoutes): Promise<{ json: object; text: string }> {
  const [{ findUnreachable }, { describeMatch }] = await Promise.all([
    import('../../routes/unreachable.ts'),
    import('../../routes/describe.ts'),
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
  return {
    json: {
      file,
      routes: routes.length,
      expectations: expect.length,
      unreachable: unreachable.map(({ match, behind }) => ({ ...routeJson(match), behind: behind.map(routeJson) })),
    },
    text: [`${printable(file, 200)}: ${summary}`, ...lines].join('\n'),
  };
}
