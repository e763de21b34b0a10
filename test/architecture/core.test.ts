import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FEATURES } from '../../src/features/index.ts';
import { ROOT } from '../support/process.ts';

/** Files that name no feature. */
const CORE = [
  'src/cli/serve/config-source.ts',
  'src/cli/serve/options.ts',
  'src/cli/serve/service-manager.ts',
  'src/cli/serve/workers.ts',
  'src/config/config-file.ts',
  'src/config/config-follower.ts',
  'src/config/default-config.ts',
  'src/config/load-config.ts',
  'src/config/read-config.ts',
  'src/config/section.ts',
  'src/config/sections.ts',
  'src/config/sections/access.ts',
  'src/config/values.ts',
  'src/graphql/extension.ts',
  'src/graphql/feature-schema.ts',
  'src/graphql/operations.ts',
  'src/graphql/requirements.ts',
  'src/graphql/service.ts',
  'src/http/issuer.ts',
  'src/keys/authentication/authenticator.ts',
  'src/keys/authentication/look-up.ts',
  'src/keys/authentication/verified-keys.ts',
  'src/keys/changes/adopt.ts',
  'src/keys/changes/create.ts',
  'src/keys/changes/delete.ts',
  'src/keys/changes/delivery.ts',
  'src/keys/changes/issued.ts',
  'src/keys/changes/permitted-changes.ts',
  'src/keys/changes/transaction.ts',
  'src/keys/changes/update.ts',
  'src/keys/operations/operation.ts',
  'src/keys/permissions/scope.ts',
  'src/keys/repository/repository.ts',
  'src/remote/shape.ts',
  'src/service/background.ts',
  'src/service/describe-service.ts',
  'src/store/key-repository.ts',
];

/** Words of features, as they stand in names of code. */
const WORDS = new Set(
  `client clients consent consents contain containment containments edge edges effect effects federation import imports leak leaks mcp notice
  notices people person session sessions spent usage`.split(/\s+/),
);

describe('the core', () => {
  for (const path of CORE)
    it(`names no feature in ${path}`, () => {
      const names = wordsOf(readFileSync(join(ROOT, path), 'utf8'));
      assert.deepEqual([...names].filter((word) => WORDS.has(word)).toSorted(), []);
    });

  it('is searched for names of every form', () => {
    const text = `import { CONSENTS } from './consents.ts'; // a session
      /* edges */ const usageOf = 'people', text = \`\${theEffects}\`, b: KeyClient = imports;`;
    const found = [...wordsOf(text)].filter((word) => WORDS.has(word));
    assert.deepEqual(found.toSorted(), ['client', 'consents', 'effects', 'imports', 'usage']);
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
