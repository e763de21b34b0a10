import { join } from 'node:path';
import { figure, median, table } from './figures.ts';
import { makeStore, withFolder } from './stores.ts';
import { createApp, listen, openKeys, OPERATOR } from './svc-api.ts';

const SIZES = [1000, 1_000_000];
const LOADS = 50;
/** The measured pages by title. The first one is where people start. */
const PAGES: readonly (readonly [title: string, path: (id: string) => string])[] = [
  ['keys, first page', () => 'keys'],
  ['keys, a search that finds one', () => 'keys?search=Ada+of+the+bench'],
  ['keys that are disabled', () => 'keys?status=DISABLED'],
  ['a key', (id) => `keys/${id}`],
  ['audit log', () => 'audit-log'],
];

/** The times of a page, in milliseconds. */
interface Timed {
  readonly title: string;
  readonly size: number;
  readonly first: number;
  readonly usual: number;
  readonly longest: number;
}

/**
 * Opens pages of the console on stores of two sizes, first after the start and then repeatedly.
 * @returns a table of the times, including the client's share
 */
export async function measureConsole(): Promise<string> {
  const all: Timed[] = [];
  for (const size of SIZES) all.push(...(await withFolder((folder) => measureStore(folder, size))));
  return table(
    ['page', 'keys', 'first time, ms', 'median, ms', 'longest, ms'],
    all.map(({ title, size, first, usual, longest }) => [
      title,
      figure(size),
      figure(first, 1),
      figure(usual, 1),
      figure(longest, 1),
    ]),
  );
}

async function measureStore(folder: string, size: number): Promise<Timed[]> {
  const database = join(folder, 'keys.sqlite');
  await makeStore(database, size, 1);
  const keys = await openKeys({ database });
  const { apiKey: key, key: secret } = await keys.create({ name: 'Ada of the bench', roles: ['ADMIN'] }, OPERATOR);
  const server = await listen({ app: await createApp({ keys, console: true }), host: '127.0.0.1', port: 0 });
  try {
    const cookie = await signIn(server.url, secret);
    const timed: Timed[] = [];
    for (const [title, path] of PAGES) {
      const times: number[] = [];
      for (let load = 0; load < LOADS; load += 1)
        times.push(await open(`${server.url}/console/${path(key.id)}`, cookie));
      const [first = 0, ...others] = times;
      timed.push({ title, size, first, usual: median(others), longest: Math.max(...others) });
    }
    return timed;
  } finally {
    await server.stop(0);
    await keys.close();
  }
}

async function signIn(url: string, key: string): Promise<string> {
  const response = await fetch(`${url}/console/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: url },
    body: new URLSearchParams({ key }),
  });
  return response.headers.getSetCookie()[0]!.split(';')[0]!;
}

async function open(url: string, cookie: string): Promise<number> {
  const start = performance.now();
  const response = await fetch(url, { headers: { cookie }, redirect: 'manual' });
  await response.text();
  if (response.status !== 200) throw new Error(`${url} was answered ${response.status}.`);
  return performance.now() - start;
}
