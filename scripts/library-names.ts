import { readFileSync } from 'node:fs';
import { type PublicName, publicNames } from './library-surface.ts';
import { tableOf } from './tables.ts';

/** The examples of the library, each with the section that shows it, from `docs/library`. A name leads to its first one. */
const EXAMPLES: Readonly<Record<string, string>> = {
  'keys.ts': 'managing.md#example',
  'check.ts': 'checking.md#example-of-keyscheck',
  'edge.ts': 'opening.md#without-the-store',
  'worker.ts': 'client.md#2-check-each-request',
  'hono.ts': 'checking.md#hono',
  'express.ts': 'checking.md#express-and-connect',
  'node.ts': 'checking.md#nodehttp',
  'fastify.ts': 'checking.md#fastify',
  'service.ts': 'service.md#the-whole-service',
  'hook.ts': 'cli-schema.md#the-hook',
  'host-command.ts': 'cli-commands.md#open-the-key-store',
  'feature.ts': '../plugins/writing.md#in-typescript',
  'operation.ts': '../plugins/operations.md#in-typescript',
};

/** All names that programs can import, with their meaning. Those in an example lead to it. */
export function libraryNames(): string {
  const shownAt = new Map<string, string>();
  for (const [file, section] of Object.entries(EXAMPLES))
    for (const name of importedBy(codeOf(file))) if (!shownAt.has(name)) shownAt.set(name, section);
  const rowOf = ({ name, from, meaning }: PublicName) => {
    const section = shownAt.get(idOf(name, from));
    return [section ? `[\`${name}\`](${section})` : `\`${name}\``, `\`${from}\``, meaning.replace(/ @.*/s, '')];
  };
  const names = publicNames();
  const unshown = names.filter((each) => !isType(each) && !shownAt.has(idOf(each.name, each.from)));
  if (unshown.length > 0)
    throw new Error(`No example in examples/library shows ${unshown.map(({ name }) => name).join(', ')}.`);
  const head = ['name', 'import from', 'what it is'];
  const [values, types] = [names.filter((each) => !isType(each)), names.filter(isType)].map((some) =>
    tableOf([head, ...some.map(rowOf)]),
  );
  return `## Functions, classes and constants\n\n${values}\n\n## Types\n\n${types}`;
}

/** The examples as blocks of code, by the names of their places in pages. */
export const EXAMPLE_PARTS: Readonly<Record<string, () => string>> = Object.fromEntries(
  Object.keys(EXAMPLES).map((file) => [`example ${file}`, () => `\`\`\`ts\n${codeOf(file)}\`\`\``]),
);

function isType({ text }: PublicName): boolean {
  return /^export (?:interface|type) |class (?:KeysService|Networks|Transaction|WatchedRequest)/.test(text);
}

function codeOf(file: string): string {
  return readFileSync(new URL(`../examples/library/${file}`, import.meta.url), 'utf8');
}

function importedBy(code: string): string[] {
  return Array.from(code.matchAll(/^import (?:type )?\{([^}]+)\} from '(svc-api[^']*)';$/gm)).flatMap(
    ([, list = '', from = '']) => list.match(/\w+(?=,|\s*$)/g)!.map((name) => idOf(name, from)),
  );
}

function idOf(name: string, from: string): string {
  return `${name} of ${from}`;
}
