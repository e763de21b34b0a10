import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/process.ts';

/** Words that have a better one, which is given. They are looked for in names and texts alike. */
const WORDS: readonly [word: RegExp, instead: string][] = [
  [/nextTurn|\b(map|sort)?[iI]nTurns?\b/, 'yieldToEventLoop, yielding'],
  [/[cC]ourier/, 'dispatcher'],
  [/[dD]oorkeeper/, 'session authentication'],
  [/\b[dD]eaf|[uU]nheard|isDeaf|\bheard\b|Hearing/, 'notified, lost, received'],
  [
    /endPassing|tellOwnTimes|given-?[rR]ows|[fF]oresight|\bMOST_/,
    'clearTransient, clamp, json-rows, permitted changes, MAX_',
  ],
  [/\bFault\b|RouteFault|findFaults/, 'issue'],
  [/\b(type|interface) (Held|Told|Said|Given|Asked)\b/, 'a noun'],
  [/\b[lL]ets? (it |them |him |her |people |requests )?in\b/, 'accept, allow'],
  [/\bmended\b|\bbeheld\b|[tT]o be mended/, 'fixed, shown'],
  [/may do nothing to|What it never used/, 'no access to, unused permissions'],
  [/switch(ed)? (it )?off\b|not tell its schema/, 'turn off, disable'],
  [/\b(has|have|without|give it) an end\b/i, 'expires, expiry'],
  [/\b[bB]eneath/, 'child key, under'],
  [/\b[kK]eys? above\b/, 'parent key'],
  [/\b(take[sn]?|taking|took) (\w+ ){0,2}away\b/i, 'remove, revoke, limit, deny'],
  [
    /(?<![tT]here )\b(is|are|was|were) no (signed|JSON|SQLite|API|URL|address|number|text|terminal|socket|server|key|list)\b/,
    'is not a, are not',
  ],
  [
    /(?<![tT]here )\b(is|are|was|were) no (path|token|request|role|permission|algorithm|issuer|table|command)\b/,
    'is not a',
  ],
  [/\bin vain\b|[aA]sk whoever/, 'failed, ask somebody'],
  [/\bgoes with it\b|To think about|is no key yet|>not said</, 'is deleted with it, before you create it, none'],
];

/** Where a word is meant otherwise, or is part of what is public. */
const ALLOWED: readonly [file: RegExp, line: RegExp][] = [
  // Public, or as what is public.
  [/^src\//, /watchHearing/],
];

describe('the words of names and texts', () => {
  it('are those of the field', () => {
    const paths = ['src', 'docs', 'examples', 'README.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md', 'PERFORMANCE.md'];
    const files = execFileSync('git', ['ls-files', '--', ...paths], { cwd: ROOT, encoding: 'utf8' })
      .trim()
      .split('\n');
    const found = files
      .filter((file) => /\.(tsx?|js|md|graphql|css|ya?ml|json)$/.test(file))
      .flatMap((file) =>
        `${file}\n${readFileSync(join(ROOT, file), 'utf8')}`.split('\n').flatMap((line, number) => {
          if (ALLOWED.some(([where, what]) => where.test(file) && what.test(line))) return [];
          return WORDS.filter(([word]) => word.test(line)).map(
            ([word, instead]) => `${file}:${number}: ${word.exec(line)![0]} (${instead})`,
          );
        }),
      );
    assert.deepEqual(found, []);
  });
});
