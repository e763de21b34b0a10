import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FEATURES } from '../../src/features/index.ts';
import { ROOT } from '../support/process.ts';

/** Files of the core that still name a feature. Take out those that are free. */
const NOT_YET: readonly string[] = [
  'src/cli/explain/present.ts',
  'src/cli/explain/report.ts',
  'src/cli/help/own-help.ts',
  'src/cli/manage/key-command.ts',
  'src/cli/prompts/rich-prompts.ts',
  'src/cli/serve/serving-command.ts',
  'src/cli/views/key-view.ts',
  'src/commands/apikey/exec.ts',
  'src/commands/apikey/explain.ts',
  'src/commands/apikey/index.ts',
  'src/commands/apikey/rotate.ts',
  'src/commands/apikey/verify.ts',
  'src/commands/serve.ts',
  'src/graphql/resolve.ts',
  'src/graphql/schema-types.ts',
  'src/http/bearer-check.ts',
  'src/http/index.ts',
  'src/http/request-body.ts',
  'src/index.ts',
  'src/keys/added/index.ts',
  'src/keys/audit/audit-entry.ts',
  'src/keys/audit/compare.ts',
  'src/keys/audit/refusals.ts',
  'src/keys/authorization/chain.ts',
  'src/keys/basics/error-codes/servers.ts',
  'src/keys/basics/error-codes/values.ts',
  'src/keys/basics/limit.ts',
  'src/keys/basics/text.ts',
  'src/keys/changes/confusable-names.ts',
  'src/keys/key/api-key.ts',
  'src/keys/key/fields.ts',
  'src/keys/key/name.ts',
  'src/keys/key/person.ts',
  'src/keys/permissions/catalog.ts',
  'src/keys/secret/secret.ts',
  'src/keys/service/management.ts',
  'src/limits/lease.ts',
  'src/remote/oauth.ts',
  'src/remote/requests.ts',
  'src/service/open-keys.ts',
  'src/store/migrations.ts',
  'src/store/postgres/postgres-connection.ts',
  'src/store/postgres/postgres-listener.ts',
  'src/store/rows.ts',
  'src/store/tables.ts',
];

/** Words of features, as they stand in names of code. */
const WORDS = new Set(
  `consent consents contain containment containments edge edges effect effects federation leak leaks mcp notice notices
  people person session sessions spent usage`.split(/\s+/),
);

describe('the core', () => {
  it('names no feature, except in files that are known to', () => {
    const core = globSync('src/**/*.ts', { cwd: ROOT, exclude: ['src/features/**'] });
    assert.ok(core.length > 200);
    const naming = core.filter((path) => {
      const words = wordsOf(readFileSync(join(ROOT, path), 'utf8'));
      return [...WORDS].some((word) => words.has(word));
    });
    assert.deepEqual(naming.toSorted(), NOT_YET);
  });

  it('is searched for names of every form', () => {
    const text = `import { CONSENTS } from './consents.ts'; // a session
      /* edges */ const usageOf = 'people', text = \`\${theEffects}\`, b: KeyClient = imports;`;
    const found = [...wordsOf(text)].filter((word) => WORDS.has(word));
    assert.deepEqual(found.toSorted(), ['consents', 'effects', 'usage']);
  });
});

describe('the features of svc-api', () => {
  it('have names of their own, and come after those that they need', () => {
    const names = FEATURES.map(({ name }) => name);
    assert.deepEqual([...new Set(names)], names);
    for (const [at, { needs = [] }] of FEATURES.entries())
      for (const needed of needs) assert.ok(names.indexOf(needed) < at && names.includes(needed), needed);
  });
});

/** The words of the names in code, in lower case: without comments, texts and the keyword `import`. */
function wordsOf(text: string): Set<string> {
  const code = text
    .replaceAll(/\/\*.*?\*\//gs, '')
    .replaceAll(/(?<=^|\s)\/\/.*$/gm, '')
    .replaceAll(/^\s*import\b|\bimport(?=\()/gm, '')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'/g, '');
  const names = code.match(/[A-Za-z]\w*/g) ?? [];
  const parts = names.flatMap((name) => name.match(/[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+|[A-Z]/g) ?? []);
  return new Set(parts.map((part) => part.toLowerCase()));
}
