import { readFileSync } from 'node:fs';
import { type PublicName, publicNames } from './library-surface.ts';
import { tableOf } from './tables.ts';

/** The examples of the library, which show each of its names, in the order for readers. */
const EXAMPLES: Readonly<Record<string, string>> = {
  'Managing keys': 'keys.ts',
  'Checking a request': 'check.ts',
  Edges: 'edge.ts',
  'A Worker': 'worker.ts',
  Hono: 'hono.ts',
  'Express and Connect': 'express.ts',
  'node:http': 'node.ts',
  Fastify: 'fastify.ts',
  'The whole service': 'service.ts',
  'The hook of a CLI': 'hook.ts',
  'A command of a CLI': 'host-command.ts',
  'Fields of keys': 'feature.ts',
  'An operation of a plugin': 'operation.ts',
};

/** All names that programs can import, with their meaning, and with an example unless it is only a type. */
export function libraryNames(): string {
  const left = new Map(publicNames().map((each) => [`${each.name} of ${each.from}`, each]));
  const sections = Object.entries(EXAMPLES).map(([title, file]) => {
    const code = readFileSync(new URL(`../examples/library/${file}`, import.meta.url), 'utf8');
    const shown = importedBy(code).flatMap((name): PublicName[] => {
      const found = left.get(name);
      left.delete(name);
      return found ? [found] : [];
    });
    const table = shown.length > 0 ? `${tableFor(shown)}\n\n` : '';
    return `### ${title}\n\n${table}\`\`\`ts\n${code}\`\`\``;
  });
  const isType = ({ text }: PublicName) =>
    /^export (?:interface|type) |class (?:KeysService|Networks|Transaction|WatchedRequest)/.test(text);
  const unshown = [...left].filter(([, each]) => !isType(each)).map(([name]) => name);
  if (unshown.length > 0) throw new Error(`No example in examples/library shows ${unshown.join(', ')}.`);
  sections.push(`### Types of arguments and results\n\n${tableFor([...left.values()])}`);
  return sections.join('\n\n');
}

function tableFor(names: readonly PublicName[]): string {
  const rows = names.map(({ name, from, meaning }) => [`\`${name}\``, `\`${from}\``, meaning.replace(/ @.*/s, '')]);
  return tableOf([['name', 'import from', 'what it is'], ...rows]);
}

function importedBy(code: string): string[] {
  return Array.from(code.matchAll(/^import (?:type )?\{([^}]+)\} from '(svc-api[^']*)';$/gm)).flatMap(
    ([, list = '', from = '']) => list.match(/\w+(?=,|\s*$)/g)!.map((name) => `${name} of ${from}`),
  );
}
