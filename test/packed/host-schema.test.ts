import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Host, installHost, packPackage, serveHost, withFile } from '../support/host.ts';
import { runCli } from '../support/process.ts';
import { query } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

/** Hooks that are not right, and what is said of them. */
const BAD_HOOKS: readonly (readonly [string, RegExp])[] = [
  [
    'throw new Error("no backups today");',
    /^Error: The hook svc-api:schema of acme failed: no backups today\nCode: SCHEMA_INVALID\n/,
  ],
  [
    'throw "no backups at all";',
    /^Error: The hook svc-api:schema of acme failed: no backups at all\nCode: SCHEMA_INVALID\n/,
  ],
  [
    'this.error("no backups left", { exit: 3 });',
    /^Error: The hook svc-api:schema of acme failed: no backups left\nCode: SCHEMA_INVALID\n/,
  ],
  ['this.exit(0);', /^Error: The hook svc-api:schema of acme failed: EEXIT: 0\nCode: SCHEMA_INVALID\n/],
  [
    'return "BACKUP";',
    /^Error: The hook svc-api:schema of acme failed: It must return \{ typeDefs, resolvers, resources\? \}/,
  ],
  ['return { resources: ["BACKUP"] };', /^Error: The hook svc-api:schema of acme failed: It must return/],
  [
    'return { typeDefs: "", resolvers: {}, resources: "BACKUP" };',
    /^Error: The hook svc-api:schema of acme failed: It must return/,
  ],
  [
    'return { typeDefs: "", resolvers: {}, resources: ["back-up"] };',
    /^Error: The hook svc-api:schema of acme failed: "back-up" is not a resource/,
  ],
];

/** A plugin of the host that brings a schema as well. */
const TAPES = {
  manifest: {
    name: 'acme-tapes',
    version: '1.0.0',
    type: 'module',
    oclif: { hooks: { 'svc-api:schema': './schema.js' } },
  },
  hook: `export default async () => ({
    resources: ['TAPE'],
    typeDefs: 'extend type Query { tapes: Int! @requires(resource: TAPE, action: READ_ANY) }',
    resolvers: { Query: { tapes: () => 7 } },
  });`,
};

