import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT_CODES } from '../../src/cli/errors.ts';
import { ENVIRONMENT } from '../../src/cli/help/environment.ts';
import { VERB_GROUPS } from '../../src/cli/help/verbs.ts';
import { ROOT } from '../support/process.ts';

interface Described {
  description?: string;
}
interface Manifest {
  commands: Record<
    string,
    Described & {
      summary: string;
      hidden?: boolean;
      examples?: { description: string }[];
      args: Record<string, Described>;
      flags: Record<string, Described & { multiple?: boolean }>;
    }
  >;
}

const { commands } = JSON.parse(readFileSync(join(ROOT, 'oclif.manifest.json'), 'utf8')) as Manifest;

/** What only means something beside another text, which may stand elsewhere, or be left out. */
const LEANING = [
  /\bof (?:these|those)[,.]/i,
  /\bfor (?:that|this) (?:port|address|socket|certificate)\b/i,
  /\bin place of (?:it|that|these|those|them)\b/i,
  /\bthe same for\b/i,
  /\b(?:as|see) (?:above|below)\b|\bwritten like\b|\bprevious (?:flag|option|variable)\b/i,
  /^(?:It|Its|They|Their|These|Those|This|That|Neither|Until then|Afterwards|Then)\b|^Also (?:after|if|where)\b/,
  /^(?:As|In) \S+(?: \S+)?\.?$/,
  /\b(?:after|against|before|for|than|to|with) (?:it|that|them|these|those)\.?$/i,
  /\bthat it has\b|\binstead$/i,
];

/** All texts of the help, by where they stand. */
function textsOfHelp(): [place: string, text: string][] {
  const described = (place: string, texts: Record<string, Described>): [string, string][] =>
    Object.entries(texts).map(([name, { description = '' }]) => [`${place} ${name}`, description]);
  return [
    ...Object.entries(commands).flatMap(([id, { summary, description = '', examples = [], args, flags }]) => [
      ...described(id, { summary: { description: summary }, description: { description } }),
      ...examples.map((example): [string, string] => [`${id} example`, example.description]),
      ...described(id, args),
      ...described(`${id} --`, flags),
    ]),
    ...ENVIRONMENT.map(({ name, meaning }): [string, string] => [name, meaning]),
    ...EXIT_CODES.map(({ exit, meaning }): [string, string] => [`exit code ${exit}`, meaning]),
  ];
}

describe('the texts of the help', () => {
  it('stand alone: none leans on another', () => {
    const texts = textsOfHelp();
    assert.ok(texts.length > 300);
    const leaning = texts.filter(([, text]) => LEANING.some((phrase) => phrase.test(text)));
    assert.deepEqual(leaning, []);
  });

  it('say of each --limit whether it is a rate or a number of rows', () => {
    const limits = Object.entries(commands).flatMap(
      ([
        id,
        {
          flags: { limit },
        },
      ]) => (limit ? [[id, limit] as const] : []),
    );
    assert.ok(limits.length > 4);
    for (const [id, { description = '', multiple }] of limits)
      assert.match(description, multiple ? /^Rate limit of the key, / : /^Number of \w+ to show, /, id);
  });

  it('have each verb of apikey in one group', () => {
    const verbs = globSync('src/commands/apikey/*', { cwd: ROOT }).map((path) => path.replace(/.*\/|\.ts$/g, ''));
    const grouped = Object.values(VERB_GROUPS).flat();
    const others = ['index', 'complete', 'completion', 'help'];
    assert.deepEqual([...grouped, ...others].toSorted(), verbs.toSorted());
  });
});
