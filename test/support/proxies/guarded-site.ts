import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { NewKey } from '../../../src/keys/key/key-change.ts';
import type { Permission } from '../../../src/keys/permissions/catalog.ts';
import { type OpenKeys, openKeys } from '../../../src/service/open-keys.ts';
import { accepts, freePort } from '../port.ts';
import { startCli } from '../process.ts';
import { migratedStore, tempFolder } from '../temp.ts';
import { until } from '../until.ts';
import { type Configuration, SITE } from './configurations.ts';
import { type Service, startService } from './service.ts';

/** The rule for requests: the methods of the resource, one permission, or the routes of svc-api.yaml. */
export type Rule = 'resource' | 'permission' | 'routes';

export interface SiteOptions {
  /** Default: the methods of the resource, as configured. */
  rule?: Rule;
  /** Whether people can sign in. Default: the setting is missing. */
  signIn?: 'on' | 'off';
  /** Custom roles that allow keys to read. */
  roles?: readonly string[];
  /** More replacements in the configuration. */
  edits?: Readonly<Record<string, string>>;
}

/** A service behind a proxy that asks svc-api. */
export interface GuardedSite {
  /** The proxy's port. */
  port: number;
  service: Service;
  /** The process that checks keys. */
  svcApi: ChildProcess;
  /** The store's file, which this process has open as well. */
  database: string;
  keys: OpenKeys;
  /** A permission for the resource of the configuration. */
  may(action: 'READ' | 'CREATE' | 'UPDATE' | 'DELETE'): Permission;
  create(input: Omit<NewKey, 'name'> & { name?: string }): Promise<{ key: string; id: string }>;
  /** Creates a key. @returns the header with it */
  keyWith(input: Omit<NewKey, 'name'> & { name?: string }): Promise<[string, string]>;
  /** Creates a key that can read. */
  reader(): Promise<[string, string]>;
  /** Creates a key that can do everything with the resource. */
  editor(): Promise<[string, string]>;
  stop(): Promise<void>;
}

/** Routes as the owner of the site would write them. */
const routesWith = (resource: string) => `routes:
  - { host: ${SITE}, path: /public/**, allow: open }
  - { host: ${SITE}, path: /api/**, allow: ${resource}:UPDATE_ANY, preflight: open }
  - { host: ${SITE}, path: /api/**, methods: [GET, HEAD], allow: ${resource}:READ_ANY }
  - { host: ${SITE}, path: /admin/**, allow: ${resource}:DELETE_ANY }
`;

let keysMade = 0;

/** Starts the service, svc-api and the proxy in separate processes. */
export async function startGuardedSite(
  configuration: Configuration,
  { rule = 'resource', signIn, roles: names = [], edits = {} }: SiteOptions = {},
): Promise<GuardedSite> {
  const { program, by, resource, requirement, flags: more = [] } = configuration;
  const [folder, port, database] = [tempFolder(), await freePort(), await migratedStore()];
  const service = await startService();
  const config = join(folder, 'svc-api.yaml');
  const resources = resource === 'DASHBOARD' ? [] : [resource];
  const permission = `${resource}:READ_ANY`;
  const roles = Object.fromEntries(names.map((name) => [name, [permission as Permission]]));
  writeFileSync(
    config,
    `resources: [${resources.join()}]\nroles: ${JSON.stringify(roles)}\ncredentials: [bearer, basic, { header: X-Api-Key }]\ntrust: [127.0.0.1]\n${signIn ? `sign-in: ${signIn}\n` : ''}${rule === 'routes' ? routesWith(resource) : ''}`,
    { mode: 0o600 },
  );
  const flags = { resource: ['--resource', resource], permission: ['--permission', permission], routes: [] }[rule];
  const command = by === 'serve' ? ['serve'] : ['guard', `http://127.0.0.1:${service.port}`, ...flags, ...more];
  const svcApi = startCli([...command, '--database', database, '--config', config, '--port', '0'], {
    env: { LOG_LEVEL: 'error' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await Promise.race([once(svcApi.stdout!, 'data'), once(svcApi, 'exit')])) as [Buffer];
  const svcApiPort = Number(/^Listening on http:\/\/127\.0\.0\.1:(\d+)\n$/.exec(String(line))?.[1]);
  if (!svcApiPort) throw new Error(`svc-api did not start: ${String(line)}`);

  const changed = {
    resource: requirement,
    permission: `?permission=${permission}`,
    routes: program === 'caddy' ? '?' : '',
  };
  const place = { folder, port, svcApi: svcApiPort, service: service.port };
  const args = configuration.write(place, (text, replacements) =>
    adapt(text, { ...replacements, ...(requirement && { [requirement]: changed[rule] }), ...edits }),
  );
  const proxy = await startProgram(program, args, port, folder).catch(async (error: unknown) => {
    await Promise.all([service.stop(), end(svcApi, 'SIGKILL')]);
    throw error;
  });
  const keys = await openKeys({ database, resources, roles, lockWaitMs: 600_000 });
  const may: GuardedSite['may'] = (action) => `${resource}:${action}_ANY` as Permission;
  const create: GuardedSite['create'] = async (input) => {
    const { key, apiKey } = await keys.create({ name: `Key ${(keysMade += 1)}`, ...input }, OPERATOR);
    return { key, id: apiKey.id };
  };
  const keyWith: GuardedSite['keyWith'] = async (input) => ['Authorization', `Bearer ${(await create(input)).key}`];
  const editor = () => keyWith({ permissions: (['READ', 'CREATE', 'UPDATE', 'DELETE'] as const).map(may) });
  return {
    port,
    service,
    svcApi,
    database,
    keys,
    may,
    create,
    keyWith,
    reader: () => keyWith({ permissions: [may('READ')] }),
    editor,
    async stop() {
      await end(proxy, 'SIGTERM');
      await Promise.all([service.stop(), end(svcApi, 'SIGKILL'), keys.close()]);
    },
  };
}

/** Replaces texts. Each must occur. */
function adapt(text: string, replacements: Readonly<Record<string, string>>): string {
  for (const [old, replacement] of Object.entries(replacements)) {
    if (!text.includes(old)) throw new Error(`The configuration has no ${old}`);
    text = text.replaceAll(old, replacement);
  }
  return text;
}

/** Starts a server, and waits until it accepts connections. */
export async function startProgram(
  program: string,
  args: readonly string[],
  port: number,
  folder: string,
): Promise<ChildProcess> {
  const path = `${process.env['PATH']}:/usr/sbin`;
  const env = { ...process.env, PATH: path, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env, cwd: folder });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`${program} has ended: ${output}`);
    return accepts(port);
  });
  return child;
}

/** Ends a process, unless it has already ended. */
export async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}
