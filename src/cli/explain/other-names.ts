import { SERVER_NUMBERS } from '../../config/config.ts';
import { kebab } from '../../keys/added/index.ts';

/** A name of a command or flag that does not exist, and the existing one for the same. */
type OtherName = readonly [typed: string, existing: string, flags?: string];

/**
 * Earlier names of commands, and names that other programs have for them, as typed after `apikey`. The existing command
 * is an id, and flags can follow it.
 */
const COMMANDS: readonly OtherName[] = [
  ['approve', 'apikey:requests:approve'],
  ['deny', 'apikey:requests:deny'],
  ['routes observed', 'apikey:routes:check', '--observed'],
  ['can', 'apikey:explain'],
  ['complete', 'apikey:autocomplete'],
  ['routes explain', 'apikey:explain'],
  ['federation explain', 'apikey:explain'],
  ['add', 'apikey:create'],
  ['new', 'apikey:create'],
  ['get', 'apikey:show'],
  ['describe', 'apikey:show'],
  ['ls', 'apikey:list'],
  ['edit', 'apikey:update'],
  ['rename', 'apikey:update'],
  ['set', 'apikey:update'],
  ['rm', 'apikey:delete'],
  ['remove', 'apikey:delete'],
  ['contain', 'apikey:revoke', '--undo-changes'],
  ['review', 'apikey:list', '--review'],
  ['copy', 'apikey:export', '--to'],
  ['adopt', 'apikey:update', '--detach'],
  ['compact', 'apikey:doctor', '--fix'],
  ['edges', 'apikey:doctor'],
];

/** The same of flags, without `--`. Only commands that have the existing flag suggest it. */
const FLAGS: readonly OtherName[] = [
  ['limit', 'rate'],
  ['created-by', 'parent'],
  ['created-by', 'where-parent'],
  ['owned-by', 'where-owner'],
  ['tagged', 'where-tag'],
  ['pass-credential', 'forward-credential'],
  ['without-comparison', 'force'],
  ['bring-back', 'restore-revoked'],
  ['bring-back-all', 'restore-revoked-all'],
  ['host', 'domain'],
  ['url', 'upstream'],
  ['credential', 'service-key'],
];

/**
 * The command that the first words of a line stand for, as an id, and flags that belong to it.
 * @param known the number of words that name a topic
 */
export function commandMeant(
  words: readonly string[],
  known: number,
): { id: string; flags: string | undefined } | undefined {
  const isLong = words[0] === 'apikey';
  for (let depth = words.length; depth > known; depth -= 1) {
    const typed = words.slice(isLong ? 1 : 0, depth).join(' ');
    const [, id, flags] = COMMANDS.find(([other]) => other === typed) ?? [];
    if (id !== undefined) return { id, flags };
  }
  return undefined;
}

/** The flags of a command that another one stands for. */
export function flagsMeant(typed: string, flags: readonly string[]): string[] {
  return FLAGS.flatMap(([other, existing]) => (other === typed && flags.includes(existing) ? [existing] : []));
}

/** The field of `server` in svc-api.yaml that a flag stands for. */
export function settingMeant(typed: string): string | undefined {
  return Object.keys(SERVER_NUMBERS).find((name) => kebab(name) === typed);
}
