import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Host, installHost, mustRun, ON_CORE, packedFile, serveHost, withFile } from '../support/host.ts';
import { runCli } from '../support/process.ts';
import { query } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const FAILED = 'The hook svc-api:schema of acme failed:';
/** Hooks that fail, some through oclif, with the resulting error. */
const FAILING_HOOKS: readonly (readonly [body: string, said: string])[] = [
  ['throw new Error("no backups today");', 'no backups today'],
  ['throw "no backups at all";', 'no backups at all'],
  ['this.error("no backups left", { exit: 3 });', 'no backups left'],
  ['this.exit(0);', 'EEXIT: 0'],
  [
    'return "BACKUP";',
    'It returned a string. It can return { resources, actions, typeDefs, resolvers }, each of which',
  ],
];

/** Hooks with an invalid result, with the resulting error. */
const BAD_HOOKS: readonly (readonly [body: string, said: string])[] = [
  ['return ["BACKUP"];', 'It returned a list. It can return { resources, actions, typeDefs, resolvers }, each of'],
  [
    'return { resources: ["BACKUP"], typedefs: "" };',
    'It returned "typedefs", which is not a field. It can return { resources, actions, typeDefs, resolvers }, each of',
  ],
  [
    'return { resources: "BACKUP" };',
    'Its field "resources" is a string; it must be a list of names, or of { name, credentials? }.',
  ],
  ['return { resources: [{ credentials: true }] };', 'Its field "resources" is a list; it must be a list of names'],
  [
    'return { resources: [{ name: "VAULT", credential: true }] };',
    'Its field "resources" is a list; it must be a list',
  ],
  ['return { resources: ["back-up"] };', '"back-up" is not a resource name: use capital letters'],
  ['return { resources: [{ name: "DOCKER", credentials: true }] };', '"DOCKER" is a built-in resource'],
  [
    'return { resources: ["BACKUP"], typeDefs: 7 };',
    'Its field "typeDefs" is a number; it must be SDL, a parsed document, or a list of them.',
  ],
  [
    'return { resources: ["BACKUP"], resolvers: [] };',
    'Its field "resolvers" is a list; it must be an object, by type and field, or a function that returns it.',
  ],
];

/** Invalid parts that only `serve` reads. */
const BAD_PARTS: readonly (readonly [body: string, said: string])[] = [
  ['return { typeDefs: "type {" };', 'The typeDefs of acme are invalid: Syntax Error'],
  ['return { resolvers: async () => [] };', 'The resolvers of acme must be one object'],
  ['return { resolvers: () => { throw new Error("no disk") } };', `${FAILED} no disk`],
  ['return { resolvers: { ApiKey: { name: () => "x" } } };', 'acme has a resolver of ApiKey.name, which is built in'],
  ['return { typeDefs: "extend enum Role { ROOT }" };', 'acme declares Role, which is built in'],
];

/** A plugin of the host that also adds a schema. */
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
  [5, {}],
  // Also on the oldest supported graphql, of which npm gives one copy to the host and us.
  [4, { graphql: '16.8.1' }],
] as const) {
  describe(`a schema of the host's own, on oclif core ${core}`, () => {
    let host: Host;
    let hook: string;
    before(async () => {
      host = await installHost({ 'svc-api': `file:${packedFile()}`, ...ON_CORE[core], ...packages });
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

    it('is left out with a warning where the name of the hook is unknown, and commands go on', async () => {
      const misspelled = (text: string) => text.replace('"svc-api:schema"', '"svc-api:shema"');
      await withFile(join(host.folder, 'package.json'), misspelled, async () => {
        await host.cli(['apikey', 'create', '--name', 'Go on', '--roles', 'GUEST']);
        const { stdout, stderr, code } = await host.cli(['apikey', 'list', '--json']);
        assert.deepEqual([code, Array.isArray((JSON.parse(stdout) as { keys: unknown }).keys)], [0, true], stderr);
        assert.match(stderr, /acme has the hook "svc-api:shema", which is never called: .*"svc-api:schema"/);
      });
    });

    it('is refused with an open root field, by name', async () => {
      const open = (text: string) => text.replace(' @requires(resource: BACKUP, action: READ_ANY)', '');
      const { stdout, stderr, code } = await withFile(hook, open, () => host.cli(['serve', '--port', '0']));
      assert.deepEqual([stdout, code], ['', 1]);
      assert.match(stderr, /Query\.backups must carry @requires/);
      assert.doesNotMatch(stderr, /createBackup|^ +at /m);
    });

    it('is refused when the hook fails, or returns something else, with its plugin', async () => {
      const create = ['apikey', '--create', '--name', 'x', '--permissions', 'BACKUP:READ_ANY', '--json'];
      for (const [body, said] of FAILING_HOOKS) {
        const bad = () => `export default async function schema() { ${body} }\n`;
        const [served, created] = await withFile(hook, bad, () =>
          Promise.all([host.cli(['serve', '--port', '0']), host.cli(create)]),
        );
        assert.ok(served.stderr.startsWith(`Error: ${FAILED} ${said}`), served.stderr);
        assert.deepEqual([served.stdout, served.code], ['', 1], body);
        assert.equal((JSON.parse(created.stdout) as { code: string }).code, 'SCHEMA_INVALID');
        assert.equal(created.code, 1);
      }
    });

    it('is refused when its hook, or loading its resolvers, takes more than 10 seconds', async () => {
      const hangs = () => `
        const never = new Promise(() => {});
        export default async () => (process.env.HANGS === 'it' ? never : { resolvers: () => never });`;
      await withFile(hook, hangs, () =>
        Promise.all(
          ['it', '"resolvers"'].map(async (what) => {
            const { stdout, stderr, code } = await host.cli(['serve', '--port', '0'], { HANGS: what });
            assert.ok(stderr.includes(`${FAILED} ${what} did not return within 10 seconds.`), stderr);
            assert.deepEqual([stdout, code], ['', 1]);
          }),
        ),
      );
    });

    it('may consist of resources only', async () => {
      const alone = () => `export default async () => ({ resources: ['ALONE'] });\n`;
      await withFile(hook, alone, async () => {
        await create('Alone', '--permissions', 'ALONE:READ_ANY');
        await (await serveHost(host)).stop();
      });
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

    // Our code reads the hook's result, which does not depend on the release.
    if (core === 4) return;

    it('is refused for an invalid result of its hook, with the field, and what is allowed', async () => {
      const all = [...BAD_HOOKS, ...BAD_PARTS];
      const bad = () => `
        const bodies = [${all.map(([body]) => `async () => { ${body} }`).join()}];
        export default (() => bodies[process.env.BODY]());`;
      // In one process, because each start takes half a second.
      const program = `
        import { Config } from '@oclif/core';
        const said = [];
        for (let body = 0; body < ${all.length}; body += 1) {
          process.env.BODY = body;
          const config = await Config.load(process.cwd());
          said.push(await config.runCommand('serve', ['--port', '0']).then(() => 'it serves', ({ message }) => message));
        }
        console.log(JSON.stringify(said));
        process.exit();`;
      const stdout = await withFile(hook, bad, () =>
        mustRun(process.execPath, ['--input-type=module', '-e', program], {
          cwd: host.folder,
          env: { XDG_DATA_HOME: join(host.folder, 'home') },
        }),
      );
      const messages = JSON.parse(stdout) as string[];
      for (const [index, [body, said]] of all.entries())
        assert.ok(messages[index]!.includes(said), `${body}: ${messages[index]!}`);
    });
  });
}
