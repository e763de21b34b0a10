import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../../../cli/base-command.ts';
import { CHANGES_MADE, CliError, shownText } from '../../../../cli/errors.ts';
import { nameArgs, nameFlag, noInputFlag, yesFlag } from '../../../../cli/input/key-flags.ts';
import { KeyCommand, nameOf } from '../../../../cli/manage/key-command.ts';
import { formatDiff } from '../../../../cli/views/change-view.ts';
import { formatCount } from '../../../../cli/output.ts';
import { issuedLines, issueJson } from '../../../../cli/views/key-view.ts';
import { printable } from '../../../../keys/basics/index.ts';
import type { Contained } from '../../contain.ts';
import { containOperations } from '../../operations.ts';

export default class Contain extends KeyCommand {
  static override group = 'Leaks';
  static override summary = 'Disable a leaked API key with its child keys, and undo its changes to other keys.';
  static override description =
    'Disables the key and all its child keys. Revokes secrets it issued for other keys: the previous secret is restored ' +
    'if it is still in its grace period, otherwise that key is disabled. Removes permissions it added, disables keys it ' +
    'enabled, and cancels requests of applications it approved. Also undoes the changes of its child keys, and those ' +
    'made with secrets it issued. Shows the plan first, and runs in one transaction. A deleted key is found by its name ' +
    'or id.';
  static override examples = examplesOf([
    ['Show the changes a key made, and what would be undone', '"CI deploy" --dry-run'],
    ['Undo it', '"CI deploy" --yes'],
    ['Undo only its changes since it leaked', '"CI deploy" --since 2h --yes'],
  ]);
  static override args = nameArgs;
  static override flags = {
    name: nameFlag,
    since: Flags.string({
      description:
        'Undo only its changes to others since this date (its start in UTC), RFC 3339 date and time, or this long ' +
        'ago. The key and its child keys are disabled in any case.',
      helpValue: '<date>|24h',
    }),
    'dry-run': Flags.boolean({ description: 'Only show what would be done.' }),
    'no-input': noInputFlag,
    yes: yesFlag,
  };

  async run(): Promise<object> {
    const input = await this.parse(Contain);
    const { since, yes, 'dry-run': dryRun } = input.flags;
    const key = nameOf(input);
    if (key === undefined)
      throw new CliError('USAGE', 'The name of the key is missing. Pass it as an argument, or with --name <name>.');
    if (!dryRun) this.requireAnswer('contain the key, or --dry-run to see what that does');
    return this.withKeys(input.flags, async (keys) => {
      const { containKey } = keys.of(containOperations);
      const request = { key, since };
      if (dryRun || !yes) {
        const plan = await containKey({ ...request, dryRun: true });
        if (dryRun) return this.show(plan, true);
        await this.terminal.note(shownText(textOf(plan, 'Plan', ['to change', 'to cancel'])));
        if (changes(plan)) await this.confirm(`Contain ${nameIn(plan)}?`);
      }
      return this.show(await containKey(request), false);
    });
  }

  private show(contained: Contained, dryRun: boolean): Promise<object> {
    if (!dryRun && changes(contained)) this.done = CHANGES_MADE;
    const text = dryRun
      ? textOf(contained, 'Plan', ['to change', 'to cancel'])
      : textOf(contained, 'Contained', ['changed', 'cancelled']);
    return this.print(containedJson(contained, dryRun), shownText(text));
  }
}

function changes({ changes: changed, requests }: Contained): boolean {
  return changed.length + requests.length > 0;
}

function textOf(contained: Contained, title: string, words: readonly [string, string]): string {
  const lines = containedLines(contained);
  const total = changes(contained) ? `${title}: ${containedCounts(contained, words)}.` : nothingToUndo(contained);
  return [...lines, total].join('\n');
}

function nothingToUndo(contained: Contained): string {
  const state = contained.exists ? 'disabled' : 'deleted';
  const others = contained.issued.length > 0 ? 'so are its parent keys' : 'nothing else is in effect';
  return `There is nothing to undo. ${nameIn(contained)} is ${state}, and ${others}.`;
}

function nameIn({ apiKey: { name } }: Contained): string {
  return `"${printable(name, 100)}"`;
}

function containedJson({ apiKey, exists, issued, changes, requests }: Contained, dryRun: boolean): object {
  return { dryRun, apiKey, exists, issued: issued.map(issueJson), changes, requests };
}

/** The plan as text: the changes the key made, then how each is undone. */
function containedLines(contained: Contained): string[] {
  const { exists, issued, changes: changed, requests } = contained;
  const name = nameIn(contained);
  return [
    ...(exists ? [] : [`API key ${name} was deleted.`]),
    ...(issued.length > 0
      ? [`Changes by ${name} to other keys, still in effect:`, ...issuedLines(issued).map(indented)]
      : []),
    ...formatDiff(changed),
    ...requests.map(({ client, keyName }) => `- cancel the request of "${printable(client, 100)}" for "${keyName}"`),
  ];
}

function indented(line: string): string {
  return `  ${line}`;
}

/** Counts of changes, such as "3 keys to change, 1 request to cancel". */
function containedCounts(
  { changes: changed, requests }: Contained,
  [change, cancel]: readonly [string, string],
): string {
  const keys = formatCount(changed.length, 'key', 'keys');
  return `${keys} ${change}, ${formatCount(requests.length, 'request', 'requests')} ${cancel}`;
}
