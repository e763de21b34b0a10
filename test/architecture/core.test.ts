import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FEATURES } from '../../src/features/index.ts';
import { ROOT } from '../support/process.ts';

/**
 * Words with another meaning in a file: the usage of a command, edges of a page, sessions of Node and of databases,
 * periods that several features count by, and a member that any feature can have.
 */
const MEANT_OTHERWISE: Readonly<Record<string, readonly string[]>> = {
  'src/cli/explain/present.ts': ['usage'],
  'src/cli/explain/report.ts': ['usage'],
  'src/cli/help/own-help.ts': ['usage'],
  'src/cli/plugins/chosen-features.ts': ['usage'],
  'src/cli/prompts/rich-prompts.ts': ['effect'],
  'src/cli/serve/serving-command.ts': ['session'],
  'src/commands/apikey/explain.ts': ['usage'],
  'src/commands/apikey/index.ts': ['usage'],
  'src/commands/apikey/verify.ts': ['usage'],
  'src/commands/serve.ts': ['usage'],
  'src/graphql/resolve.ts': ['edges'],
  'src/graphql/schema-types.ts': ['edge', 'edges', 'usage'],
  'src/keys/added/rules.ts': ['notices'],
  'src/keys/basics/error-codes/servers.ts': ['spent'],
  'src/keys/basics/error-codes/values.ts': ['usage'],
  'src/store/postgres/postgres-connection.ts': ['session'],
};

/** Features' words, as used in names in code. */
const WORDS = new Set(
  `completion consent consents contain containment containments edge edges effect effects federation leak leaks mcp nats
  notice notices people person review reviewed scan session sessions spent suggested transfer usage webhook`.split(
    /\s+/,
  ),
);

describe('the core', () => {
  it('names no feature', () => {
    const core = globSync('src/**/*.ts', { cwd: ROOT, exclude: ['src/features/**'] });
    assert.ok(core.length > 200);
    const naming = core.filter((path) => {
      const words = wordsOf(readFileSync(join(ROOT, path), 'utf8'));
      return [...WORDS].some((word) => words.has(word) && !MEANT_OTHERWISE[path]?.includes(word));
    });
    assert.deepEqual(naming, []);
  });

  it('is searched for names of every form', () => {
    const text = `import { CONSENTS } from './consents.ts'; // a session
      /* edges */ const usageOf = 'people', b: KeyClient = imports, person = "a leak";
      const text = \`notices of \${theEffects}\`, found = sql\`from mcp where \${a}\`;`;
    const found = [...wordsOf(text)].filter((word) => WORDS.has(word));
    assert.deepEqual(found.toSorted(), ['consents', 'effects', 'mcp', 'person', 'usage']);
  });
});

describe('the features of svc-api', () => {
  it('have distinct names, and are listed after those that they need', () => {
    const names = FEATURES.map(({ name }) => name);
    assert.deepEqual([...new Set(names)], names);
    for (const [at, { needs = [] }] of FEATURES.entries())
      for (const needed of needs) assert.ok(names.indexOf(needed) < at && names.includes(needed), needed);
  });
});

/** The words of names in code, in lower case, without comments, strings and the keyword `import`. SQL is included. */
function wordsOf(text: string): Set<string> {
  const code = text
    .replaceAll(/\/\*.*?\*\//gs, '')
    .replaceAll(/(?<=^|\s)\/\/.*$/gm, '')
    .replaceAll(/^\s*import\b|\bimport(?=\()/gm, '')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, '')
    .replaceAll(/(?<![\w>])`((?:[^`\\\n]|\\.)*)`/g, (template, inside: string) => {
      const names = Array.from(inside.matchAll(/\$\{([^{}]*)\}/g), ([, name]) => name);
      return names.length === inside.split('${').length - 1 ? names.join(' ') : template;
    });
  const names = code.match(/[A-Za-z]\w*/g) ?? [];
  const parts = names.flatMap((name) => name.match(/[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+|[A-Z]/g) ?? []);
  return new Set(parts.map((part) => part.toLowerCase()));
}