for (const [core, packages] of [
  ['^5', {}],
  // And on the oldest graphql that we take: npm gives one copy to the host and to us.
  ['^4', { '@oclif/plugin-help': '^6', graphql: '16.8.1' }],
] as const) {
  describe(`a schema of the host's own, on oclif core ${core}`, () => {
    let host: Host;
    let hook: string;
    before(async () => {
      const tarball = await packPackage();
      host = await installHost({ 'svc-api': `file:${tarball}`, '@oclif/core': core, ...packages });
      hook = join(host.folder, 'hooks/schema.js');
    });
    const create = async (name: string, ...grants: string[]) => {
      const { code, stdout, stderr } = await host.cli(['apikey', '--create', '--name', name, ...grants]);
      assert.equal(code, 0, stderr);
      return stdout.trim();
    };

    it('has resources that the command line knows without the resolvers', async () => {
      const marker = join(tempFolder(), 'loaded');
      const load = `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(marker)}, '');\n`;
      await withFile(
        join(host.folder, 'resolvers.js'),
        (text) => load + text,
        async () => {
          assert.match(await create('Backup job', '--permissions', 'backup:read_any'), /^svc_/);
          assert.equal(existsSync(marker), false);
          await (await serveHost(host)).stop();
          assert.equal(existsSync(marker), true, 'serve loads them');
        },
      );
      const alone = await runCli(['apikey', '--create', '--name', 'x', '--permissions', 'BACKUP:READ_ANY'], {
        env: { XDG_DATA_HOME: tempFolder() },
      });
      assert.equal(alone.code, 2);
      assert.match(alone.stderr, /"BACKUP" is not a resource/);
    });

    it('is served under its permissions, and its errors keep their text', async () => {
      const keeper = await create('Keeper', '--permissions', 'BACKUP:READ_ANY,BACKUP:CREATE_ANY');
      const viewer = await create('Viewer', '--roles', 'VIEWER');
      const guest = await create('Guest', '--roles', 'GUEST');
      const { url, stop } = await serveHost(host);
      const ask = async (secret: string, document: string) => {
        const { data, errors = [] } = (await query(url, secret, document)).body;
        return {
          data,
          errors: errors.map(({ message, path, extensions }): Record<string, unknown> => ({
            message,
            path,
            ...extensions,
          })),
        };
      };
      try {
        assert.deepEqual(await ask(viewer, '{ backups { id requestedBy } }'), {
          data: { backups: [{ id: '1', requestedBy: null }] },
          errors: [],
        });
        const made = 'mutation { createBackup { id requestedBy } }';
        assert.deepEqual(await ask(keeper, made), {
          data: { createBackup: { id: '2', requestedBy: 'Keeper' } },
          errors: [],
        });
        assert.equal((await ask(viewer, made)).errors[0]?.['code'], 'FORBIDDEN');
        const refused = await ask(guest, '{ backups { id } me { name } }');
        assert.deepEqual(refused.data, { backups: null, me: { name: 'Guest' } });
        assert.deepEqual(
          refused.errors.map(({ path, code, missing }) => ({ path, code, missing })),
          [{ path: ['backups'], code: 'FORBIDDEN', missing: ['BACKUP:READ_ANY'] }],
        );
        await ask(keeper, made);
        assert.deepEqual((await ask(keeper, made)).errors, [
          { message: 'There are 3 backups already.', path: ['createBackup'], code: 'TOO_MANY_BACKUPS' },
        ]);
      } finally {
        await stop();
      }
    });

    it('is refused with an open root field, by name', async () => {
      const open = (text: string) => text.replace(' @requires(resource: BACKUP, action: READ_ANY)', '');
      const { stdout, stderr, code } = await withFile(hook, open, () => host.cli(['serve', '--port', '0']));
      assert.deepEqual([stdout, code], ['', 1]);
      assert.match(stderr, /Query\.backups must carry @requires/);
      assert.doesNotMatch(stderr, /createBackup|^ +at /m);
    });

    it('is refused when the hook is not right, with the name of its plugin', async () => {
      for (const [body, said] of BAD_HOOKS) {
        const bad = () => `export default async function schema() { ${body} }\n`;
        const [served, created] = await withFile(hook, bad, () =>
          Promise.all([
            host.cli(['serve', '--port', '0']),
            host.cli(['apikey', '--create', '--name', 'x', '--permissions', 'BACKUP:READ_ANY', '--json']),
          ]),
        );
        assert.match(served.stderr, said, body);
        assert.deepEqual([served.stdout, served.code], ['', 1], body);
        assert.equal((JSON.parse(created.stdout) as { code: string }).code, 'SCHEMA_INVALID');
        assert.equal(created.code, 1);
      }
    });

    it('may be that of several plugins', async () => {
      const plugin = join(host.folder, 'node_modules/acme-tapes');
      mkdirSync(plugin);
      writeFileSync(join(plugin, 'package.json'), JSON.stringify(TAPES.manifest));
      writeFileSync(join(plugin, 'schema.js'), TAPES.hook);
      const list = (text: string) =>
        text.replace('"svc-api"]', '"svc-api","acme-tapes"]').replace('"svc-api":', '"acme-tapes":"*","svc-api":');
      await withFile(join(host.folder, 'package.json'), list, async () => {
        const archive = await create('Archive', '--permissions', 'TAPE:READ_ANY,BACKUP:READ_ANY');
        const { url, stop } = await serveHost(host);
        try {
          const { body } = await query(url, archive, '{ tapes backups { id } }');
          assert.deepEqual(body, { data: { tapes: 7, backups: [{ id: '1' }] } });
        } finally {
          await stop();
        }
      });
    });
  });
}
