import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { ROOT } from '../support/process.ts';

/** Each public name with its declaration file, which the package ships. */
const PUBLIC = ['dist/index.d.ts', 'dist/express.d.ts', 'dist/fastify.d.ts'].flatMap((entry) => [
  ...reexportsIn(entry).map(({ name, file }) => ({ name, file: declaringFile(name, file) })),
  ...Array.from(
    withoutComments(entry).matchAll(/^export (?:declare )?(?:interface|type|class|function|const) (\w+)/gm),
    ([, name = '']) => ({ name, file: entry }),
  ),
]);

describe('the public types', () => {
  it('can be imported when a public signature mentions them', () => {
    const names = new Set(PUBLIC.map(({ name }) => name));
    assert.ok(names.has('KeysService') && names.has('AuthenticatedRequest') && names.has('OnRequestHook'));
    const missing = PUBLIC.flatMap(({ name, file }) =>
      typesMentionedBy(name, file)
        .filter((type) => !names.has(type))
        .map((type) => `${type}, by ${name}`),
    );
    assert.deepEqual(missing, []);
  });

  it('call a secret or the path of a private key "key", and an API key "apiKey"', () => {
    const properties = PUBLIC.flatMap(({ name, file }) =>
      Array.from(
        declarationsOf(name, file)
          .join('\n')
          .matchAll(/^ +(?:readonly |get )*key(?:\?|\(\))?: (.+)$/gm),
        ([, type]) => `${name}.key: ${type}`,
      ),
    );
    assert.ok(properties.includes('NewSecret.key: string;'));
    assert.deepEqual(
      properties.filter((property) => !property.endsWith(': string;')),
      [],
    );
  });
});

/** Types of ours that a declaration mentions. Constructors are not public: the library's functions call them. */
function typesMentionedBy(name: string, file: string): string[] {
  const text = withoutComments(file);
  const imported = Array.from(
    text.matchAll(/^import (?:type )?\{([^}]+)\} from '\.[^']+';$/gm),
    ([, names = '']) => names,
  );
  const declared = Array.from(
    text.matchAll(/^(?:export )?(?:declare )?(?:interface|type|class) (\w+)/gm),
    ([, type]) => type!,
  );
  const mentioned = declarationsOf(name, file);
  return [...new Set([...imported.flatMap(namesIn), ...declared])].filter((type) =>
    mentioned.some((found) => new RegExp(`\\b${type}\\b`).test(found)),
  );
}

function declarationsOf(name: string, file: string): string[] {
  const declaration = new RegExp(
    `^export (?:declare )?(?:interface|type|class|function|const) ${name}\\b.*(?:\\n[ }].*)*`,
    'gm',
  );
  const found = Array.from(withoutComments(file).matchAll(declaration), ([text]) =>
    text.replace(/^ +constructor\(.*?\);$/ms, ''),
  );
  assert.notEqual(found.length, 0, `no declaration of ${name} in ${file}`);
  return found;
}

function reexportsIn(file: string): { name: string; file: string }[] {
  return Array.from(read(file).matchAll(/^export (?:type )?\{([^}]+)\} from '([^']+)';$/gm)).flatMap(
    ([, names = '', from = '']) => namesIn(names).map((name) => ({ name, file: declarationFile(file, from) })),
  );
}

/** The file behind a folder's door that has the declaration. */
function declaringFile(name: string, file: string): string {
  const behind = reexportsIn(file).find((reexport) => reexport.name === name);
  return behind ? declaringFile(name, behind.file) : file;
}

function withoutComments(file: string): string {
  return read(file).replaceAll(/\/\*\*.*?\*\//gs, '');
}

function namesIn(list: string): string[] {
  return list
    .split(',')
    .map((name) => name.trim().replace(/^type /, ''))
    .filter(Boolean);
}

function declarationFile(importer: string, path: string): string {
  return posix.join(posix.dirname(importer), path).replace(/\.ts$/, '.d.ts');
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}
