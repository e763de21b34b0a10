import { setTimeout as delay } from 'node:timers/promises';
import * as Flags from '@oclif/core/flags';
import { examplesOf } from '../../cli/base-command.ts';
import { CliError } from '../../cli/errors.ts';
import { exclusiveFlags, limitFlag, noInputFlag, readLimit, readNumber, yesFlag } from '../../cli/input/key-flags.ts';
import { KeyCommand } from '../../cli/manage/key-command.ts';
import { formatCount, openTable, withNamesOf } from '../../cli/output.ts';
import { withProgress } from '../../cli/progress.ts';
import { AUDIT_COLUMNS, auditJson, auditRow, verificationView } from '../../cli/views/audit-view.ts';
import type { Client } from '../../keys/operations/index.ts';
import { AUDIT_ACTIONS, AUDIT_OUTCOMES, type AuditEntry, type AuditRequest } from '../../keys/audit/index.ts';
import { MAX_PAGE_SIZE, printableJson } from '../../keys/basics/index.ts';
import type { OpenKeys } from '../../service/open-keys.ts';

const BROKEN = 1;
/** Flags that belong to every mode. */
const GLOBAL = ['database', 'server', 'insecure', 'json', 'no-color', 'no-input'];

/** Turns entries into lines. */
type EntriesText = (entries: readonly AuditEntry[]) => string;

export default class Log extends KeyCommand {
  static override group = 'Store';
  static override summary = 'Show the audit log: changes, and refused requests.';
  static override description =
    'Prints the newest entries, oldest first. A terminal shows as much of each entry as fits on a line. Otherwise, each ' +
    'entry is a line, with tabs between NUMBER TIME ACTOR ACTION KEY CHANGES. Each entry has the hash of the previous ' +
    'one. With this, --verify finds the first entry that was tampered with. It also compares the keys with the log.';
  static override examples = examplesOf([
    ['See what happened to a key', '--key "CI deploy"'],
    ['See what was done with a key', '--actor "CI deploy"'],
    ['See who deleted keys in the last week', '--action delete --since 7d'],
    ['Follow the log, one JSON object per line', '--follow --json'],
    ['Verify that nothing was changed or removed', '--verify'],
    ['Also verify that the log still has an entry that was once its newest', '--verify --head "$(cat audit-head.txt)"'],
    ['Delete entries older than a year', '--prune --until 52w --yes'],
  ]);
  static override flags = {
    key: Flags.string({ description: 'Only what happened to this key: its name or id.', helpValue: '<name>' }),
    actor: Flags.string({
      description: 'Only what this user or key did: a name, or the id of a key.',
      helpValue: '<actor>',
    }),
    action: Flags.string({ description: `Only this action: ${AUDIT_ACTIONS.join(', ')}.`, helpValue: '<action>' }),
    outcome: Flags.string({
      description: `Only actions that were done, or only refused requests: ${AUDIT_OUTCOMES.join(' or ')}.`,
      helpValue: '<outcome>',
    }),
    since: Flags.string({
      description: 'Only from this time on: a date (from 00:00 UTC), an RFC 3339 date and time, or how long ago.',
      helpValue: '<date>|7d',
    }),
    until: Flags.string({
      description: 'Only before this time: a date (at 00:00 UTC), an RFC 3339 date and time, or how long ago.',
      helpValue: '<date>|7d',
    }),
    limit: limitFlag('entries'),
    before: Flags.string({
      description: 'Only entries with a lower number, for the previous page.',
      helpValue: '<number>',
    }),
    wide: Flags.boolean({ description: 'On a terminal, show whole entries. Long lines wrap.' }),
    follow: Flags.boolean({ description: 'Keep printing new entries; with --json, one object per line.' }),
    verify: Flags.boolean({
      description: 'Check the whole audit log, and the keys against the log. Exits with 1 if something is wrong.',
    }),
    head: Flags.string({
      description:
        'With --verify: number and hash of an entry that you kept elsewhere. Exits with 1 if the log lacks it.',
      helpValue: '<number>:<hash>',
    }),
    prune: Flags.boolean({
      description: 'Delete the entries from before --until. The log records the deletion.',
    }),
    'no-input': noInputFlag,
    yes: yesFlag,
  };

