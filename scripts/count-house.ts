import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import './jsx.ts';

/**
 * Counts what somebody has to hold in mind to change the program: its files and lines, the doors of its rooms, and the
 * files that one request or one command runs through. Which files call each other in turn is not counted: V8 says what
 * has run, not in which order.
 */
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SRC = globSync('src/**/*.{ts,tsx}', { cwd: ROOT }).map((path) => path.replaceAll('\\', '/'));
const TEXTS = new Map(SRC.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]));

function report(what: string, count: number, more = ''): void {
  process.stdout.write(`${String(count).padStart(6)}  ${what}${more && `: ${more}`}\n`);
}

const sum = (numbers: Iterable<number>) => [...numbers].reduce((total, number) => total + number, 0);

/** The first folder below src; undefined for a file beside the folders. */
function roomOf(path: string): string | undefined {
  const [, room, rest] = path.split('/');
  return rest === undefined ? undefined : room;
}

/** The files of ours that each file imports, of whatever kind. */
function importsOf(path: string, text: string): string[] {
  return Array.from(text.matchAll(/(?:\bfrom|\bimport\(?)\s*'(\.[^']+)'/g), ([, to = '']) =>
    posix.join(dirname(path), to),
  );
}

function countSources(): void {
  report('files in src', SRC.length);
  report('lines', sum(Array.from(TEXTS.values(), (text) => text.split('\n').length - 1)));
  const loose = SRC.filter((path) => roomOf(path) === undefined);
  report('files beside the rooms', loose.length, loose.map((path) => path.slice('src/'.length)).join(', '));
  report('files that know allowFrom', [...TEXTS.values()].filter((text) => text.includes('allowFrom')).length);
  const doors = new Map<string, Set<string>>();
  for (const [path, text] of TEXTS)
    for (const to of importsOf(path, text)) {
      const room = roomOf(to);
      if (room === undefined || room === roomOf(path) || !TEXTS.has(to)) continue;
      doors.set(room, (doors.get(room) ?? new Set()).add(to));
    }
  for (const room of [...new Set(SRC.flatMap((path) => roomOf(path) ?? []))].toSorted()) {
    const files = SRC.filter((path) => roomOf(path) === room).length;
    report(`doors of ${room}`, doors.get(room)?.size ?? 0, `of ${files} files`);
  }
}

const session = new Session();

/** The sources of which a function has run meanwhile. To load a module does not count. */
async function filesRunBy(work: () => Promise<unknown>): Promise<string[]> {
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await session.post('Profiler.takePreciseCoverage');
  await work();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  await session.post('Profiler.stopPreciseCoverage');
  const prefix = new URL('../src/', import.meta.url).href;
  return result
    .filter(({ url }) => url.startsWith(prefix))
    .filter(({ functions }) => functions.some(({ functionName, ranges }) => functionName && ranges[0]!.count > 0))
    .map(({ url }) => url.slice(prefix.length))
    .toSorted();
}

async function measure(what: string, work: () => Promise<unknown>): Promise<void> {
  const files = await filesRunBy(work);
  report(`files that ${what} runs through`, files.length);
  if (process.argv.includes('--list')) for (const file of files) process.stdout.write(`          ${file}\n`);
}

async function countRuns(folder: string): Promise<void> {
  session.connect();
  await session.post('Profiler.enable');
  const database = join(folder, 'keys.sqlite');
  const { Config } = await import('@oclif/core/config');
  const pjson = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  pjson.oclif.commands = './src/commands';
  const config = await Config.load({ root: ROOT, pjson, ignoreManifest: true });
  const run = async (id: string, ...args: string[]) => {
    const streams = [process.stdout, process.stderr];
    for (const stream of streams)
      stream.write = (_text: unknown, ...others: unknown[]) => {
        (others.at(-1) as (() => void) | undefined)?.();
        return true;
      };
    try {
      await config.runCommand(id, [...args, '--database', database]);
    } finally {
      for (const stream of streams) Reflect.deleteProperty(stream, 'write');
    }
  };
  await run('apikey:create', '--name', 'Deleted 1', '--roles', 'ADMIN');
  await run('apikey:create', '--name', 'Deleted 2', '--roles', 'VIEWER');
  await measure('apikey create', () => run('apikey:create', '--name', 'Third', '--roles', 'VIEWER'));
  const backup = join(folder, 'backup.sqlite');
  await run('apikey:backup', backup);
  for (const name of ['Deleted 1', 'Deleted 2']) await run('apikey:delete', name, '--yes');
  await measure('restore of 2 keys', () => run('apikey:restore', backup, '--bring-back-all', '--yes'));
  const { openKeys, createApp, listen, OPERATOR } = await import('../src/index.ts');
  const keys = await openKeys({ database });
  const { key } = await keys.create({ name: 'Client', roles: ['ADMIN'] }, { actor: OPERATOR });
  const server = await listen({ app: await createApp({ keys }), host: '127.0.0.1', port: 0 });
  const ask = async () => {
    const answer = await fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query: '{ apiKeys(first: 2) { edges { node { name } } } }' }),
    });
    const { data } = (await answer.json()) as { data?: { apiKeys: { edges: unknown[] } } };
    if (data?.apiKeys.edges.length !== 2) throw new Error('The request was not answered.');
  };
  for (let time = 0; time < 5; time += 1) await ask();
  await measure('a warm POST /graphql', ask);
  await server.stop(0);
  await keys.close();
}

countSources();
const folder = mkdtempSync(join(tmpdir(), 'svc-api-'));
try {
  await countRuns(folder);
} finally {
  rmSync(folder, { recursive: true });
}
