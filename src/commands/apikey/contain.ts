import * as Flags from '@oclif/core/flags';
import { CliError, shownText } from '../../cli/errors.ts';
import { nameArgs, nameFlag } from '../../cli/input/key-flags.ts';
import { noInputFlag, yesFlag } from '../../cli/input/question-flags.ts';
import { KeyCommand, nameOf } from '../../cli/manage/key-command.ts';
import { containedCounts, containedJson, containedLines } from '../../cli/views/issued-view.ts';
import type { Contained } from '../../keys/administration.ts';
import { printable } from '../../keys/text.ts';

export default class Contain extends KeyCommand {
  static override summary = 'Undo what an API key did: to itself, beneath it, and to other keys.';
  static override description =
    'For a key that leaked. It and all keys beneath it are disabled. Secrets that it gave to other keys end: the ' +
    'secret before works alone again while its grace runs, otherwise that key is disabled. What it widened is ' +
    'narrowed to what the key had before as well as now, what it enabled is disabled, and requests of applications ' +
    'that it agreed to are cancelled. The same goes for what was done by keys beneath it, and with secrets that it ' +
    'gave. The plan is shown first; all of it is one transaction. A key that was deleted is found by its name or id.';
  static override examples = [
    {
      description: 'See what a key did, and what would be undone',
      command: '<%= config.bin %> <%= command.id %> Ops --dry-run',
    },
    { description: 'Undo it', command: '<%= config.bin %> <%= command.id %> Ops --yes' },
    {
      description: 'Undo only what it did to others since it leaked',
      command: '<%= config.bin %> <%= command.id %> Ops --since 2h --yes',
    },
  ];
  static override args = nameArgs;
  static override flags = {
    name: nameFlag,
    since: Flags.string({
      description:
        'Undo only what it did to others since this date (its start in UTC), RFC 3339 date and time, or this long ' +
        'ago. It and all beneath it are disabled in any case.',
      helpValue: '<date>|24h',
    }),
    'dry-run': Flags.boolean({ description: 'Show what would be done, and change nothing.' }),
    'no-input': noInputFlag,
    yes: yesFlag,
  };

  async run(): Promise<object> {
    const input = await this.parse(Contain);
    const { since, yes = false, 'dry-run': dryRun = false } = input.flags;
    const key = nameOf(input);
    if (key === undefined)
      throw new CliError('USAGE', 'The name of the key is missing. Pass it as an argument, or by --name <name>.');
    if (!dryRun && !yes && !this.interactive) throw nobodyToAsk();
    return this.withKeys(input.flags, async (keys) => {
      const request = { key, since };
      if (dryRun || !yes) {
        const plan = await keys.planContainment(request);
        if (dryRun) return this.show(plan, true);
        await this.terminal.note(shownText(textOf(plan, 'Plan', ['to change', 'to cancel'])));
        const { confirmOrCancel } = await import('../../cli/prompts/with-prompts.ts');
        if (changes(plan)) await confirmOrCancel(`Contain "${printable(plan.apiKey.name, 100)}"?`);
      }
      return this.show(await keys.contain(request), false);
    });
  }

  private show(contained: Contained, dryRun: boolean): Promise<object> {
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
  const total = changes(contained)
    ? `${title}: ${containedCounts(contained, words)}.`
    : `There is nothing to undo: "${printable(contained.apiKey.name, 100)}" is disabled or deleted, and nothing else is in force.`;
  return [...lines, total].join('\n');
}

function nobodyToAsk(): CliError {
  return new CliError(
    'USAGE',
    'Pass --yes to contain the key, or --dry-run to see what that does: you can only be asked on a terminal, ' +
      'without --json and --no-input.',
  );
}