  async run(): Promise<object | undefined> {
    const { flags } = await this.parse(Log);
    const { key, actor, action, outcome, since, until, follow, verify, prune } = flags;
    if (verify) refuseOthers(flags, ['verify', 'head'], '--verify checks the whole log.');
    else if (flags.head !== undefined) throw new CliError('USAGE', '--head needs --verify. Pass both.');
    if (prune) refuseOthers(flags, ['prune', 'until', 'yes'], '--prune deletes all entries from before --until.');
    else if (flags.yes) throw new CliError('USAGE', '--yes needs --prune. Leave it out.');
    if (prune) return this.withStore(flags, (keys) => this.prune(keys, until));
    if (flags.wide && this.jsonEnabled()) throw exclusiveFlags('--wide', '--json');
    const before = readNumber(flags.before, '--before', ' For a time, pass --until.');
    if (follow && before !== undefined) throw exclusiveFlags('--before', '--follow');
    if (follow && until !== undefined) throw exclusiveFlags('--until', '--follow');
    const request = { apiKey: key, actor, action, outcome, since, until, first: readLimit(flags.limit, 'entries') };
    if (verify) return this.withStore(flags, (keys) => this.verify(keys, flags.head));
    return this.withKeys(flags, async (keys) => {
      const table = await this.table(flags.wide);
      if (follow) return this.follow(keys, request, table);
      const newest = await keys.auditLog({ request, place: { before } });
      return this.show(newest.toReversed(), table);
    });
  }

  private async show(entries: readonly AuditEntry[], table: EntriesText): Promise<object> {
    const text = entries.length > 0 ? table(entries) : undefined;
    const shown = await this.print({ entries: entries.map(auditJson) }, text);
    if (entries.length === 0 && !this.jsonEnabled()) await this.terminal.note('No entries found.');
    return shown;
  }

  /** Formats entries as lines of a table. */
  private async table(wide: boolean | undefined): Promise<EntriesText> {
    const { isTerminal, columns } = this.terminal;
    const text = await openTable(AUDIT_COLUMNS, { isTerminal, columns: wide ? Infinity : columns });
    return (entries) => text(entries.map((entry) => auditRow(entry, isTerminal)));
  }

  /** Deletes the oldest entries. @throws CliError USAGE, CANCELLED */
  private async prune(keys: OpenKeys, before: string | undefined): Promise<object> {
    if (before === undefined)
      throw new CliError('USAGE', 'The time is missing. Pass --until <date>, or an age, such as --until 52w.');
    this.requireAnswer('delete entries');
    const prunable = await keys.audit.findPrunable(before);
    if (prunable) {
      const entries = formatCount(prunable.entries, 'entry', 'entries');
      await this.confirm(`Delete ${entries} of the audit log, up to number ${prunable.last.number}?`);
    }
    const pruned = prunable && (await keys.audit.prune(before));
    const count = pruned?.entries ?? 0;
    const text = pruned
      ? `Deleted ${formatCount(count, 'entry', 'entries')} of the audit log. ` +
        `It now starts after number ${pruned.last.number}.`
      : 'There are no entries from before that time.';
    if (pruned) this.done = text;
    return this.print({ deleted: count, last: pruned?.last ?? null }, text);
  }

  private async verify(keys: OpenKeys, head: string | undefined): Promise<object> {
    const { whole, json, text } = await withProgress(this.terminal, async (progress) => {
      const reports = { onProgress: progress.of('Verifying', 'entries'), onCompared: progress.of('Comparing', 'keys') };
      const { verification, comparison } = await keys.audit.check(head, reports);
      return verificationView(verification, comparison, await keys.schemaDifferences());
    });
    if (!whole) process.exitCode = BROKEN;
    return this.print(json, withNamesOf(this.config, text));
  }

  /** Prints entries as they are written, until a signal ends the process or stdout is closed. */
  private async follow(keys: Client, request: AuditRequest, table: EntriesText): Promise<undefined> {
    let after = (await keys.auditLog({ request: { first: 1 } }))[0]?.number ?? 0;
    let entries = (await keys.auditLog({ request, place: { before: after + 1 } })).toReversed();
    const lines = this.jsonEnabled() ? jsonLines : table;
    for (;;) {
      if (entries.length > 0 && !(await this.writeLines(lines(entries)))) return undefined;
      after = Math.max(after, entries.at(-1)?.number ?? 0);
      await delay(entries.length < MAX_PAGE_SIZE ? keys.pollMs : 0);
      entries = await keys.auditLog({ request: { ...request, first: MAX_PAGE_SIZE }, place: { after } });
    }
  }

  /** @returns false once stdout is closed */
  private async writeLines(lines: string): Promise<boolean> {
    try {
      await this.write(`${lines}\n`);
      return true;
    } catch (error) {
      if (error instanceof CliError) return false;
      throw error;
    }
  }
}

function jsonLines(entries: readonly AuditEntry[]): string {
  return entries.map((entry) => printableJson(JSON.stringify(auditJson(entry)))).join('\n');
}

/** Refuses flags that do not belong to a mode. @throws CliError USAGE */
function refuseOthers(flags: object, allowed: readonly string[], reason: string): void {
  const other = Object.entries(flags).find(
    ([flag, value]) => value !== undefined && ![...allowed, ...GLOBAL].includes(flag),
  );
  if (other) throw new CliError('USAGE', `${reason} Leave --${other[0]} out.`);
}
