import { basename } from 'node:path';
import { printable } from '../../../keys/basics/index.ts';
import { MAX_NAME_LENGTH } from '../../../keys/key/index.ts';
import type { Client } from '../../../keys/operations/index.ts';
import type { KeyState } from '../../../keys/service/index.ts';
import { keyQuestions } from '../../usage/operations.ts';
import type { Suggestion } from '../../usage/suggest.ts';

/** Servers write usage with a delay of up to two seconds, or a little more under load. */
const LEARN_STEP_MS = 1000;
/** The number of steps without new usage, and the total number of steps, after which waiting ends. */
const [LEARN_QUIET, LEARN_STEPS] = [5, 35];

/** Waits until no more usage of a key is written. @returns its usage */
export async function learnUse(
  keys: Client,
  { id, name }: { id: string; name: string },
  wait: (ms: number) => Promise<unknown>,
): Promise<Suggestion | undefined> {
  let [seen, quiet] = ['', 0];
  for (let step = 0; step < LEARN_STEPS && quiet < LEARN_QUIET; step += 1) {
    await wait(LEARN_STEP_MS);
    const state = await keys.apiKey({ name });
    if (state?.apiKey.id !== id) return undefined;
    const now = JSON.stringify([state.use, await keys.of(keyQuestions).keySuggestion({ id })]);
    [seen, quiet] = [now, now === seen ? quiet + 1 : 0];
  }
  const [{ uses }, suggestion] = JSON.parse(seen) as [KeyState['use'], Suggestion];
  return uses > 0 ? suggestion : undefined;
}

/** Names that YAML would read as a number or another type than text. */
const NO_TEXT = /^(?:\d|(?:true|false|null)$)/i;

/** The grants that a command needs, as flags and as an entry of a file for `apply`. */
export function learnedText(command: string, learned: Suggestion | undefined): string {
  const program = printable(basename(command));
  if (!learned) return `"${program}" did not use its key: no server received it.`;
  const grants = Object.entries({ roles: learned.roles, permissions: learned.permissions }).filter(
    ([, list]) => list.length > 0,
  );
  const names = [
    ...named(
      'Tools it called',
      learned.tools.map(({ name }) => name),
    ),
    ...named('Routes that let it pass', learned.routes),
  ];
  if (grants.length === 0) return [`"${program}" used its key, but none of its grants.`, ...names].join('\n');
  const name = basename(command)
    .replaceAll(/[^\p{L}\p{Nd}]+/gu, ' ')
    .trim()
    .slice(0, MAX_NAME_LENGTH);
  const quote = NO_TEXT.test(name) ? '"' : '';
  return [
    `What "${program}" used:`,
    `  ${grants.map(([flag, list]) => `--${flag} ${list.join(',')}`).join(' ')}`,
    'For a file for apply:',
    `  - name: ${quote}${name || 'Learned'}${quote}`,
    ...grants.map(([field, list]) => `    ${field}: [${list.join(', ')}]`),
    ...names,
  ].join('\n');
}

function named(what: string, names: readonly string[]): string[] {
  return names.length === 0 ? [] : [`${what}:`, ...names.map((name) => `  ${printable(name, 200)}`)];
}
