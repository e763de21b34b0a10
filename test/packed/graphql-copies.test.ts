import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Host, type HostManifest, installHost, packedFile, serveHost } from '../support/host.ts';
import { query } from '../support/server.ts';

/** A schema part built with the host's own graphql. */
const HOOK = `
  import { GraphQLError, GraphQLScalarType, parse } from 'graphql';
  const odd = (value) => {
    if (value % 2) throw new GraphQLError(value + ' is odd');
    return value;
  };
  export default async () => ({
    resources: ['BACKUP'],
    typeDefs: parse(\`
      scalar Even
      extend type Query { half(of: Even!): Even @requires(resource: BACKUP, action: READ_ANY) }
    \`),
    resolvers: {
      Even: new GraphQLScalarType({ name: 'Even', serialize: odd, parseValue: odd, parseLiteral: ({ value }) => odd(Number(value)) }),
      Query: { half: (_, { of }) => of / 2 },
    },
  });`;

const MANAGED = [
  ['15', '^15'],
  ['16, an older one than svc-api needs', '16.0.0'],
  ['17', '^17'],
] as const;

describe('beside its own graphql, a host', () => {
  let tarball: string;
  before(async () => {
    tarball = packedFile();
  });
  const install = (graphql: string, change?: (manifest: HostManifest) => void) =>
    installHost({ 'svc-api': `file:${tarball}`, graphql }, change);

  for (const [release, range] of MANAGED) {
    it(`of release ${release} serves its part of the schema, with scalars, errors and SDL of that`, async () => {
      const host = await install(range);
      writeFileSync(join(host.folder, 'hooks/schema.js'), HOOK);
      const { stdout } = await host.cli(['apikey', 'create', '--name', 'Viewer', '--roles', 'VIEWER']);
      const { url, stop } = await serveHost(host);
      const half = async (of: number) => {
        const { body } = await query(url, stdout.trim(), 'query ($of: Even!) { half(of: $of) me { name } }', { of });
        return [body.data, body.errors?.map(({ message }) => message)];
      };
      try {
        // The second time, the operation is prepared and takes another path.
        for (const _ of ['first', 'second']) {
          assert.deepEqual(await half(8), [{ half: 4, me: { name: 'Viewer' } }, undefined]);
          assert.deepEqual(await half(6), [{ half: null, me: { name: 'Viewer' } }, ['3 is odd']]);
        }
        assert.match(JSON.stringify(await half(3)), /3 is odd/);
      } finally {
        await stop();
      }
    });
  }

  for (const [release, range] of [
    ['15', '^15'],
    ['17', '^17'],
  ] as const) {
    it(`of release ${release} that it sets for all packages is refused at the start, with the remedy`, async () => {
      const host: Host = await install(range, (manifest) =>
        Object.assign(manifest, { overrides: { graphql: '$graphql' } }),
      );
      const { stdout, stderr, code } = await host.cli(['serve', '--port', '0'], { LOG_LEVEL: 'error' });
      assert.deepEqual([stdout, code], ['', 1]);
      const place = join(host.folder, 'node_modules/graphql/');
      assert.match(
        stderr,
        new RegExp(`^Error: svc-api needs graphql \\^16\\.8\\.1, and gets graphql ${release}\\.\\d+\\.\\d+ from `),
      );
      assert.ok(stderr.includes(place), stderr);
      assert.match(
        stderr,
        /remove the setting that fixes the version .*"overrides".* or add "graphql": "\^16\.8\.1".*"npm dedupe"/s,
      );
      const { stdout: created } = await host.cli(['apikey', 'create', '--name', 'Key', '--roles', 'VIEWER', '--json']);
      assert.equal((JSON.parse(created) as { name: string }).name, 'Key', 'apikey needs no graphql');
    });
  }
});
