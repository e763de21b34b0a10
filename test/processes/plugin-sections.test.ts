import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { DataFolder } from '../support/plugins.ts';
import { freePort } from '../support/port.ts';
import { ROOT, runCliWithInput } from '../support/process.ts';
import { startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const NAME = 'svc-api-approval';
const VALIBOT = JSON.stringify(pathToFileURL(join(ROOT, 'node_modules/valibot/dist/index.mjs')).href);
const SECTION = `async () => {
  const v = await import(${VALIBOT});
  const approvers = v.pipe(v.array(v.string()), v.minLength(1, 'needs one approver'));
  return { description: 'People who approve.', schema: v.strictObject({ approvers, wait: v.optional(v.number(), 30) }) };
}`;
const APPROVAL = `{
  name: '${NAME}',
  resources: ['APPROVAL', { name: 'VAULT', credentials: true }],
  config: { sections: { approval: ${SECTION} } },
  routes: async (app, { config }) => app.get('/approval', (c) => c.json(config?.added['approval'] ?? null)),
}`;

const METRICS = `[
  { name: 'svc_api_approval_total', kind: 'counter', help: 'Approved.', labels: ['team'], read: async () => [[2, { team: 'web' }]] },
  { name: 'svc_api_approval_open', kind: 'gauge', help: 'Open.', read: () => [[7]] },
  { name: 'svc_api_approval_broken', kind: 'gauge', help: 'Broken.', read: () => { throw new Error('broken'); } },
  { name: 'svc_api_approval_fallen', kind: 'counter', help: 'Fallen.', read: () => [[-1]] },
]`;
/** A value of a metric that fails. */
const FAILING = /^svc_api_approval_(broken|fallen)/m;

describe('a plugin with a section of the configuration and resources', () => {
  let data: DataFolder;
  let database: string;
  let config: string;
  beforeEach(() => {
    data = new DataFolder();
    data.install(NAME, APPROVAL);
    const folder = tempFolder();
    database = join(folder, 'keys.sqlite');
    config = join(folder, 'svc-api.yaml');
  });

  // A file that is being written can be read incomplete.
  const write = (text: string) => {
    writeFileSync(`${config}.new`, text);
    renameSync(`${config}.new`, config);
  };
  const env = () => ({ ...data.env, SVC_API_DATABASE: database, SVC_API_CONFIG: config });
  const cli = async (args: string, code = 0): Promise<string> => {
    const result = await runCliWithInput('', args.split(' '), { env: env() });
    assert.equal(result.code, code, `${args}: ${result.stdout}${result.stderr}`);
    return code === 0 ? result.stdout : result.stderr.replaceAll(`${config}:`, '').replaceAll(/\s+/g, ' ');
  };

  it('gets the value of its section, and the next one when the file changes', async () => {
    write('approval:\n  approvers: [ada]\n');
    await cli('apikey create --name CI --roles GUEST');
    const serve = await startServe(database, ['--port', '0', '--config', config], env());
    try {
      const read = async () => (await (await fetch(`${serve.url}/approval`)).json()) as { wait: number };
      assert.deepEqual(await read(), { approvers: ['ada'], wait: 30 });
      write('approval: { approvers: [ada, bob], wait: 5 }\n');
      serve.kill('SIGHUP');
      await until(async () => (await read()).wait === 5);
      assert.deepEqual(await read(), { approvers: ['ada', 'bob'], wait: 5 });
    } finally {
      await serve.stop();
    }
  });

  it('has the faults of its section found with line and column', async () => {
    write('resources: [WIKI]\napproval:\n  approvers: []\n  wiat: 5\n');
    const stderr = await cli('apikey create --name CI --roles GUEST', 2);
    assert.match(stderr, /3:14: "approval.approvers": needs one approver/);
    assert.match(stderr, /4:3: "approval.wiat": /);
    write('aproval:\n  approvers: [ada]\n');
    assert.match(await cli('apikey create --name CI --roles GUEST', 2), /1:1: "aproval" .* Did you mean "approval"/);
  });

  it('is in the JSON Schema for editors, as far as the library of its schema says', async () => {
    const from = (path: string) => JSON.stringify(pathToFileURL(join(ROOT, 'node_modules', path)).href);
    const sections = `{
      approval: async () => {
        const { z } = await import(${from('zod/index.js')});
        const step = z.strictObject({ name: z.string(), get next() { return step.optional(); } }).meta({ id: 'step' });
        return { description: 'People.', schema: z.strictObject({ first: step, wait: z.number().default(30) }) };
      },
      ordinary: ${SECTION},
      failing: async () => ({ description: 'Fails.', schema: { '~standard': {
        version: 1, vendor: 'x', validate: (value) => ({ value }), jsonSchema: { input() { throw new Error('x'); } } } } }),
    }`;
    data.install(NAME, `{ name: '${NAME}', config: { sections: ${sections} } }`);
    const isValid = new Ajv2020({ allowUnionTypes: true, strictRequired: false, strictTypes: false }).compile(
      JSON.parse(await cli('doctor --config-schema')) as object,
    );
    for (const [valid, value] of [
      [true, { approval: { first: { name: 'a', next: { name: 'b' } } }, resources: ['WIKI'] }],
      [false, { approval: { first: { name: 'a', next: { name: 1 } } } }],
      [false, { approval: { first: { name: 'a' }, wiat: 1 } }],
      [true, { ordinary: 1, failing: [] }],
      [false, { resources: 'WIKI' }],
      [false, { aproval: {} }],
    ] as const)
      assert.equal(isValid(value), valid, JSON.stringify([value, isValid.errors]));
    assert.match(await cli('doctor --config-schema --fix', 2), /--config-schema/);
  });

  it('is missed by name where it is not installed', async () => {
    write('approval:\n  approvers: [ada]\n');
    data.uninstall(NAME);
    assert.match(
      await cli('apikey create --name CI --roles GUEST', 2),
      /1:1: "approval" is not a field.* Remove this field\. .* install the plugin/,
    );
  });

  it('is refused if its section or resource has a taken or invalid name', async () => {
    write('resources: [WIKI]\n');
    for (const [members, message] of [
      ["config: { sections: { a: async () => ({ description: 'x' }) } }", /section "a" needs a "schema"/],
      ['config: { sections: { a: async () => ({ schema: 1 }) } }', /section "a" needs a "description"/],
      ['config: { sections: { a: 1 } }', /"config.sections" has "a"/],
      ['config: { secions: {} }', /secions/],
      ["resources: ['DOCKER']", /resource "DOCKER" exists already/],
      ["resources: ['EDGE']", /a resource "EDGE" as well/],
      ["resources: ['A', 'A']", /resource "A" exists already/],
      ["resources: ['wiki']", /"wiki" is not a resource name/],
      ['resources: [1]', /resources/],
      [
        "metrics: [{ name: 'open', kind: 'gauge', help: 'x', read() {} }]",
        /metric "open" must begin with "svc_api_approval_"/,
      ],
      ["metrics: [{ name: 'svc_api_approval_a', kind: 'gague', help: 'x', read() {} }]", /gauge/],
    ] as const) {
      data.uninstall(NAME);
      data.install(NAME, `{ name: '${NAME}', ${members} }`);
      const stderr = await cli('apikey create --name CI --roles GUEST', 1);
      assert.match(stderr, new RegExp(`${NAME} .*${message.source}`), stderr);
    }
  });

  it('is refused if its section has the name of another one, also without a file', async () => {
    for (const taken of ['routes', 'tls', '$schema']) {
      data.install(NAME, `{ name: '${NAME}', config: { sections: { ${taken}: async () => ({}) } } }`);
      const args = 'apikey create --name CI --roles GUEST'.split(' ');
      const result = await runCliWithInput('', args, { env: { ...data.env, SVC_API_DATABASE: database } });
      assert.equal(result.code, 1, result.stdout);
      assert.match(result.stderr, new RegExp(`${NAME} is invalid.*section\\s+"${taken.replace('$', '[$]')}"`, 's'));
    }
  });

  it('has resources that keys are granted, at each door', async () => {
    write('routes: [{ host: "*", path: /vault, resource: VAULT }]\nroles: { APPROVER: [APPROVAL:CREATE_ANY] }\n');
    await cli('apikey create --name CI --permissions APPROVAL:READ_ANY --roles APPROVER');
    const { effectivePermissions } = JSON.parse(await cli('apikey show CI --json')) as Record<string, string[]>;
    const effective = ['CREATE_ANY', 'CREATE_OWN', 'READ_ANY', 'READ_OWN'].map((action) => `APPROVAL:${action}`);
    assert.deepEqual(effectivePermissions, effective);
    assert.match(await cli('apikey create --name Other --permissions APROVAL:READ_ANY', 2), /Did you mean APPROVAL/);
    const viewer = JSON.parse(await cli('apikey create --name V --roles VIEWER --dry-run --json')) as Record<
      string,
      string[]
    >;
    const granted = new Set(viewer['effectivePermissions']);
    assert.deepEqual(
      ['APPROVAL:READ_ANY', 'VAULT:READ_ANY'].map((each) => granted.has(each)),
      [true, false],
    );
    const { key } = JSON.parse(await cli('apikey create --name Admin --roles ADMIN --json')) as { key: string };
    const serve = await startServe(database, ['--port', '0', '--config', config], env());
    try {
      const ask = async (document: string) => (await query(serve.url, key, document)).body.data;
      const answer = await ask('{ permissions { resources } }');
      const { resources } = (answer as { permissions: { resources: string[] } }).permissions;
      assert.deepEqual(resources.slice(0, 2), ['APPROVAL', 'VAULT']);
      const made =
        'mutation { createApiKey(input: { name: "W", permissions: { resource: VAULT, actions: [READ_ANY] } }) { apiKey { name } } }';
      assert.deepEqual(await ask(made), { createApiKey: { apiKey: { name: 'W' } } });
    } finally {
      await serve.stop();
    }
    data.uninstall(NAME);
    write('resources: [WIKI]\n');
    const kept = JSON.parse(await cli('apikey show CI --json')) as Record<string, string[]>;
    assert.deepEqual([kept['permissions'], kept['effectivePermissions']], [['APPROVAL:READ_ANY'], []]);
  });

  it('has metrics in programs that use the library', async () => {
    const from = (path: string) => JSON.stringify(pathToFileURL(join(ROOT, 'src', path)).href);
    const program = `const { addFeatures } = await import(${from('plugin.ts')});
      addFeatures({ name: '${NAME}', metrics: ${METRICS} });
      const { startTelemetry } = await import(${from('index.ts')});
      const telemetry = await startTelemetry({ metrics: true });
      console.log((await telemetry.exposition()).text);
      await telemetry.stop();`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
    assert.match(stdout, /^svc_api_approval_open 7$/m);
    assert.doesNotMatch(stdout, FAILING);
  });

  it('has metrics', async () => {
    data.uninstall(NAME);
    data.install(NAME, `{ name: '${NAME}', metrics: ${METRICS} }`);
    const port = await freePort();
    const serve = await startServe(database, ['--port', '0', '--metrics-port', `${port}`], data.env);
    try {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      assert.match(text, /^# TYPE svc_api_approval_total counter\nsvc_api_approval_total\{team="web"\} 2$/m);
      assert.match(text, /^svc_api_approval_open 7$/m);
      assert.doesNotMatch(text, FAILING);
    } finally {
      await serve.stop();
    }
  });
});
